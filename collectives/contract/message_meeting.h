// The meeting of ranks on several nodes: requests travel as messages.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_MESSAGE_MEETING_H_
#define NPUMESH_COLLECTIVES_CONTRACT_MESSAGE_MEETING_H_

#include <memory>
#include <string>
#include <vector>

#include "collectives/contract/meeting.h"
#include "collectives/contract/waiter.h"

namespace npumesh {

// As Meeting::Of, for any members.
std::unique_ptr<Meeting> MakeMessageMeeting(World& world, const std::string& name,
                                            const std::vector<int>& world_ranks);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_MESSAGE_MEETING_H_
