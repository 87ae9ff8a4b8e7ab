// FlightRecord: what one rank did last, in a file that survives its death.
//
// The file is a ring of calls in a shared mapping, made and filled with zeros before the first
// call. A call costs a few plain stores and no system call; what the process has stored is in
// the file, even when the next thing that happens is SIGKILL. `npumesh record` joins the files of
// all ranks. Format: flight_format.h and docs/formats/flight_record.md.
//
// Thread-safety: any thread may open groups and begin calls; a call is then written by one thread.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_FLIGHT_RECORD_H_
#define NPUMESH_COLLECTIVES_CONTRACT_FLIGHT_RECORD_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/contract/flight_format.h"
#include "collectives/contract/request.h"
#include "runtime/world/wait_notices.h"
#include "runtime/world/world.h"

namespace npumesh {

// A call as it is recorded.
struct CallFacts {
  CollectiveKind kind = CollectiveKind::kNone;
  DataType dtype = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  uint64_t count = 0;
  std::string_view node;
  uint64_t call = 0;
  // Of these the record has nothing.
  int peer = -1;       // world rank at the other end of a message; the group tells
  uint64_t bytes = 0;  // that this rank sends
  std::string_view algorithm = {};
};

// A group as it is recorded. `world_ranks` by group rank.
struct GroupFacts {
  uint64_t id = 0;
  std::string_view name;
  std::span<const int> world_ranks;
  int group_rank = 0;
};

class FlightRecord final : public WorldCompanion {
 public:
  static constexpr uint64_t kCallCapacity = 8192;
  static constexpr uint32_t kGroupCapacity = 256;
  static constexpr uint32_t kNoticeCapacity = 64;

  // Who writes.
  struct Owner {
    int rank = 0;
    int world_size = 1;
    int node = 0;
    std::chrono::nanoseconds soft_timeout{};  // after which a wait warns
  };

  // The record of this world's rank; null when env.record is empty, or when it cannot be made: that
  // is said once, and the run goes on without.
  static FlightRecord* Of(World& world);

  // Makes `folder`/rank_<R>.npr, replacing the record of an earlier run. Errors: kInvalidArgument
  // for a symbolic link, kIo; the disk's space is taken at once.
  static Result<std::unique_ptr<FlightRecord>> Create(const std::string& folder, const Owner& owner,
                                                      uint64_t call_capacity = kCallCapacity);
  ~FlightRecord() override;
  void OnShutdown() override;

  void OpenGroup(const GroupFacts& group);

  // The entry of a new call. An entry whose call is still open is never overwritten. REQUIRES:
  // fewer open calls than entries.
  flight::CallEntry* Begin(uint64_t group, const CallFacts& facts, int64_t now_ns);
  static void Arrived(flight::CallEntry* entry, int64_t now_ns);
  static void Departing(flight::CallEntry* entry);
  static void Done(flight::CallEntry* entry, Code code, int64_t now_ns);

  // What a wait has said. The last kNoticeCapacity stay.
  void Note(const WaitNotice& notice, int64_t now_ns);

 private:
  FlightRecord(std::byte* data, uint64_t bytes);
  void End(flight::State state);

  std::byte* const data_;
  const uint64_t bytes_;
  flight::RecordHeader* const header_;
  flight::GroupRow* const groups_;
  flight::CallEntry* calls_ = nullptr;
  uint64_t call_capacity_ = 0;
  flight::NoticeEntry* notices_ = nullptr;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_FLIGHT_RECORD_H_
