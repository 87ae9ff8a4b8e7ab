#include "tests/fuzz/engine/saved_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>

#include "graph/io/model_file.h"
#include "graph/io/npy.h"
#include "tests/fuzz/engine/interpreter.h"

namespace npumesh::fuzz {
namespace {

std::string Numbers(const PlainTensor& x) {
  std::vector<double> first;
  for (int64_t i = 0; i < std::min<int64_t>(x.count(), 24); ++i) {
    first.push_back(static_cast<double>(x.at(i)));
  }
  return fmt::format("{} {}{}", TensorType{x.dtype, Shape(x.dims)}.ToString(), first,
                     x.count() > 24 ? " ..." : "");
}

std::string TextOf(const AttrValue& value) {
  if (const auto* i = value.get<int64_t>()) return std::to_string(*i);
  if (const auto* f = value.get<float>()) return std::to_string(*f);
  if (const auto* b = value.get<bool>()) return *b ? "true" : "false";
  if (const auto* s = value.get<std::string>()) return *s;
  if (const auto* list = value.get<ListAttr>()) return fmt::format("{}", list->i);
  return std::string(value.kind());
}

std::string LineOf(const Graph& graph, const Node& node) {
  std::string line = fmt::format("{} = {}(", node.name, node.type);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i]) continue;
    const Value value = *node.inputs[i];
    line += fmt::format("{}{}={}:{}", i == 0 ? "" : ", ", node.input_descs[i].name,
                        graph.node(value.node).name, value.port);
  }
  line += ")";
  if (node.type == "Const") return line + " " + Numbers(ConstantOf(node)) + "\n";
  for (const auto& [name, value] : node.attrs) line += fmt::format(" {}={}", name, TextOf(value));
  if (!node.subgraphs.empty()) line += fmt::format(" graphs={}", node.subgraphs);
  for (const NodeId control : node.controls) {
    line += fmt::format(" after {}", graph.node(control).name);
  }
  return line + "\n";
}

std::string TextOf(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    if (!node.removed) text += "  " + LineOf(graph, node);
  }
  return text;
}

}  // namespace

std::string Describe(const FuzzCase& fuzzed) {
  std::string text = TextOf(fuzzed.model.graph);
  for (const Graph& graph : fuzzed.model.subgraphs) {
    text += fmt::format("  graph {}:\n{}", graph.name(), TextOf(graph));
  }
  for (size_t s = 0; s < fuzzed.steps.size(); ++s) {
    for (size_t i = 0; i < fuzzed.steps[s].size(); ++i) {
      const Tensor& fed = fuzzed.steps[s][i];
      const bool keeps = fed.dtype() == DataType::kUndefined;
      text += fmt::format("  step {} input {}: {}\n", s, i,
                          keeps ? "keeps its content" : Numbers(FromTensor(fed)));
    }
  }
  if (!fuzzed.parameters.empty()) text += fmt::format("  parameters {}\n", fuzzed.parameters);
  return text;
}

Status SaveCase(const FuzzCase& fuzzed, const std::string& folder, const std::string& why) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return Error(Code::kIo, "{}: {}", folder, failed.message());
  NPUMESH_RETURN_IF_ERROR(SaveAir(fuzzed.model, folder + "/case.air"));
  for (size_t s = 0; s < fuzzed.steps.size(); ++s) {
    for (size_t i = 0; i < fuzzed.steps[s].size(); ++i) {
      const Tensor& fed = fuzzed.steps[s][i];
      if (fed.dtype() == DataType::kUndefined) continue;
      NPUMESH_RETURN_IF_ERROR(WriteNpy(fmt::format("{}/step{}_input{}.npy", folder, s, i), fed));
    }
  }
  std::ofstream(folder + "/case.txt") << why << "\n" << Describe(fuzzed);
  return Status();
}

}  // namespace npumesh::fuzz
