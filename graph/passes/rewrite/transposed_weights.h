// Weights as exporters write a linear layer, MatMul(x, Transpose(w)): the product reads w itself.
#ifndef NPUMESH_GRAPH_PASSES_REWRITE_TRANSPOSED_WEIGHTS_H_
#define NPUMESH_GRAPH_PASSES_REWRITE_TRANSPOSED_WEIGHTS_H_

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// Lets MatMul, MatMulV2 and MatMulV3 of the main graph whose x2 is the transposition of a constant
// matrix read the matrix, with the other `transpose_x2`. No plan then transposes a large weight in
// each run, keeps a transposed copy of a small one, or packs it anew. The Transpose stays for
// others who read it. The results keep their bits. REQUIRES: model.graph.Verify() is OK.
void ReadTransposedWeights(Model& model, const OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_REWRITE_TRANSPOSED_WEIGHTS_H_
