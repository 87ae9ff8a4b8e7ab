// Operators that stand for those that npumesh does not have, so that the rest of a graph can run.
//
// A stand-in computes nothing: its outputs are zero, and an output with the name of an input is
// that input, unchanged. Types of outputs are those that the node says by TorchAir's
// `_inference_rule`, else those that its descriptors declare.
#ifndef NPUMESH_GRAPH_C_INTERFACE_STAND_INS_H_
#define NPUMESH_GRAPH_C_INTERFACE_STAND_INS_H_

#include <memory>
#include <string>
#include <vector>

#include "graph/ops/core/op_registry.h"
#include "runtime/base/status.h"

namespace npumesh {

struct StandIns {
  std::shared_ptr<const OpRegistry> registry;  // the operators of `base`, and the stand-ins
  std::vector<std::string> types;              // of the stand-ins, sorted
};

// Stand-ins for all operators of `model` that `base` lacks. Nodes of one type have the ports and
// attributes of all of them, none of which is required. `base` is copied.
StandIns StandInsFor(const Model& model, const OpRegistry& base);

// The types of a node's outputs by the text of its `_inference_rule`: a JSON object with
// shape.inputs (for each input null, or names and numbers of its dimensions), shape.outputs
// (expressions over these names) and dtype. `inputs` are the types of the node's inputs in its
// order; open dimensions stay open in what they decide. Errors (kCorrupt) say what of the rule is
// not understood; kInvalidArgument: an input does not fit it.
Result<std::vector<TensorType>> TypesByRule(const std::string& rule,
                                            const std::vector<TensorType>& inputs);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_C_INTERFACE_STAND_INS_H_
