// The meeting of ranks that share memory: in each call all members meet in their slots (slot.h).
//
// A member goes through four states in a call:
//
//   announced  Arrive has written the request, the blocks and the eager bytes into this member's
//              slot, and last its arrival line, with the number of the call
//   arrived    the arrival lines of all have that number: Arrive compares their fingerprints
//   running    the algorithm reads the others' eager bytes and buffers, and writes into theirs
//   departed   Depart or Pass has written the number into this member's departure line; Depart
//              waits for the lines of all
//
// A member that has waited too long gives the call up only when no member can be running it, and
// then none will: it says that it thinks of giving up, waits until those who have not seen that
// have been seen themselves, and looks who has arrived. If all have, it goes on; else it decides.
// Each member looks for such words after it has seen all arrive, and before it runs. So either all
// run the call or none does, and no member writes into a buffer of one that has left. Departures
// end in the same way.
//
// When fingerprints differ, every member reads the requests of all and gets the same text from
// them. It leaves only after all have read, and the meeting is over.
//
// Two rounds of a slot take turns, so that a member may announce its next call while others still
// read this one. Picture and memory map: docs/window.md.
//
// A call that repeats the ones before may instead run ahead of the meeting (run_ahead.h).
#ifndef NPUMESH_COLLECTIVES_CONTRACT_WINDOW_MEETING_H_
#define NPUMESH_COLLECTIVES_CONTRACT_WINDOW_MEETING_H_

#include <memory>
#include <string>
#include <vector>

#include "collectives/contract/meeting.h"

namespace npumesh {

// As Meeting::Of, for members of one node.
std::unique_ptr<Meeting> MakeWindowMeeting(World& world, const std::string& name,
                                           const std::vector<int>& world_ranks);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_WINDOW_MEETING_H_
