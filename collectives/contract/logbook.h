// Logbook: what one communicator is doing now, on the board for its peers, and what it has done, in
// the flight record and the profile. The communicator calls one function for each step of a call;
// without a record that is a handful of stores.
//
// Thread-safety: one thread at a time, because a communicator makes one call at a time.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_LOGBOOK_H_
#define NPUMESH_COLLECTIVES_CONTRACT_LOGBOOK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/contract/call_span.h"
#include "collectives/contract/flight_record.h"
#include "runtime/base/process/wait.h"
#include "runtime/world/world.h"

namespace npumesh {

// Position::kind of a call: its kind, and for a message the rank at the other end, which may have
// no line for the two yet.
uint32_t PositionKind(CollectiveKind kind, int peer);
CollectiveKind KindOf(const Position& position);
// World rank; empty for a collective.
std::optional<int> PeerOf(const Position& position);

class Logbook {
 public:
  // Says that this rank waits for the members of a new group. `world` must outlive the logbook.
  Logbook(World& world, const std::string& name, const std::vector<int>& world_ranks);
  ~Logbook();
  Logbook(const Logbook&) = delete;
  Logbook& operator=(const Logbook&) = delete;

  // The record says, too, that this rank waits for the members, until Created. Not for the two ends
  // of messages, who do not wait for each other before the first one.
  void Creating();
  void Created(const Status& met = Status());  // the members have met, or will not
  // `serial`: equal numbers, other than 0, stand for calls that differ in nothing but their place
  // in the sequence.
  void Enter(const CallFacts& facts, uint64_t serial);
  void Arrived();    // all members have entered the call
  void Departing();  // this rank has done its part
  void Leave(const Status& status);

  // `peer`, if it shares this node and has certainly not entered call `call` of the group; else
  // empty. Any thread.
  std::vector<int> Absent(const World& world, int peer, uint64_t call) const;

 private:
  const uint64_t group_;
  PositionLine* position_;  // null when the board has no line left
  FlightRecord* record_;    // null: not recorded
  CallSpan span_;
  flight::CallEntry* entry_ = nullptr;  // of the call that is open
  uint64_t entered_ = 0;                // serial of the call whose kind and node the position shows
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_LOGBOOK_H_
