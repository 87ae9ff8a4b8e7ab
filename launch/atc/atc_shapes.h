// --input_shape, --input_shape_range and the gears of atc.
#ifndef NPUMESH_LAUNCH_ATC_ATC_SHAPES_H_
#define NPUMESH_LAUNCH_ATC_ATC_SHAPES_H_

#include "graph/ir/graph.h"
#include "graph/offline/offline_facts.h"
#include "launch/atc/atc_options.h"

namespace npumesh {

// Gives the inputs of `model` the shapes that the options name, with -1 where they leave them open,
// and returns the gears. Errors (kInvalidArgument) begin with the vendor's code: a text of another
// form, an input that the graph does not have, another rank, a dimension that contradicts a known
// one, gears that do not fit the open dimensions.
Result<Gears> ApplyShapes(const AtcOptions& options, Model* model);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_ATC_ATC_SHAPES_H_
