// Nodes of a domain of a user's own whose operator a library of operators has: they are taken as
// they are, under the same name.
#ifndef NPUMESH_GRAPH_ONNX_OWN_OPERATOR_H_
#define NPUMESH_GRAPH_ONNX_OWN_OPERATOR_H_

#include "graph/onnx/lowering.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// The operator of a library that is called as the node's; null: no library has it, or it is of the
// standard domain, or the name is one of npumesh's own operators, which may mean something else.
const Operator* OwnOperatorOf(const OnnxNode& node, const OpRegistry& registry);

// One node of the operator's type: inputs in the order of its ports, attributes by name. Errors:
// too many inputs or outputs, an attribute that no graph of ours can hold.
void LowerOwnOperator(const Operator& op, Lowering& lowering);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_OWN_OPERATOR_H_
