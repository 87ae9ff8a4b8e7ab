// Private formats in a graph (docs/private_formats.md): compiled graphs keep weights and
// intermediates in the layouts of blocked_layout.h, and models may ask for such weights.
//
// Every kernel works on plain layouts, so results do not depend on formats; only TransData knows
// both.
#ifndef NPUMESH_GRAPH_PASSES_REWRITE_PRIVATE_FORMATS_H_
#define NPUMESH_GRAPH_PASSES_REWRITE_PRIVATE_FORMATS_H_

#include "graph/ir/graph.h"
#include "graph/ops/builtin_ops.h"
#include "runtime/base/status.h"

namespace npumesh {

// Makes the values that operators read plain, in the main graph and all subgraphs:
//   - a Const in a private format, with its `origin_shape`, gets its plain value;
//   - readers of a TransData that makes a plain value private read that plain value;
//   - a TransData that would make a value plain which is plain already falls out;
//   - a Data whose caller brings a private format gets a TransData before its readers.
// What an outside reader of the graph gets (NetOutput) keeps its format. Errors (kCorrupt) name the
// node whose bytes do not fit its descriptor.
Status MakeValuesPlain(Model& model);

// Brings the weights of a model into the formats that the NPU prefers, as
// torchair.use_internal_format_weight does: those of matrix products into FRACTAL_NZ, of
// convolutions with float16 filters and one group into FRACTAL_Z (Operator::weight). A
// weight in a file comes into memory. Weights of fewer than two dimensions, of 4-bit types, and
// those a graph input feeds stay. Returns how many changed. Errors as LoadWeight.
Result<int> UseInternalFormatWeight(Model& model, const OpRegistry& registry = BuiltinOps());

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_REWRITE_PRIVATE_FORMATS_H_
