// AttentionFusionPass: attention as frameworks write it out,
//
//   out = softmax(mask(scale * (q k^T) + shift)) v
//
// with the last dimension of the scores normalised, in float32, float16 or bfloat16. Views, casts
// to float32 and back, and operators that only repeat or rearrange q, k and v may stand between.
// The scores then exist one tile at a time, in float32, as in FusedInferAttentionScore.
#include <algorithm>

#include "graph/ops/attention/attention.h"
#include "graph/ops/core/type_set.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/passes/fusion/attention_operand.h"

namespace npumesh {
namespace {

using attention::AttentionPlan;
using attention::HeadTensor;
using attention::KeyValue;
using attention::ScoreTensor;

// A mask or shift: what `node` reads in `slot`.
struct Place {
  NodeId node = kNoNode;
  int slot = 0;
};

// What one attention consists of. Rows of scores belong to queries, columns to keys.
struct AttentionMatch {
  std::vector<NodeId> nodes;
  NodeId scores = kNoNode;  // q k^T
  NodeId sum = kNoNode;     // the product with v
  float scale = 1;
  std::optional<Place> mask;
  bool mask_keeps = false;
  float mask_value = 0;
  std::optional<Place> shift;
};

// Its tensors, by slot of the kernel: q, k, v, and the mask and the shift if there are any.
struct Operands {
  AttentionOperand q, k, v;
  std::optional<AttentionOperand> mask;
  std::optional<AttentionOperand> shift;

  std::vector<const AttentionOperand*> by_query() const {
    std::vector<const AttentionOperand*> list = {&q};
    if (mask) list.push_back(&*mask);
    if (shift) list.push_back(&*shift);
    return list;
  }
};

constexpr int kQuery = 0;
constexpr int kKey = 1;
constexpr int kValue = 2;
constexpr int kMask = 3;  // or the shift, when there is no mask

HeadTensor HeadsOf(int slot, const AttentionOperand& from, int64_t batches, int64_t heads,
                   const HeadStrides& strides) {
  HeadTensor to;
  to.slot = slot;
  to.dtype = from.dtype;
  to.batches = batches;
  to.heads = heads;
  to.rows = from.rows;
  to.width = from.columns;
  to.row_stride = from.row_stride;
  to.head_stride = strides.head;
  to.batch_stride = strides.batch;
  return to;
}

// The output, in C order.
HeadTensor OutputHeads(const HeadTensor& q, int64_t width, DataType dtype) {
  HeadTensor to = q;
  to.slot = 0;
  to.dtype = dtype;
  to.width = width;
  to.row_stride = width;
  to.head_stride = q.rows * width;
  to.batch_stride = q.heads * to.head_stride;
  return to;
}

ScoreTensor Scores(int slot, const AttentionOperand& from, const HeadStrides& strides) {
  ScoreTensor to;
  to.slot = slot;
  to.dtype = from.dtype;
  to.batch_stride = strides.batch;
  to.head_stride = strides.head;
  to.row_stride = from.row_stride;
  to.rows = from.rows;
  to.columns = from.columns;
  return to;
}

// `value` as a tensor of this type holds it.
float Stored(double value, DataType dtype) {
  auto stored = static_cast<float>(value);
  if (dtype == DataType::kFloat) return stored;
  uint16_t half = 0;
  FindConvert(DataType::kFloat, dtype)(&stored, &half, 1);
  FindConvert(dtype, DataType::kFloat)(&half, &stored, 1);
  return stored;
}

class AttentionFinder {
 public:
  explicit AttentionFinder(FusionView& view) : view_(view), finder_(view) {}

  void Try(NodeId softmax) {
    match_ = {};
    match_.nodes = {softmax};
    scaled_ = false;
    const std::string_view why = WhyNot(softmax);
    if (!why.empty()) view_.Refuse(kAttentionFusionPass, softmax, why);
  }

 private:
  // Takes the attention around the softmax, or says what is in the way, as do the functions that
  // find its parts.
  std::string_view WhyNot(NodeId softmax) {
    std::string_view why = FindScores(softmax);
    if (why.empty()) why = FindSum(softmax);
    if (!why.empty()) return why;
    Operands operands;
    why = FindOperands(operands);
    if (!why.empty()) return why;
    const std::optional<AttentionPlan> plan = Plan(operands);
    if (!plan) return "its tensors count their heads in different ways";
    FusedStep step;
    step.inputs = {operands.q.value, operands.k.value, operands.v.value};
    if (operands.mask) step.inputs.push_back(operands.mask->value);
    if (operands.shift) step.inputs.push_back(operands.shift->value);
    why = view_.WhyNotFuse(match_.nodes, step.inputs);
    if (!why.empty()) return why;
    step.make_kernel = [plan = *plan] { return attention::MakeAttentionKernel(plan); };
    step.nodes = std::move(match_.nodes);
    view_.Take(std::move(step));
    return "";
  }

  const TensorType& in(NodeId id, int slot) const { return view_.context(id).in(slot); }
  const TensorType& out(NodeId id) const { return view_.context(id).out(0); }

  bool NormalisesLast(NodeId softmax) const {
    const TensorType& scores = out(softmax);
    const int rank = scores.shape.rank();
    const std::vector<int64_t> axes = view_.context(softmax).attr_ints("axes");
    const bool last = axes.size() == 1 && (axes[0] == -1 || axes[0] == rank - 1);
    return last && kFloats.Contains(scores.dtype) && rank >= 2 && scores.shape.elements() > 0;
  }

  bool IsProduct(NodeId id) const {
    if (!view_.Free(id) || !view_.op(id).axes.product()) return false;
    const OpContext& op = view_.context(id);
    if (!kFloats.Contains(out(id).dtype) || out(id).shape.rank() < 2) return false;
    for (const int slot : {0, 1}) {
      const Shape& shape = in(id, slot).shape;
      if (shape.rank() < 2 || shape.elements() == 0) return false;
    }
    const std::string_view bias = view_.op(id).axes.product()->bias;
    return bias.empty() || !op.has(bias);
  }

  // REQUIRES: IsProduct(product).
  bool Transposes(NodeId product, int slot) const {
    const ProductTrait& trait = *view_.op(product).axes.product();
    return view_.context(product).attr_bool(slot == 0 ? trait.left_transposed
                                                      : trait.right_transposed);
  }

  bool IsView(NodeId id) const {
    return view_.Free(id) && view_.op(id).view && in(id, 0).dtype == out(id).dtype;
  }

  bool IsCast(NodeId id) const {
    return view_.Is(id, {"Cast"}) && kFloats.Contains(in(id, 0).dtype) &&
           kFloats.Contains(out(id).dtype);
  }
  bool Widens(NodeId id) const {
    return IsCast(id) && (out(id).dtype == DataType::kFloat || out(id).dtype == in(id, 0).dtype);
  }
  bool Narrows(NodeId id) const {
    return IsCast(id) && (in(id, 0).dtype == DataType::kFloat || out(id).dtype == in(id, 0).dtype);
  }

  // From the softmax back to q k^T.
  std::string_view FindScores(NodeId softmax) {
    if (!NormalisesLast(softmax)) return "the softmax is not that of floats over the last axis";
    elements_ = out(softmax).shape.elements();
    NodeId id = Back(softmax, 0);
    while (id != kNoNode && !IsProduct(id)) {
      const std::optional<int> slot = Pass(id);
      if (!slot) return "more than scale, shift and mask leads from the product to the softmax";
      id = Back(id, *slot);
    }
    match_.scores = id;
    if (id == kNoNode) return "no product gives the scores";
    const bool same = out(id).shape.dims().back() == out(softmax).shape.dims().back();
    return same ? "" : "the scores change their columns before the softmax";
  }

  // Takes the node that feeds the slot; kNoNode: no node makes scores.
  NodeId Back(NodeId id, int slot) {
    const NodeId maker = view_.Maker(id, slot);
    if (maker == kNoNode || out(maker).shape.elements() != elements_) return kNoNode;
    match_.nodes.push_back(maker);
    return maker;
  }

  // What a node between product and softmax does; returns the slot of the scores, or nullopt for
  // one that does not belong there. The kernel scales first, then shifts, then masks.
  std::optional<int> Pass(NodeId id) {
    if (IsView(id) || Widens(id)) return 0;
    if (const std::optional<ConstantFactor> factor = FactorOf(view_, id)) {
      match_.scale *= factor->factor;
      scaled_ = true;
      return factor->slot;
    }
    if (scaled_ || match_.shift) return std::nullopt;
    if (view_.Is(id, {"Add", "AddV2"})) {
      const int scores = LeadsToProduct(id, 0) ? 0 : 1;
      match_.shift = Place{id, 1 - scores};
      return scores;
    }
    if (match_.mask) return std::nullopt;
    return PassMask(id);
  }

  bool LeadsToProduct(NodeId id, int slot) const {
    id = view_.Maker(id, slot);
    while (id != kNoNode && !IsProduct(id)) {
      const std::optional<ConstantFactor> factor = FactorOf(view_, id);
      const bool passes = factor || IsView(id) || Widens(id);
      id = passes ? view_.Maker(id, factor ? factor->slot : 0) : kNoNode;
    }
    return id != kNoNode;
  }

  // SelectV2(condition, then, else) with one number for the scores that are not meant, or
  // MaskedFill(x, mask, value).
  std::optional<int> PassMask(NodeId id) {
    const bool fills = view_.Is(id, {"MaskedFill"});
    if (!fills && !view_.Is(id, {"SelectV2"})) return std::nullopt;
    const int mask = fills ? 1 : 0;
    int value = fills ? 2 : 1;
    if (!fills && !view_.Scalar(id, value)) {
      value = 2;
      match_.mask_keeps = true;
    }
    const std::optional<double> number = view_.Scalar(id, value);
    if (!number || in(id, mask).dtype != DataType::kBool) return std::nullopt;
    match_.mask = Place{id, mask};
    match_.mask_value = Stored(*number, out(id).dtype);
    return fills ? 0 : 3 - value;
  }

  // From the softmax on: the product with v.
  std::string_view FindSum(NodeId softmax) {
    NodeId last = softmax;
    NodeId next = view_.OnlyReader(last);
    while (next != kNoNode && (IsView(next) || Narrows(next)) && view_.Maker(next, 0) == last) {
      match_.nodes.push_back(last = next);
      next = view_.OnlyReader(last);
    }
    if (!IsProduct(next) || view_.Maker(next, 0) != last || view_.Maker(next, 1) == last) {
      return "no product alone reads the softmax from the left";
    }
    if (Transposes(next, 0)) return "the product with v transposes the softmax";
    match_.sum = next;
    match_.nodes.push_back(next);
    const bool same = SameRows(in(next, 0).shape, out(match_.scores).shape) && KeepsBatches();
    return same ? "" : "the product with v reads rows or batches that the scores do not have";
  }

  // Of the last two dimensions.
  static bool SameRows(const Shape& a, const Shape& b) {
    const auto from_end = [](const Shape& shape, int i) { return shape[shape.rank() - i]; };
    return from_end(a, 1) == from_end(b, 1) && from_end(a, 2) == from_end(b, 2);
  }

  // The product with v repeats no scores for several v.
  bool KeepsBatches() const {
    const Shape& y = out(match_.sum).shape;
    const int64_t columns = out(match_.scores).shape.dims().back();
    return y.elements() / y.dims().back() == elements_ / columns;
  }

  std::string_view FindOperands(Operands& all) {
    const Shape& scores = out(match_.scores).shape;
    const auto q = finder_.OfProduct(match_.scores, 0, Transposes(match_.scores, 0), true, scores);
    const auto k = finder_.OfProduct(match_.scores, 1, !Transposes(match_.scores, 1), true, scores);
    const auto v =
        finder_.OfProduct(match_.sum, 1, Transposes(match_.sum, 1), false, out(match_.sum).shape);
    if (!q || !k || !v) return "the rows of q, k or v do not lie together";
    all = {*q, *k, *v, {}, {}};
    for (const auto& [place, operand] :
         {std::pair(&match_.mask, &all.mask), std::pair(&match_.shift, &all.shift)}) {
      if (!*place) continue;
      const Shape& shape = out((*place)->node).shape;
      *operand = finder_.OfScores((*place)->node, (*place)->slot, shape, q->rows, k->rows);
      if (!*operand) return "the rows of the mask or the shift do not lie together";
    }
    if (all.shift && !kFloats.Contains(all.shift->dtype)) return "the shift is not of floats";
    TakeNodes(all);
    return "";
  }

  void TakeNodes(const Operands& operands) {
    std::vector<const AttentionOperand*> all = operands.by_query();
    all.insert(all.end(), {&operands.k, &operands.v});
    for (const AttentionOperand* operand : all) {
      for (const NodeId id : operand->nodes) {
        const bool known = std::count(match_.nodes.begin(), match_.nodes.end(), id) > 0;
        if (!known) match_.nodes.push_back(id);
      }
    }
  }

  // nullopt when the tensors have no common way of counting heads.
  std::optional<AttentionPlan> Plan(const Operands& operands) const {
    std::vector<HeadStrides> by_query, by_key;
    const std::optional<HeadCount> count =
        CountHeads(operands.by_query(), {&operands.k, &operands.v}, by_query, by_key);
    if (!count) return std::nullopt;
    const OpContext& sum = view_.context(match_.sum);
    AttentionPlan plan;
    plan.who = sum.Who();
    plan.threads = sum.threads();
    plan.batches = count->batches;
    plan.heads = count->heads();
    const int64_t batches = plan.batches, kv_heads = count->kv_heads;
    plan.q = HeadsOf(kQuery, operands.q, batches, plan.heads, by_query[0]);
    plan.k = KeyValue(HeadsOf(kKey, operands.k, batches, kv_heads, by_key[0]));
    plan.v = KeyValue(HeadsOf(kValue, operands.v, batches, kv_heads, by_key[1]));
    plan.out = OutputHeads(plan.q, operands.v.columns, sum.out(0).dtype);
    plan.scale = match_.scale * operands.q.factor * operands.k.factor;
    plan.empty_is_nan = true;
    int slot = kMask;
    if (operands.mask) {
      plan.mask = Scores(slot, *operands.mask, by_query[1]);
      plan.mask_keeps = match_.mask_keeps;
      plan.mask_value = match_.mask_value;
      ++slot;
    }
    if (operands.shift) plan.pse = Scores(slot, *operands.shift, by_query.back());
    return plan;
  }

  FusionView& view_;
  OperandFinder finder_;
  AttentionMatch match_;
  int64_t elements_ = 0;  // scores
  bool scaled_ = false;   // after the current node
};

}  // namespace

void FuseAttention(FusionView& view) {
  AttentionFinder finder(view);
  for (const NodeId id : view.order()) {
    if (view.Is(id, {"SoftmaxV2"})) finder.Try(id);
  }
}

}  // namespace npumesh
