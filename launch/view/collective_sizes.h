// How much the collectives of a graph move, without ranks and without running it.
#ifndef NPUMESH_LAUNCH_VIEW_COLLECTIVE_SIZES_H_
#define NPUMESH_LAUNCH_VIEW_COLLECTIVE_SIZES_H_

#include <map>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "graph/session/session.h"

namespace npumesh {

// Type of the first input of every collective of the main graph. Empty when types cannot be
// inferred: an input with open dimensions, an unknown operator, missing weights. `world_size` ranks
// are the members of groups that neither spell out their members nor stand in `table`.
std::map<NodeId, TensorType> CollectiveInputs(const Model& model, const OpRegistry& registry,
                                              const GroupTable& table, int world_size);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_COLLECTIVE_SIZES_H_
