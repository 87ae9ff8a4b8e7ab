#include "graph/compare/sources/graph_that_ran.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graph/compare/sources/input_numbers.h"
#include "graph/io/weights.h"
#include "graph/passes/analysis/bound_graph.h"
#include "graph/session/prepare_model.h"

namespace npumesh {
namespace {

// How many elements of a square matrix are those of `weight`, and of its transposition.
std::pair<int64_t, int64_t> Matches(const Tensor& dumped, const Tensor& weight) {
  const auto size = static_cast<size_t>(weight.shape()[0]);
  const size_t bytes = BitsOf(weight.dtype()) / 8;
  std::pair<int64_t, int64_t> matches;
  for (size_t row = 0; row < size; ++row) {
    for (size_t column = 0; column < size; ++column) {
      const auto* const element = dumped.data() + (row * size + column) * bytes;
      const auto is = [&](size_t at) {
        return std::memcmp(element, weight.data() + at * bytes, bytes) == 0 ? 1 : 0;
      };
      matches.first += is(row * size + column);
      matches.second += is(column * size + row);
    }
  }
  return matches;
}

bool IsTransposition(const Tensor& dumped, const Tensor& weight) {
  if (dumped.dtype() != weight.dtype() || weight.shape().rank() != 2) return false;
  if (dumped.shape() != Shape({weight.shape()[1], weight.shape()[0]})) return false;
  if (dumped.shape() != weight.shape()) return true;
  if (BitsOf(weight.dtype()) % 8 != 0) return false;
  const auto [straight, turned] = Matches(dumped, weight);
  return turned > straight;
}

// The tensor that the dump has for a slot of a node; an error when it has none.
Result<Tensor> DumpedAt(const TensorSource& source, const BoundGraph& bound, NodeId id, int slot) {
  const Node& node = bound.node(id);
  const std::vector<size_t> fed = DumpedInputs(node, bound.registry());
  const auto input = static_cast<size_t>(bound.context(id).input_index(slot));
  const auto number = std::find(fed.begin(), fed.end(), input) - fed.begin();
  return source.Load(OperatorKey(node.name), Side::kInput, static_cast<int>(number));
}

// The trait of a product that can read its right operand transposed; null: another operator.
const ProductTrait* ProductOf(const BoundGraph& bound, NodeId id) {
  if (!bound.bound(id) || !bound.op(id)->axes.product()) return nullptr;
  const ProductTrait& product = *bound.op(id)->axes.product();
  return product.right_transposed.empty() ? nullptr : &product;
}

// The product reads a weight of the graph, and the dump holds that weight the other way round.
bool RanTurned(const BoundGraph& bound, NodeId id, const std::string& path,
               const TensorSource& source) {
  const ProductTrait* const product = ProductOf(bound, id);
  if (product == nullptr || source.Find(OperatorKey(bound.node(id).name)) == nullptr) return false;
  const int slot = bound.context(id).slot(product->right);
  const std::optional<Value> value = bound.SlotValue(id, slot);
  if (!value || !IsWeightNode(bound.node(value->node))) return false;
  const Result<Tensor> dumped = DumpedAt(source, bound, id, slot);
  if (!dumped.ok()) return false;
  const Result<Tensor> weight = LoadWeight(bound.node(value->node), path);
  return weight.ok() && IsTransposition(*dumped, *weight);
}

void TurnAsDumped(Model& model, const OpRegistry& registry, const TensorSource& source) {
  std::vector<std::pair<NodeId, std::string>> turned;  // a product, and its attribute
  const BoundGraph bound(model.graph, registry);
  for (const Node& node : model.graph.nodes()) {
    if (node.removed || !RanTurned(bound, node.id, model.path, source)) continue;
    turned.emplace_back(node.id, bound.op(node.id)->axes.product()->right_transposed);
  }
  for (const auto& [id, attribute] : turned) {
    Node& product = model.graph.node(id);
    const bool before = product.BoolAttr(attribute, false);
    product.attrs.insert_or_assign(attribute, AttrValue::Bool(!before));
  }
}

}  // namespace

Model GraphThatRan(Model model, const OpRegistry& registry, const TensorSource& source) {
  if (!model.graph.Verify().ok()) return model;
  Model prepared = model;
  if (!PrepareModel(prepared, SessionOptions(), registry).ok()) return model;
  TurnAsDumped(prepared, registry, source);
  return prepared;
}

}  // namespace npumesh
