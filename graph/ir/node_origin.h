// Where a node comes from: what messages about nodes say.
//
// Sources: `nn_module_stack` is the attribute that TorchAir writes with
// export.experimental.enable_record_nn_module_stack, Python's str() of what FX records.
// TorchAir's too is `_fx_tensor_name` of an output, which begins with the name of the FX node.
// `_fx_node`, that name, and `_stack_trace`, its innermost line as Python's tracebacks write it
// (File "...", line 3, in forward), are npumesh's own; the door to TorchAir (python/torchair)
// sets them.
#ifndef NPUMESH_GRAPH_IR_NODE_ORIGIN_H_
#define NPUMESH_GRAPH_IR_NODE_ORIGIN_H_

#include <string>
#include <string_view>

#include "graph/ir/graph.h"

namespace npumesh {

// `FX node "mm_1", module layer[0].proj (Linear), File "...", line 3, in forward`: what the node's
// attributes tell of it. Empty when they tell nothing. Any thread.
std::string NodeOrigin(const Node& node);

// `node "MatMulV2_1" (MatMulV2)`, followed by ` of ` and its origin where it has one.
std::string WhoIs(const Node& node);

// The same of a name, a type and an origin, which may be empty.
std::string WhoIs(std::string_view name, std::string_view type, std::string_view origin);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IR_NODE_ORIGIN_H_
