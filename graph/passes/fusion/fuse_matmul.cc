// MatMulBiasActivationFusionPass: a product, the bias that is added to it, and the activation of
// the sum.
#include "graph/ops/matmul/matmul_ops.h"
#include "graph/ops/toolbox/formula/formula_chain.h"
#include "graph/passes/fusion/fusion_view.h"

namespace npumesh {
namespace {

// What follows a product, and what each does when it has to follow as a link of a chain.
struct Tail {
  NodeId bias = kNoNode;
  int bias_slot = -1;  // of `bias`: the vector
  ChainLink bias_link;
  NodeId activation = kNoNode;
  ChainLink activation_link;
  std::string_view why_not;  // with neither
};

class MatMulFinder {
 public:
  explicit MatMulFinder(FusionView& view) : view_(view) {}

  void Try(NodeId product) {
    const std::string_view why = WhyNot(product);
    if (!why.empty()) view_.Refuse(kMatMulFusionPass, product, why);
  }

 private:
  // Takes the product with its tail, or says why not.
  std::string_view WhyNot(NodeId product) {
    const TensorType& y = view_.context(product).out(0);
    if (!IsFloating(y.dtype)) return "the product is not of floats";
    if (y.shape.elements() == 0) return "the product has no elements";
    const Tail tail = TailOf(product);
    if (!tail.why_not.empty()) return tail.why_not;
    std::vector<NodeId> nodes = {product};
    for (const NodeId id : {tail.bias, tail.activation}) {
      if (id != kNoNode) nodes.push_back(id);
    }
    const std::string_view why = view_.WhyNotFuse(nodes);
    if (why.empty()) view_.Take(StepOf(std::move(nodes), tail));
    return why;
  }

  static Tail NoTail(std::string_view why) {
    Tail none;
    none.why_not = why;
    return none;
  }

  Tail TailOf(NodeId product) const {
    Tail tail;
    NodeId end = product;
    NodeId next = Follower(end, product);
    if (view_.Is(next, {"Add", "AddV2"})) {
      const int slot = view_.OtherSlot(next, end);
      const std::optional<ChainLink> link = LinkOf(view_.op(next), view_.context(next));
      if (!link || slot < 0 || !IsBias(next, slot)) return NoTail("what is added is no bias");
      tail.bias = end = next;
      tail.bias_slot = slot;
      tail.bias_link = *link;
      next = Follower(end, product);
    }
    if (view_.Is(next, {"Relu", "Gelu", "GeluV2", "FastGelu", "Swish", "Sigmoid", "Tanh"})) {
      const std::optional<ChainLink> link = LinkOf(view_.op(next), view_.context(next));
      if (link) tail.activation = next;
      if (link) tail.activation_link = *link;
    }
    if (tail.bias == kNoNode && tail.activation == kNoNode) {
      tail.why_not = view_.OnlyReader(product) == kNoNode
                         ? "no operator alone reads the product"
                         : "neither a bias nor an activation of its type follows";
    }
    return tail;
  }

  // The only reader of a node, when its output has the type of the product.
  NodeId Follower(NodeId id, NodeId product) const {
    const NodeId reader = view_.OnlyReader(id);
    if (reader == kNoNode || view_.context(reader).outputs() != 1) return kNoNode;
    return view_.context(reader).out(0) == view_.context(product).out(0) ? reader : kNoNode;
  }

  // [n] or [1, .., n], of the type of the sum.
  bool IsBias(NodeId add, int slot) const {
    const TensorType& bias = view_.context(add).in(slot);
    const TensorType& sum = view_.context(add).out(0);
    if (bias.dtype != sum.dtype || bias.shape.rank() == 0) return false;
    const int64_t n = sum.shape.dims().back();
    return bias.shape.elements() == n && bias.shape.dims().back() == n;
  }

  // float32: oneDNN adds the bias, with the bits of Add. Its activations are not used: they lose
  // all digits of Gelu below -5, up to 2 bits of Swish and Sigmoid, and the NaN under a Relu. They,
  // and all that follows a product of 16 bits, which is rounded first, run over the product when it
  // is there.
  FusedStep StepOf(std::vector<NodeId> nodes, const Tail& tail) const {
    const NodeId product = nodes[0];
    const OpContext& context = view_.context(product);
    FusedStep step;
    step.inputs = view_.SlotValues(product);
    int bias_slot = -1;
    const bool plain = context.out(0).dtype == DataType::kFloat;
    const std::string_view bias = view_.op(product).product->bias;
    const bool has_bias = !bias.empty() && context.has(bias);
    std::vector<ChainLink> links;
    std::vector<TensorType> types = {context.out(0)};  // of the product and the links' inputs
    if (tail.bias != kNoNode) {
      const Value added = *view_.SlotValue(tail.bias, tail.bias_slot);
      if (plain && !has_bias) {
        bias_slot = static_cast<int>(step.inputs.size());
      } else {
        links.push_back(tail.bias_link);
        links.back().from = {tail.bias_slot == 0 ? 1 : 0, tail.bias_slot == 0 ? 0 : 1};
        types.push_back(view_.context(tail.bias).in(tail.bias_slot));
      }
      step.inputs.emplace_back(added);
    }
    if (tail.activation != kNoNode) {
      const int from = links.empty() ? 0 : -1;
      links.push_back(tail.activation_link);
      links.back().from = {from};
    }
    step.nodes = std::move(nodes);
    step.make_kernel = [&context, bias_slot, links = std::move(links), types = std::move(types)] {
      return MakeProductAndTail(context, bias_slot, links, types);
    };
    return step;
  }

  FusionView& view_;
};

}  // namespace

void FuseMatMul(FusionView& view) {
  MatMulFinder finder(view);
  for (const NodeId id : view.order()) {
    if (view.Free(id) && view.op(id).product) finder.Try(id);
  }
}

}  // namespace npumesh
