// CollectiveCalls: the calls of all ranks, joined: which spans of which ranks are one collective.
#ifndef NPUMESH_LAUNCH_PROFILE_COLLECTIVE_CALLS_H_
#define NPUMESH_LAUNCH_PROFILE_COLLECTIVE_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/profile/profile_file.h"

namespace npumesh {

// A rank's part of a collective.
struct CallMember {
  uint64_t group = 0;  // ProfiledGroup::number
  uint64_t call = 0;   // Span::number
  size_t profile = 0;  // index into the profiles
  const Span* span = nullptr;
};

// The collectives (not messages) of all ranks. The profiles must outlive it.
// Thread-safety: immutable.
class CollectiveCalls {
 public:
  explicit CollectiveCalls(const std::vector<RankProfile>& profiles);

  size_t size() const { return begins_.size(); }
  // The members of call number `i` that left a span, by rank; at least one.
  std::span<const CallMember> operator[](size_t i) const;

 private:
  std::vector<CallMember> members_;  // by group, call, profile
  std::vector<size_t> begins_;       // of each call in members_
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_COLLECTIVE_CALLS_H_
