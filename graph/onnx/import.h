// ONNX models as models of ours.
#ifndef NPUMESH_GRAPH_ONNX_IMPORT_H_
#define NPUMESH_GRAPH_ONNX_IMPORT_H_

#include <map>
#include <string>

#include "graph/ir/graph.h"
#include "graph/onnx/onnx_model.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// Attribute of NetOutput: how many dimensions each output has, -1 where that is not known. For the
// writer, because sizes that values decide may leave it open what a graph returns.
inline constexpr std::string_view kOutputRanksAttr = "_npumesh_output_ranks";

struct OnnxImportOptions {
  // How many elements an input that is a sequence has, by its name; each becomes an input of ours,
  // `<name>.<i>`. There is no sequence in a graph of ours. An optional with 0 elements is empty.
  std::map<std::string, int> sequence_lengths;
};

// The graph of `model` with operators of `registry`. Inputs and outputs keep names, order and
// types; an output that is a sequence becomes as many outputs as it has elements. Errors:
// kUnsupported with all nodes whose operators have no translation; otherwise the first node that
// cannot be translated, with its name.
Result<Model> ImportOnnx(const OnnxModel& model, const OpRegistry& registry,
                         const OnnxImportOptions& options = {});

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_IMPORT_H_
