// ONNX models as models of ours.
#ifndef NPUMESH_GRAPH_ONNX_IMPORT_H_
#define NPUMESH_GRAPH_ONNX_IMPORT_H_

#include <functional>
#include <map>
#include <string>

#include "graph/ir/graph.h"
#include "graph/onnx/onnx_model.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// Attribute of NetOutput: how many dimensions each output has, -1 where that is not known. For the
// writer, because sizes that values decide may leave it open what a graph returns.
inline constexpr std::string_view kOutputRanksAttr = "_npumesh_output_ranks";

// Attribute of a Data node: the names of its dimensions in the model, "" for one without a name;
// not there where no dimension has one.
inline constexpr std::string_view kDimNamesAttr = "_npumesh_dim_names";

struct OnnxImportOptions {
  // Shapes of inputs that the model leaves open, by name; dimensions of -1 stay open.
  std::map<std::string, Shape> shapes;
  // Inputs that are constants from now on, by name, with values of their types.
  std::map<std::string, Tensor> values;
  // How many elements an input that is a sequence has, by its name; each becomes an input of ours,
  // `<name>.<i>`. There is no sequence in a graph of ours. An optional with 0 elements is empty.
  std::map<std::string, int> sequence_lengths;
  // Told in a line each what was put right in the model; null: it is not told.
  std::function<void(const std::string&)> note;
};

// The graph of `model` with operators of `registry`. Inputs and outputs keep names, order and
// types; an output that is a sequence becomes as many outputs as it has elements. Nodes may stand
// in any order. Errors: all at once, those of nodes by their names: operators without a
// translation, nodes that cannot be translated (what hangs on them is not read), nodes that
// read each other in a circle, names that nothing makes; shapes and values that do not fit their
// input (kInvalidArgument).
Result<Model> ImportOnnx(const OnnxModel& model, const OpRegistry& registry,
                         const OnnxImportOptions& options = {});

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_IMPORT_H_
