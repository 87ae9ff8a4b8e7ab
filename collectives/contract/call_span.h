// CallSpan: the calls of one communicator, or the messages of one lane, as spans of the profile.
//
// Thread-safety: as Logbook.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_CALL_SPAN_H_
#define NPUMESH_COLLECTIVES_CONTRACT_CALL_SPAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "collectives/contract/flight_record.h"
#include "runtime/profile/profiler.h"

namespace npumesh {

class CallSpan {
 public:
  // `number` is equal on all members. `world` must outlive it.
  CallSpan(World& world, uint64_t number, const std::string& name,
           const std::vector<int>& world_ranks);

  void Enter(const CallFacts& facts);
  void Arrived();  // all members have entered the call
  void Leave();

 private:
  using Subject = std::tuple<CollectiveKind, DataType, ReduceOp, int, uint64_t, std::string>;

  // The id of what the call is, which is named once a run of the profiler.
  uint32_t SubjectOf(const CallFacts& facts);

  Profiler& profiler_;
  const ProfiledGroup group_;
  const bool sends_;  // of a lane of messages, whose first rank is the sender
  uint64_t run_ = 0;  // of the profiler: to which the ids belong
  uint32_t group_id_ = 0;
  std::map<Subject, uint32_t> subjects_;
  Span span_;
  bool open_ = false;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_CALL_SPAN_H_
