// MatMulBiasActivationFusionPass: a product, the bias and the residual that are added to it, and
// the activation of the sum.
#include <utility>

#include "graph/ops/matmul/matmul_ops.h"
#include "graph/ops/toolbox/machine/block_program.h"
#include "graph/passes/fusion/fusion_view.h"

namespace npumesh {
namespace {

// An Add.
struct ProductSum {
  NodeId add = kNoNode;
  int slot = -1;  // of what is added

  bool found() const { return add != kNoNode; }
};

// What follows a product.
struct Tail {
  ProductSum bias;      // a vector
  ProductSum residual;  // a tensor like the product
  NodeId activation = kNoNode;
  std::string_view why_not;  // with neither
};

// Writes what is computed from each element of a product: input 0 of the program.
class TailWriter {
 public:
  TailWriter(const FusionView& view, const TensorType& product)
      : view_(view), loop_(product.shape, LoopTarget::kBlocks), types_{product} {}

  bool empty() const { return value_ < 0; }

  // An operator that reads what was computed last, and in slot `added` the next input; -1: nothing
  // else.
  void Add(NodeId id, int added) {
    const OpContext& op = view_.context(id);
    std::vector<LoopValue> fed(static_cast<size_t>(op.slots()), value_);
    std::vector<int> places(static_cast<size_t>(op.slots()), 0);
    if (added >= 0) {
      fed[static_cast<size_t>(added)] = -1;
      places[static_cast<size_t>(added)] = static_cast<int>(types_.size());
      types_.push_back(op.in(added));
    }
    loop_.Begin(op, op.out(0).shape, std::move(fed), std::move(places));
    view_.op(id).loop(op, loop_);
    value_ = loop_.result();
  }

  // nullopt: nothing was added.
  std::optional<BlockProgram> Finish() {
    if (empty()) return std::nullopt;
    const TensorType product = types_[0];
    loop_.Write(value_, product.dtype);
    return BlocksOf(loop_.Finish(), std::move(types_), product);
  }

 private:
  const FusionView& view_;
  LoopBuilder loop_;
  std::vector<TensorType> types_;  // of the inputs
  LoopValue value_ = -1;
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
    for (const NodeId id : {tail.bias.add, tail.residual.add, tail.activation}) {
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
    ProductSum sum = SumAfter(end, product);
    if (sum.found() && IsBias(sum)) {
      end = sum.add;
      tail.bias = std::exchange(sum, SumAfter(end, product));
    }
    if (sum.found() && WhyNoResidual(sum, product).empty()) {
      end = sum.add;
      tail.residual = std::move(sum);
    } else if (sum.found() && !tail.bias.found()) {
      return NoTail(WhyNoResidual(sum, product));
    }
    const NodeId next = Follower(end, product);
    if (view_.Is(next, {"Relu", "Gelu", "GeluV2", "FastGelu", "Swish", "Sigmoid", "Tanh"})) {
      if (ComputesInBlocks(view_.op(next), view_.context(next))) tail.activation = next;
    }
    if (end == product && tail.activation == kNoNode) {
      tail.why_not = view_.OnlyReader(product) == kNoNode
                         ? "no operator alone reads the product"
                         : "neither a sum nor an activation of its type follows";
    }
    return tail;
  }

  // The Add that alone reads a node, if it has the type of the product.
  ProductSum SumAfter(NodeId id, NodeId product) const {
    const NodeId add = Follower(id, product);
    if (!view_.Is(add, {"Add", "AddV2"})) return {};
    if (!ComputesInBlocks(view_.op(add), view_.context(add))) return {};
    const int slot = view_.OtherSlot(add, id);
    return slot >= 0 ? ProductSum{add, slot} : ProductSum{};
  }

  // The only reader of a node, when its output has the type of the product.
  NodeId Follower(NodeId id, NodeId product) const {
    const NodeId reader = view_.OnlyReader(id);
    if (reader == kNoNode || view_.context(reader).outputs() != 1) return kNoNode;
    return view_.context(reader).out(0) == view_.context(product).out(0) ? reader : kNoNode;
  }

  const TensorType& Added(const ProductSum& sum) const {
    return view_.context(sum.add).in(sum.slot);
  }

  // [n] or [1, .., n], of the type of the sum.
  bool IsBias(const ProductSum& sum) const {
    const TensorType& bias = Added(sum);
    const TensorType& y = view_.context(sum.add).out(0);
    if (bias.dtype != y.dtype || bias.shape.rank() == 0) return false;
    const int64_t n = y.shape.dims().back();
    return bias.shape.elements() == n && bias.shape.dims().back() == n;
  }

  // A product that waited for what is added would no longer run beside the collective that gives
  // it, or before what has to wait for one.
  std::string_view WhyNoResidual(const ProductSum& sum, NodeId product) const {
    if (Added(sum) != view_.context(sum.add).out(0)) {
      return "what is added is neither a bias nor like the product";
    }
    const NodeId maker = MakerBehindViews(*view_.SlotValue(sum.add, sum.slot));
    if (!view_.Runs(maker)) return "";
    if (view_.op(maker).collective) return "a collective gives what is added";
    return view_.Place(maker) > view_.Place(product) ? "what is added is computed after it" : "";
  }

  NodeId MakerBehindViews(Value value) const {
    while (view_.Runs(value.node) && view_.op(value.node).view) {
      value = *view_.SlotValue(value.node, 0);
    }
    return value.node;
  }

  // float32: the product adds bias and residual itself, with the bits of Add. Activations of oneDNN
  // are not used: they lose all digits of Gelu below -5, up to 2 bits of Swish and Sigmoid, and the
  // NaN under a Relu. They, and all that follows a product of 16 bits, which is rounded first, run
  // over the product when it is there.
  FusedStep StepOf(std::vector<NodeId> nodes, const Tail& tail) const {
    const NodeId product = nodes[0];
    const OpContext& context = view_.context(product);
    FusedStep step;
    step.inputs = view_.SlotValues(product);
    ProductSums sums;
    TailWriter writer(view_, context.out(0));
    const auto add = [&](const ProductSum& sum, bool by_product, int& slot) {
      if (!sum.found()) return;
      if (by_product) {
        slot = static_cast<int>(step.inputs.size());
      } else {
        writer.Add(sum.add, sum.slot);
      }
      step.inputs.emplace_back(*view_.SlotValue(sum.add, sum.slot));
    };
    const bool plain = context.out(0).dtype == DataType::kFloat;
    const std::string_view bias = view_.op(product).axes.product()->bias;
    const bool has_bias = !bias.empty() && context.has(bias);
    add(tail.bias, plain && !has_bias, sums.bias);
    add(tail.residual, plain && writer.empty(), sums.residual);
    if (tail.activation != kNoNode) writer.Add(tail.activation, -1);
    step.nodes = std::move(nodes);
    step.make_kernel = [&context, sums, after = writer.Finish()] {
      return MakeProductAndTail(context, sums, after);
    };
    return step;
  }

  FusionView& view_;
};

}  // namespace

void FuseMatMul(FusionView& view) {
  MatMulFinder finder(view);
  for (const NodeId id : view.order()) {
    if (view.Free(id) && view.op(id).axes.product()) finder.Try(id);
  }
}

}  // namespace npumesh
