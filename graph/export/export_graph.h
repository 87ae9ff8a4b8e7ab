// What an export changes in a graph before weights are decided: its inputs and its attributes.
#ifndef NPUMESH_GRAPH_EXPORT_EXPORT_GRAPH_H_
#define NPUMESH_GRAPH_EXPORT_EXPORT_GRAPH_H_

#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// Inputs that a node writes in place become RefData, called after their shape as TorchAir does,
// with the former name in `_origin_data_name`. An input whose new name exists already stays Data.
Status MakeRefData(const OpRegistry& registry, Graph* graph);

// Writes the types of outputs into NetOutput where it says no shape. `types` is empty, or by
// output.
void DeclareOutputs(const std::vector<TensorType>& types, Graph* graph);

// ExportOptions::dynamic. Error (kInvalidArgument): an open dimension in a static export.
Status OpenDimensions(bool dynamic, Graph* graph);

// For a dynamic export: descriptors of the values between inputs and outputs say what is known of
// them, -1 for a dimension that an open one decides. Those of NetOutput stay, as OpenDimensions
// leaves them. `groups` may be null: what collectives give is unknown then. Errors as InputsOf.
Status DescribeInnerTensors(const OpRegistry& registry, GroupProvider* groups, Model* model);

// Data first, then RefData, both in the order their indexes had: 0, 1, ...
void NumberInputs(Graph* graph);

// ExportOptions::enable_record_nn_module_stack.
void FilterModuleStacks(bool record, Graph* graph);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_EXPORT_GRAPH_H_
