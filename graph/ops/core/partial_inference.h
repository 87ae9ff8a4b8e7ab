// Types of outputs where dimensions or ranks of inputs are not known yet.
//
// Operators infer from known shapes; this asks them many times, with trial sizes in place of what
// is unknown. What is the same for all trial sizes is known; the rest is not. Trial sizes that an
// operator refuses are ignored. So one rule serves every operator, and a rule of inference is
// written once, for known shapes.
#ifndef NPUMESH_GRAPH_OPS_CORE_PARTIAL_INFERENCE_H_
#define NPUMESH_GRAPH_OPS_CORE_PARTIAL_INFERENCE_H_

#include <vector>

#include "graph/ops/core/operator.h"

namespace npumesh {

// The types of the outputs of a bound node whose input types are set and may have dimensions of -1
// or unknown rank. An output dimension that hangs on an unknown one is -1; an output whose rank
// does has unknown rank. With an input of unknown rank, or more than eight unknown dimensions, no
// dimension of an output with a rank is claimed. A node for which no numbers are found that it
// accepts has outputs of unknown rank and type.
//
// Where every shape is known it is what `op.infer` says, errors included, and an error for an
// output with more elements than can be counted. Costs up to some thousand times as much otherwise:
// for exporters and checks, not for steps.
Result<std::vector<TensorType>> InferPartly(const Operator& op, const OpContext& context);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_PARTIAL_INFERENCE_H_
