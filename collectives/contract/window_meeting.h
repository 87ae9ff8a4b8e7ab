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

// As Meeting::Open, for members of one node.
Result<std::unique_ptr<Meeting>> OpenWindowMeeting(World& world, const std::string& name,
                                                   const std::vector<int>& world_ranks);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_WINDOW_MEETING_H_
