// What atc's flags change about a graph beside its shapes.
#ifndef NPUMESH_LAUNCH_ATC_ATC_EDITS_H_
#define NPUMESH_LAUNCH_ATC_ATC_EDITS_H_

#include "graph/ir/graph.h"
#include "graph/session/precision_options.h"
#include "launch/atc/atc_options.h"

namespace npumesh {

// --out_nodes, --input_fp16_nodes and --output_type, in this order. Errors (kInvalidArgument) begin
// with the vendor's code and name the node.
Status ApplyEdits(const AtcOptions& options, Model* model);

// --precision_mode or --precision_mode_v2, --modify_mixlist, --keep_dtype, --op_select_implmode and
// --optypelist_for_implmode. Without them the types of the graph stay, where the vendor's atc takes
// force_fp16. Errors as above.
Result<PrecisionOptions> PrecisionFor(const AtcOptions& options);
// An error when --keep_dtype names a node that the graph does not have.
Status CheckKept(const PrecisionOptions& precision, const Model& model);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_ATC_ATC_EDITS_H_
