#include "graph/passes/analysis/operator_check.h"

#include <fmt/ranges.h>

#include <map>

namespace npumesh {
namespace {

struct MissingType {
  int nodes = 0;
  std::string example;
  bool registered = false;
};

bool CanRun(const Operator* op) {
  return op != nullptr && (op->view || op->make_kernel != nullptr || op->late());
}

std::string Describe(const OpRegistry& registry, const std::string& type,
                     const MissingType& missing) {
  std::string line = fmt::format("\n  {}: {} node{}, for example \"{}\"", type, missing.nodes,
                                 missing.nodes == 1 ? "" : "s", missing.example);
  if (missing.registered) return line + "; known, but without a kernel";
  const std::vector<std::string> nearest = registry.Nearest(type);
  if (!nearest.empty()) line += fmt::format("; similar: {}", fmt::join(nearest, ", "));
  return line;
}

}  // namespace

Status CheckOperators(const BoundGraph& graph, const std::vector<bool>& needed) {
  std::map<std::string, MissingType> missing;
  std::string misfits;
  int misfit_count = 0;
  for (const Node& node : graph.graph().nodes()) {
    if (!needed[static_cast<size_t>(node.id)] || IsFurniture(node)) continue;
    const Operator* op = graph.op(node.id);
    if (!CanRun(op)) {
      MissingType& entry = missing[node.type];
      if (entry.nodes++ == 0) entry.example = node.name;
      entry.registered = op != nullptr;
    } else if (const Status& failure = graph.failure(node.id); !failure.ok()) {
      misfits += fmt::format("\n  {}", failure.message());
      ++misfit_count;
    }
  }
  if (missing.empty() && misfit_count == 0) return Status();
  std::string text;
  if (!missing.empty()) {
    text = fmt::format(
        "graph \"{}\": {} operator type{} cannot be run; --op-library loads some of one's own:",
        graph.graph().name(), missing.size(), missing.size() == 1 ? "" : "s");
    for (const auto& [type, entry] : missing) text += Describe(graph.registry(), type, entry);
  }
  if (misfit_count > 0) {
    text += text.empty() ? fmt::format("graph \"{}\": ", graph.graph().name()) : "\n  moreover ";
    text += fmt::format("{} node{} not fit the operator's interface:{}", misfit_count,
                        misfit_count == 1 ? " does" : "s do", misfits);
  }
  return Error(missing.empty() ? Code::kCorrupt : Code::kUnsupported, "{}", text);
}

}  // namespace npumesh
