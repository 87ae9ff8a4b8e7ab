// Whether the ranks of a node may share the work of static kernels, by what launchers say.
#ifndef NPUMESH_GRAPH_SESSION_NODE_SHARING_H_
#define NPUMESH_GRAPH_SESSION_NODE_SHARING_H_

#include "runtime/base/status.h"
#include "runtime/world/world.h"

namespace npumesh {

// LOCAL_WORLD_SIZE is the same on all ranks, or no rank has it; then INFO says once that MPI knows.
// Errors (kInvalidArgument) on every rank alike: some ranks have it and others do not, or two have
// different numbers. Not collective. A number that is not true of its node ends World::Start.
Status CheckLocalWorldSizes(const World& world);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_NODE_SHARING_H_
