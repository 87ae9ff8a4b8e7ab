// What communicator.cc and the files of its calls share.
#ifndef NPUMESH_COLLECTIVES_COMMUNICATOR_IMPL_H_
#define NPUMESH_COLLECTIVES_COMMUNICATOR_IMPL_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/algorithm_tables.h"
#include "collectives/algorithms/hierarchy.h"
#include "collectives/algorithms/point_to_point.h"
#include "collectives/algorithms/selection.h"
#include "collectives/communicator.h"
#include "collectives/contract/logbook.h"
#include "collectives/contract/waiter.h"
#include "collectives/prepared_call.h"

namespace npumesh {

// The messages between two members in one direction. To those who look on it is a group of two, in
// which every message is a call: who waits in it is seen, and recorded, as in any collective.
struct Lane {
  Lane(World& world, const std::string& name, const std::vector<int>& sender_and_receiver)
      : logbook(world, name, sender_and_receiver), waiter(world, name, sender_and_receiver) {
    logbook.Created();
  }

  Logbook logbook;
  Waiter waiter;
  uint64_t messages = 0;  // so far
};

struct Communicator::Impl {
  World& world;
  DeviceMemory& memory;
  std::string name;
  std::vector<int> world_ranks;
  CommunicatorOptions options;
  int rank = 0;
  int tag = 0;  // first of kTagsOfGroup
  std::shared_ptr<const AlgorithmTables> tables;
  Selection selection;
  std::unique_ptr<Meeting> meeting;
  std::unique_ptr<Logbook> logbook;  // null before the members begin to meet
  bool met = false;
  bool several_nodes = false;
  bool run_ahead = false;
  std::unique_ptr<Hierarchy> hierarchy;                         // null in one node
  std::map<std::pair<int, bool>, std::unique_ptr<Lane>> lanes;  // by peer and "sends"
  Status broken;            // the first error; everything after it fails with it
  bool under_way = false;   // the members have met in the last call
  bool meets_anew = false;  // with the next call, which `broken` does not keep from it
  Totals totals;
  CallCache calls;
  uint64_t prepared = 0;  // calls so far; numbers them

  int size() const { return static_cast<int>(world_ranks.size()); }

  // Prepares the meetings. Local.
  void Furnish();
  // What stands before each call: the rank has come back from a setback, and the group is whole.
  // Collective only after a setback.
  Status Ready();
  // The call that just failed has failed on this rank before the members met.
  void FailTogether(const Status& why);
  // Meets the members before any call. Collective; every wait has its limit.
  Status Found();
  // Collective. `complaint`: why this rank cannot take part, as far as its caller knows.
  Status Run(const Call& call, std::string_view node, const std::string& complaint = {});
  // Messages with peers, all at the same time.
  Status RunMessages(std::span<const SendRecvItem> items, std::string_view node);

 private:
  struct RunningCall;

  // A setback of another member, which concerns this rank, lasts.
  bool SetBackOther() const;
  // Opens the logbook, which numbers the group by the order in which groups meet.
  void OpenLogbook();
  // As Meeting::Meet, of all meetings of the group.
  Status Meet(const std::string& what, std::chrono::seconds limit);

  const PreparedCall& Prepare(const Call& call, std::string_view node,
                              const std::string& complaint);
  const Algorithm& AlgorithmFor(const Call& call) const;
  Status Perform(const PreparedCall& prepared);
  // The parts of this rank and of members that share its processor, as far as they have not run.
  Status RunParts(const PreparedCall& prepared, Members& members);
  static Status RunPartOf(int member, const PreparedCall& prepared, const Members& members);
  Status MeetInNode(const PreparedCall& prepared);
  Status PerformMessages(std::span<const SendRecvItem> items, std::string_view node);
  Status CheckItems(std::span<const SendRecvItem> items) const;
  Lane& LaneOf(const SendRecvItem& item);
  Half HalfOf(const SendRecvItem& item);
  // One message, under watch.
  Status Carry(const Half& half, Lane& lane, std::string_view node) const;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_COMMUNICATOR_IMPL_H_
