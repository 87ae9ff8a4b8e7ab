#include "graph/passes/rewrite/transposed_weights.h"

#include <algorithm>

#include "graph/io/weights.h"
#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {
namespace {

// The integers of a constant of int32 or int64; none where they cannot be read.
std::vector<int64_t> IntegersOf(const Node& node, const std::string& model_path) {
  if (!IsWeightNode(node)) return {};
  const Result<Tensor> tensor = LoadWeight(node, model_path);
  if (!tensor.ok()) return {};
  if (tensor->dtype() == DataType::kInt64) {
    return {tensor->as<int64_t>().begin(), tensor->as<int64_t>().end()};
  }
  if (tensor->dtype() != DataType::kInt32) return {};
  return {tensor->as<int32_t>().begin(), tensor->as<int32_t>().end()};
}

bool SwapsTwo(const std::vector<int64_t>& perm) {
  return perm.size() == 2 && (perm[0] == 1 || perm[0] == -1) && (perm[1] == 0 || perm[1] == -2);
}

// The matrix that a node transposes; nullopt: it is no Transpose of a weight.
std::optional<Value> TransposedWeight(const BoundGraph& bound, NodeId id,
                                      const std::string& model_path) {
  const Node& node = bound.node(id);
  if (!bound.bound(id) || bound.op(id)->axes.permutation().empty()) return std::nullopt;
  const std::optional<Value> weight = bound.SlotValue(id, 0);
  if (!weight || !IsWeightNode(bound.node(weight->node))) return std::nullopt;
  const Operator& op = *bound.op(id);
  const bool by_attribute =
      std::any_of(op.schema.attrs.begin(), op.schema.attrs.end(),
                  [&](const AttrSpec& attr) { return attr.name == op.axes.permutation(); });
  if (by_attribute) return SwapsTwo(node.IntsAttr(op.axes.permutation())) ? weight : std::nullopt;
  const std::optional<Value> perm =
      bound.SlotValue(id, bound.context(id).slot(op.axes.permutation()));
  const bool swaps = perm && SwapsTwo(IntegersOf(bound.node(perm->node), model_path));
  return swaps ? weight : std::nullopt;
}

}  // namespace

void ReadTransposedWeights(Model& model, const OpRegistry& registry) {
  struct Change {
    NodeId product;
    size_t input;
    NodeId transpose;
    Value weight;
    std::string attribute;  // of the product: the operand is transposed
  };
  std::vector<Change> changes;
  const BoundGraph bound(model.graph, registry);
  for (const Node& node : model.graph.nodes()) {
    if (!bound.bound(node.id) || !bound.op(node.id)->axes.product()) continue;
    const ProductTrait& product = *bound.op(node.id)->axes.product();
    const OpContext& context = bound.context(node.id);
    const int slot = context.slot(product.right);
    const int input = context.input_index(slot);
    const std::optional<Value> right = bound.SlotValue(node.id, slot);
    if (input < 0 || !right || right->port != 0) continue;
    const std::optional<Value> weight = TransposedWeight(bound, right->node, model.path);
    if (weight) {
      changes.push_back({node.id, static_cast<size_t>(input), right->node, *weight,
                         std::string(product.right_transposed)});
    }
  }
  for (const Change& change : changes) {
    Node& product = model.graph.node(change.product);
    product.inputs[change.input] = change.weight;
    const Node& transpose = model.graph.node(change.transpose);
    product.input_descs[change.input].shape = transpose.input_descs[0].shape;
    const bool before = product.BoolAttr(change.attribute, false);
    product.attrs.insert_or_assign(change.attribute, AttrValue::Bool(!before));
  }
}

}  // namespace npumesh
