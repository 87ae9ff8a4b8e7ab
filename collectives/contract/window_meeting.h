// The meeting of ranks that share memory.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_WINDOW_MEETING_H_
#define NPUMESH_COLLECTIVES_CONTRACT_WINDOW_MEETING_H_

#include <memory>
#include <string>
#include <vector>

#include "collectives/contract/meeting.h"
#include "collectives/contract/waiter.h"

namespace npumesh {

// As Meeting::Open, for members of one node.
Result<std::unique_ptr<Meeting>> OpenWindowMeeting(World& world, const std::string& name,
                                                   const std::vector<int>& world_ranks);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_WINDOW_MEETING_H_
