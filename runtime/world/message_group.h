// PlainGroup over nothing but Transport::Exchange: plain collectives for transports that have none
// of their own (threads), and for groups that MPI cannot make without a wait that may never end.
#ifndef NPUMESH_RUNTIME_WORLD_MESSAGE_GROUP_H_
#define NPUMESH_RUNTIME_WORLD_MESSAGE_GROUP_H_

#include <memory>
#include <vector>

#include "runtime/world/transport.h"

namespace npumesh {

// `transport` must outlive the group. `tag` keeps its messages apart from others'. Not collective.
std::unique_ptr<PlainGroup> MakeMessageGroup(Transport& transport, std::vector<int> world_ranks,
                                             int tag);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_MESSAGE_GROUP_H_
