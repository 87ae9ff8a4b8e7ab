#include "graph/onnx/node_order.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace npumesh {
namespace {

// Names that `graph` reads and does not have.
void AddFreeNames(const OnnxGraph& graph, std::set<std::string>& names) {
  std::set<std::string> read, made;
  for (const OnnxNode& node : graph.nodes) {
    read.merge(NamesReadBy(node));
    made.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const OnnxValueInfo& output : graph.outputs) read.insert(output.name);
  for (const OnnxValueInfo& input : graph.inputs) made.insert(input.name);
  for (const auto& [name, tensor] : graph.initialisers) made.insert(name);
  std::set_difference(read.begin(), read.end(), made.begin(), made.end(),
                      std::inserter(names, names.end()));
}

// For each node the nodes of the list that make what it reads.
std::vector<std::vector<size_t>> MakersOf(const std::vector<OnnxNode>& nodes) {
  std::unordered_map<std::string, size_t> maker;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].outputs) {
      if (!name.empty()) maker.emplace(name, i);
    }
  }
  std::vector<std::vector<size_t>> makers(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : NamesReadBy(nodes[i])) {
      const auto found = maker.find(name);
      if (found != maker.end()) makers[i].push_back(found->second);
    }
  }
  return makers;
}

// Nodes that no order can have: each reads the next one, the last one the first.
Status Circle(const std::vector<OnnxNode>& nodes, const std::vector<std::vector<size_t>>& makers,
              const std::vector<bool>& placed) {
  size_t now = static_cast<size_t>(std::find(placed.begin(), placed.end(), false) - placed.begin());
  std::vector<size_t> path;
  while (std::find(path.begin(), path.end(), now) == path.end()) {
    path.push_back(now);
    now = *std::find_if(makers[now].begin(), makers[now].end(),
                        [&](size_t each) { return !placed[each]; });
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), now));
  constexpr size_t kMostNames = 8;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(path.size(), kMostNames); ++i) {
    names.push_back(nodes[path[i]].Who());
  }
  return Error(Code::kCorrupt, "{} node{} read{} each other in a circle: {}{}", path.size(),
               path.size() == 1 ? "" : "s", path.size() == 1 ? "s" : "", fmt::join(names, ", "),
               path.size() > kMostNames ? " .." : "");
}

// Puts nodes in order; returns how many stood before one that they read.
Result<size_t> Sort(std::vector<OnnxNode>& nodes) {
  const std::vector<std::vector<size_t>> makers = MakersOf(nodes);
  size_t moved = 0;
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> missing(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    moved += std::any_of(makers[i].begin(), makers[i].end(), [i](size_t j) { return j >= i; });
    missing[i] = makers[i].size();
    for (const size_t j : makers[i]) readers[j].push_back(i);
  }
  if (moved == 0) return moved;
  // Of those that can come next, the first of the file.
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> next;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (missing[i] == 0) next.push(i);
  }
  std::vector<OnnxNode> sorted;
  std::vector<bool> placed(nodes.size());
  while (!next.empty()) {
    const size_t i = next.top();
    next.pop();
    placed[i] = true;
    sorted.push_back(nodes[i]);
    for (const size_t reader : readers[i]) {
      if (--missing[reader] == 0) next.push(reader);
    }
  }
  if (sorted.size() < nodes.size()) return Circle(nodes, makers, placed);
  nodes = std::move(sorted);
  return moved;
}

// The same in the graphs of attributes as well.
Result<size_t> SortAll(std::vector<OnnxNode>& nodes) {
  NPUMESH_ASSIGN_OR_RETURN(size_t moved, Sort(nodes));
  for (OnnxNode& node : nodes) {
    for (OnnxAttribute& attribute : node.attributes) {
      if (attribute.graph == nullptr) continue;
      OnnxGraph graph = *attribute.graph;
      NPUMESH_ASSIGN_OR_RETURN(const size_t inside, SortAll(graph.nodes));
      if (inside > 0) attribute.graph = std::make_shared<OnnxGraph>(std::move(graph));
      moved += inside;
    }
  }
  return moved;
}

bool IsInOrder(const std::vector<OnnxNode>& nodes) {
  const std::vector<std::vector<size_t>> makers = MakersOf(nodes);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (std::any_of(makers[i].begin(), makers[i].end(), [i](size_t j) { return j >= i; })) {
      return false;
    }
    for (const OnnxAttribute& attribute : nodes[i].attributes) {
      if (attribute.graph != nullptr && !IsInOrder(attribute.graph->nodes)) return false;
    }
  }
  return true;
}

}  // namespace

std::set<std::string> NamesReadBy(const OnnxNode& node) {
  std::set<std::string> names;
  for (const std::string& name : node.inputs) {
    if (!name.empty()) names.insert(name);
  }
  for (const OnnxAttribute& attribute : node.attributes) {
    if (attribute.graph != nullptr) AddFreeNames(*attribute.graph, names);
  }
  return names;
}

Result<std::optional<SortedModel>> InOrder(const OnnxModel& model) {
  bool in_order = IsInOrder(model.graph.nodes);
  for (const OnnxFunction& function : model.functions) in_order &= IsInOrder(function.nodes);
  if (in_order) return std::optional<SortedModel>();
  SortedModel sorted{model};
  NPUMESH_ASSIGN_OR_RETURN(sorted.moved, SortAll(sorted.model.graph.nodes));
  for (OnnxFunction& function : sorted.model.functions) {
    NPUMESH_ASSIGN_OR_RETURN(const size_t moved, SortAll(function.nodes));
    sorted.moved += moved;
  }
  return std::optional(std::move(sorted));
}

}  // namespace npumesh
