// PreparedCall: what one rank can work out about a call before it meets the others. Programs repeat
// their calls, so a communicator keeps the last ones.
//
// Thread-safety: one thread at a time, because a communicator makes one call at a time.
#ifndef NPUMESH_COLLECTIVES_PREPARED_CALL_H_
#define NPUMESH_COLLECTIVES_PREPARED_CALL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "collectives/algorithms/algorithm.h"
#include "collectives/contract/request.h"

namespace npumesh {

struct PreparedCall {
  Call call;
  std::string node;
  Announcement announcement;
  const Algorithm* algorithm = nullptr;  // of the table; the same on all ranks
  bool shares_parts = false;             // members run each other's (shared_parts.h); the same, too
  uint64_t send_offset = 0;              // in this rank's HBM; 0 for a buffer that is not touched
  uint64_t recv_offset = 0;
  EagerData eager;  // what goes into the slots
  uint64_t sent_bytes = 0;
};

// Calls by what they were asked for. A call with block lists, which belong to its caller, is never
// kept. One place for each hash: two calls that share a place push each other out.
class CallCache {
 public:
  // Null when the call is not here.
  const PreparedCall* Find(const Call& call, std::string_view node) const;
  // A place for a call that is about to be prepared.
  PreparedCall& PlaceFor(const Call& call);

 private:
  static constexpr size_t kPlaces = 16;
  static size_t PlaceOf(const Call& call);
  static bool CanBeKept(const Call& call) { return call.send_bytes.empty(); }

  std::array<std::unique_ptr<PreparedCall>, kPlaces> places_;
  PreparedCall passing_;  // the last call that was not kept
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_PREPARED_CALL_H_
