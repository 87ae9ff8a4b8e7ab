#include "launch/run/reader_bounds.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace npumesh {
namespace {

// An operator that takes positions, and the tensor in which they are.
struct Lookup {
  std::string_view type;
  std::string_view positions;
  std::string_view tensor;
};

constexpr std::array kLookups = {
    Lookup{"Gather", "indices", "x"},
    Lookup{"GatherV2", "indices", "x"},
    Lookup{"GatherElements", "index", "x"},
    Lookup{"GatherNd", "indices", "x"},
    Lookup{"EmbeddingBag", "indices", "weight"},
    Lookup{"InplaceIndexAdd", "indices", "var"},
    Lookup{"Scatter", "indices", "var"},
    Lookup{"ScatterAdd", "indices", "var"},
    Lookup{"ScatterDiv", "indices", "var"},
    Lookup{"ScatterElements", "indices", "data"},
    Lookup{"ScatterMax", "indices", "var"},
    Lookup{"ScatterMin", "indices", "var"},
    Lookup{"ScatterMul", "indices", "var"},
    Lookup{"ScatterNdAdd", "indices", "var"},
    Lookup{"ScatterNdMax", "indices", "var"},
    Lookup{"ScatterNdSub", "indices", "var"},
    Lookup{"ScatterNdUpdate", "indices", "var"},
    Lookup{"ScatterPaKvCache", "slot_mapping", "key_cache"},
    Lookup{"ScatterSub", "indices", "var"},
    Lookup{"ScatterUpdate", "indices", "var"},
    Lookup{"SparseSoftmaxCrossEntropyWithLogits", "labels", "features"},
};

// They pass the values of their first input on.
constexpr std::array<std::string_view, 8> kPassOn = {
    "Cast", "Identity", "Reshape", "ExpandDims", "Unsqueeze", "Squeeze", "Flatten", "Transpose"};
// And these its shape as well.
constexpr std::array<std::string_view, 2> kKeepShape = {"Cast", "Identity"};

template <typename Things, typename Thing>
bool Among(const Things& things, const Thing& thing) {
  return std::find(things.begin(), things.end(), thing) != things.end();
}

std::optional<Value> InputOf(const Node& node, std::string_view port) {
  const int at = node.FindInput(port);
  return at < 0 ? std::nullopt : node.inputs[static_cast<size_t>(at)];
}

// The least dimension that is known; nullopt: none is.
std::optional<int64_t> LeastDimension(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node);
  if (Among(kKeepShape, node.type) && !node.inputs.empty() && node.inputs[0]) {
    return LeastDimension(graph, *node.inputs[0]);
  }
  constexpr std::array<std::string_view, 5> kSources = {"Data", "RefData", "Const", "Constant",
                                                        "FileConstant"};
  const auto port = static_cast<size_t>(value.port);
  if (!Among(kSources, node.type) || port >= node.output_descs.size()) return std::nullopt;
  const std::optional<Shape>& shape = node.output_descs[port].shape;
  if (!shape || !shape->has_rank()) return std::nullopt;
  std::optional<int64_t> least;
  for (int axis = 0; axis < shape->rank(); ++axis) {
    const int64_t dimension = (*shape)[axis];
    if (dimension > 0 && dimension < least.value_or(dimension + 1)) least = dimension;
  }
  return least;
}

// What `node` asks of positions that it takes from `value`; nullopt: nothing.
std::optional<int64_t> BoundOf(const Graph& graph, const Node& node, Value value) {
  const auto lookup = std::find_if(kLookups.begin(), kLookups.end(),
                                   [&](const Lookup& each) { return each.type == node.type; });
  if (lookup == kLookups.end() || InputOf(node, lookup->positions) != value) return std::nullopt;
  const std::optional<Value> tensor = InputOf(node, lookup->tensor);
  return tensor ? LeastDimension(graph, *tensor) : std::nullopt;
}

bool IsInteger(const Node& data) {
  constexpr std::array kIntegers = {DataType::kInt8,   DataType::kUint8, DataType::kInt16,
                                    DataType::kUint16, DataType::kInt32, DataType::kUint32,
                                    DataType::kInt64,  DataType::kUint64};
  return !data.output_descs.empty() && Among(kIntegers, data.output_descs[0].dtype);
}

// `data` and what only passes it on.
std::vector<Value> SameValues(const Graph& graph, NodeId data) {
  std::vector<Value> same = {{data, 0}};
  for (size_t i = 0; i < same.size(); ++i) {
    for (const Node& node : graph.nodes()) {
      const bool reads = !node.removed && !node.inputs.empty() && node.inputs[0] == same[i];
      if (reads && Among(kPassOn, node.type)) same.push_back({node.id, 0});
    }
  }
  return same;
}

}  // namespace

std::map<int64_t, int64_t> ReaderBounds(const Model& model) {
  std::map<int64_t, int64_t> bounds;
  const Graph& graph = model.graph;
  for (const NodeId data : graph.DataNodes()) {
    if (!IsInteger(graph.node(data))) continue;
    const int64_t index = graph.node(data).IntAttr("index", 0);
    for (const Value value : SameValues(graph, data)) {
      for (const Node& node : graph.nodes()) {
        if (node.removed) continue;
        const std::optional<int64_t> bound = BoundOf(graph, node, value);
        if (!bound) continue;
        const auto [at, first] = bounds.emplace(index, *bound);
        at->second = std::min(at->second, *bound);
      }
    }
  }
  return bounds;
}

}  // namespace npumesh
