// The inputs that an operator updates, tensor by tensor.
#ifndef NPUMESH_GRAPH_OPS_CORE_IN_PLACE_H_
#define NPUMESH_GRAPH_OPS_CORE_IN_PLACE_H_

#include <vector>

#include "graph/ops/core/operator.h"

namespace npumesh {

// Operator::in_place of a bound node. Its slots are those of an operator without lists; here they
// are the node's, and the entry of a dynamic input stands for each of its tensors: tensor i of the
// list lives in output `output` + i.
std::vector<InPlace> InPlacesOf(const Operator& op, const OpContext& context);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_IN_PLACE_H_
