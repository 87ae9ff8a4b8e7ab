#include "launch/run/reader_bounds.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "graph/ir/node_kind.h"

namespace npumesh {
namespace {

// They pass the values and the shape of their first input on.
constexpr std::array<std::string_view, 2> kKeepShape = {"Cast", "Identity"};

template <typename Things, typename Thing>
bool Among(const Things& things, const Thing& thing) {
  return std::find(things.begin(), things.end(), thing) != things.end();
}

std::optional<Value> InputOf(const Node& node, std::string_view port) {
  const int at = node.FindInput(port);
  return at < 0 ? std::nullopt : node.inputs[static_cast<size_t>(at)];
}

// Of a source; nullopt: another node, or not known. A FileConstant says it in an attribute.
std::optional<Shape> ShapeOfSource(const Node& node, size_t port) {
  if (IsFileConstant(node)) return Shape(node.IntsAttr("shape"));
  const bool source = IsInputNode(node) || IsWeightNode(node);
  if (!source || port >= node.output_descs.size()) return std::nullopt;
  return node.output_descs[port].shape;
}

// The least dimension that is known; nullopt: none is.
std::optional<int64_t> LeastDimension(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node);
  if (Among(kKeepShape, node.type) && !node.inputs.empty() && node.inputs[0]) {
    return LeastDimension(graph, *node.inputs[0]);
  }
  const std::optional<Shape> shape = ShapeOfSource(node, static_cast<size_t>(value.port));
  if (!shape || !shape->has_rank()) return std::nullopt;
  std::optional<int64_t> least;
  for (int axis = 0; axis < shape->rank(); ++axis) {
    const int64_t dimension = (*shape)[axis];
    if (dimension > 0 && dimension < least.value_or(dimension + 1)) least = dimension;
  }
  return least;
}

// What `node` asks of positions that it takes from `value`; nullopt: nothing.
std::optional<int64_t> BoundOf(const OpRegistry& registry, const Graph& graph, const Node& node,
                               Value value) {
  const Operator* const op = registry.Find(node.type);
  if (op == nullptr) return std::nullopt;
  for (const AxisLookup& lookup : op->axes.lookups()) {
    if (InputOf(node, lookup.positions) != value) continue;
    const std::optional<Value> data = InputOf(node, lookup.data);
    return data ? LeastDimension(graph, *data) : std::nullopt;
  }
  return std::nullopt;
}

bool HoldsIntegers(const Node& data) {
  return !data.output_descs.empty() && IsInteger(data.output_descs[0].dtype);
}

// Whether output 0 has the values of input 0, in whatever order and shape.
bool PassesOn(const OpRegistry& registry, const Node& node) {
  if (Among(kKeepShape, node.type)) return true;
  const Operator* const op = registry.Find(node.type);
  return op != nullptr && ((op->view && !op->retypes) || !op->axes.permutation().empty());
}

// `data` and what only passes it on.
std::vector<Value> SameValues(const Graph& graph, const OpRegistry& registry, NodeId data) {
  std::vector<Value> same = {{data, 0}};
  for (size_t i = 0; i < same.size(); ++i) {
    for (const Node& node : graph.nodes()) {
      const bool reads = !node.removed && !node.inputs.empty() && node.inputs[0] == same[i];
      if (reads && PassesOn(registry, node)) same.push_back({node.id, 0});
    }
  }
  return same;
}

}  // namespace

std::map<int64_t, int64_t> ReaderBounds(const Model& model, const OpRegistry& registry) {
  std::map<int64_t, int64_t> bounds;
  const Graph& graph = model.graph;
  for (const NodeId data : graph.DataNodes()) {
    if (!HoldsIntegers(graph.node(data))) continue;
    const int64_t index = graph.node(data).IntAttr("index", 0);
    for (const Value value : SameValues(graph, registry, data)) {
      for (const Node& node : graph.nodes()) {
        if (node.removed) continue;
        const std::optional<int64_t> bound = BoundOf(registry, graph, node, value);
        if (!bound) continue;
        const auto [at, first] = bounds.emplace(index, *bound);
        at->second = std::min(at->second, *bound);
      }
    }
  }
  return bounds;
}

}  // namespace npumesh
