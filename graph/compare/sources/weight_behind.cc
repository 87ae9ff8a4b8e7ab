#include "graph/compare/sources/weight_behind.h"

#include "graph/compare/sources/tensor_source.h"
#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

const Node* WeightBehind(const Graph& graph, const std::vector<bool>& constant, Value value) {
  for (;;) {
    const Node& node = graph.node(value.node);
    if (IsWeightNode(node)) return &node;
    if (!constant[static_cast<size_t>(node.id)] || node.inputs.empty() || !node.inputs[0]) {
      return nullptr;
    }
    value = *node.inputs[0];
  }
}

std::string WeightFileName(const Node& weight) {
  if (!IsFileConstant(weight)) return "";
  std::string path = weight.StringAttr("location", "");
  if (path.empty()) path = weight.StringAttr("file_path", "");
  const size_t last = path.rfind('/');
  if (path.starts_with('/') || last == std::string::npos || last == 0) return path;
  const size_t before = path.rfind('/', last - 1);
  return before == std::string::npos ? path : path.substr(before + 1);
}

std::string WeightText(const Node& weight) {
  const std::string file = WeightFileName(weight);
  return file.empty() ? weight.name : fmt::format("{} ({})", weight.name, file);
}

const Node* FindByKey(const Graph& graph, const std::string& key) {
  for (const Node& node : graph.nodes()) {
    if (!node.removed && OperatorKey(node.name) == key) return &node;
  }
  return nullptr;
}

}  // namespace npumesh
