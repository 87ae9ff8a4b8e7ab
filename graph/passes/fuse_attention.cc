// AttentionFusionPass: attention as frameworks write it out,
//
//   out = softmax(scale * (q k^T) + mask) v
//
// with the last dimension of the scores normalised, in float32. The scores then exist one tile at a
// time, as in FusedInferAttentionScore.
#include "graph/ops/attention.h"
#include "graph/passes/fusion_view.h"

namespace npumesh {
namespace {

using attention::AttentionPlan;
using attention::HeadTensor;
using attention::KeyValue;
using attention::ScoreTensor;

constexpr int kQuery = 0;
constexpr int kKey = 1;
constexpr int kValue = 2;
constexpr int kMask = 3;

// Batches, heads, rows and columns of the last four dimensions; absent ones are 1.
struct Extents {
  int64_t batches = 1;
  int64_t heads = 1;
  int64_t rows = 1;
  int64_t columns = 1;
};

Extents ExtentsOf(const Shape& shape) {
  const auto from_end = [&shape](int i) { return i <= shape.rank() ? shape[shape.rank() - i] : 1; };
  return {from_end(4), from_end(3), from_end(2), from_end(1)};
}

HeadTensor Heads(int slot, const Extents& x) {
  HeadTensor heads;
  heads.slot = slot;
  heads.dtype = DataType::kFloat;
  heads.batches = x.batches;
  heads.heads = x.heads;
  heads.rows = x.rows;
  heads.width = x.columns;
  heads.row_stride = x.columns;
  heads.head_stride = x.rows * x.columns;
  heads.batch_stride = x.heads * heads.head_stride;
  return heads;
}

KeyValue Rows(int slot, const Extents& x) {
  const HeadTensor heads = Heads(slot, x);
  KeyValue rows;
  rows.parts = {{slot, x.rows, heads.batch_stride, heads.head_stride, heads.row_stride}};
  rows.dtype = DataType::kFloat;
  rows.blocks = x.batches;
  rows.heads = x.heads;
  rows.width = x.columns;
  rows.chunk = x.columns;
  return rows;
}

class AttentionFinder {
 public:
  explicit AttentionFinder(FusionView& view) : view_(view) {}

  void Try(NodeId softmax) {
    nodes_ = {softmax};
    plan_ = {};
    mask_.reset();
    if (!NormalisesLast(softmax) || !FindScores(softmax) || !FindSum(softmax)) return;
    if (!Describe(softmax) || !view_.MayFuse(nodes_)) return;
    FusedStep step;
    step.inputs = {query_, key_, value_};
    if (mask_) step.inputs.push_back(mask_);
    step.make_kernel = [plan = plan_] { return attention::MakeAttentionKernel(plan); };
    step.nodes = std::move(nodes_);
    view_.Take(std::move(step));
  }

 private:
  const TensorType& out(NodeId id) const { return view_.context(id).out(0); }

  bool NormalisesLast(NodeId softmax) const {
    const TensorType& scores = out(softmax);
    const int rank = scores.shape.rank();
    const std::vector<int64_t> axes = view_.context(softmax).attr_ints("axes");
    const bool last = axes.size() == 1 && (axes[0] == -1 || axes[0] == rank - 1);
    return last && scores.dtype == DataType::kFloat && (rank == 3 || rank == 4) &&
           scores.shape.elements() > 0;
  }

  // From the softmax back to q and k: perhaps a mask, perhaps a scale, the product.
  bool FindScores(NodeId softmax) {
    NodeId id = view_.Producer(softmax, 0);
    if (view_.Is(id, {"Add", "AddV2"})) {
      const int scores = IsScaleOrProduct(view_.Producer(id, 0)) ? 0 : 1;
      mask_ = view_.SlotValue(id, 1 - scores);
      if (!DescribeMask(view_.context(id).in(1 - scores), out(softmax))) return false;
      nodes_.push_back(id);
      id = view_.Producer(id, scores);
    }
    if (view_.Is(id, {"Muls", "Mul", "RealDiv"})) {
      const int scores = IsProduct(view_.Producer(id, 0)) ? 0 : 1;
      if (!TakeScale(id, scores)) return false;
      nodes_.push_back(id);
      id = view_.Producer(id, scores);
    }
    if (!IsProduct(id) || out(id) != out(softmax) || view_.context(id).attr_bool("adj_x1")) {
      return false;
    }
    nodes_.push_back(id);
    query_ = *view_.SlotValue(id, 0);
    q_shape_ = view_.context(id).in(0).shape;
    return FindKey(id);
  }

  bool IsProduct(NodeId id) const {
    if (!view_.Is(id, {"BatchMatMul", "BatchMatMulV2"})) return false;
    const OpContext& context = view_.context(id);
    return context.schema().type == "BatchMatMul" || !context.has("bias");
  }

  bool IsScaleOrProduct(NodeId id) const {
    return IsProduct(id) || view_.Is(id, {"Muls", "Mul", "RealDiv"});
  }

  bool TakeScale(NodeId id, int scores) {
    const std::string& type = view_.node(id).type;
    if (type == "Muls") {
      plan_.scale = view_.context(id).attr_float("value");
      return scores == 0;
    }
    const std::optional<double> factor = view_.Scalar(id, 1 - scores);
    const bool divides = type == "RealDiv";
    if (!factor || (divides && (scores != 0 || *factor == 0))) return false;
    plan_.scale = static_cast<float>(divides ? 1 / *factor : *factor);
    return true;
  }

  // k as it is stored: [.., columns, width], transposed by the product or in front of it.
  bool FindKey(NodeId product) {
    key_ = *view_.SlotValue(product, 1);
    k_shape_ = view_.context(product).in(1).shape;
    if (view_.context(product).attr_bool("adj_x2")) return true;
    const NodeId transpose = view_.Producer(product, 1);
    if (!view_.Is(transpose, {"Transpose", "TransposeD"}) ||
        view_.OnlyReader(transpose) != product || !SwapsLastTwo(transpose)) {
      return false;
    }
    nodes_.push_back(transpose);
    key_ = *view_.SlotValue(transpose, 0);
    k_shape_ = view_.context(transpose).in(0).shape;
    return true;
  }

  bool SwapsLastTwo(NodeId transpose) const {
    const Result<std::vector<int64_t>> perm = view_.context(transpose).Ints("perm");
    const int rank = out(transpose).shape.rank();
    if (!perm.ok() || static_cast<int>(perm->size()) != rank || rank < 2) return false;
    for (int i = 0; i < rank; ++i) {
      const int from = i < rank - 2 ? i : 2 * rank - 3 - i;
      if ((*perm)[static_cast<size_t>(i)] != from) return false;
    }
    return true;
  }

  // From the softmax on: the product with v.
  bool FindSum(NodeId softmax) {
    const NodeId product = view_.OnlyReader(softmax);
    if (!IsProduct(product) || view_.Producer(product, 0) != softmax ||
        view_.Producer(product, 1) == softmax) {
      return false;
    }
    const OpContext& context = view_.context(product);
    if (context.attr_bool("adj_x1") || context.attr_bool("adj_x2")) return false;
    value_ = *view_.SlotValue(product, 1);
    v_shape_ = context.in(1).shape;
    y_shape_ = context.out(0).shape;
    nodes_.push_back(product);
    return true;
  }

  // A summand that may be broadcast over batches, heads and rows, not over columns.
  bool DescribeMask(const TensorType& mask, const TensorType& scores) {
    const Extents own = ExtentsOf(mask.shape);
    const Extents all = ExtentsOf(scores.shape);
    const auto fits = [](int64_t mine, int64_t whole) { return mine == 1 || mine == whole; };
    if (mask.dtype != DataType::kFloat || mask.shape.rank() > scores.shape.rank() ||
        own.columns != all.columns || !fits(own.rows, all.rows) || !fits(own.heads, all.heads) ||
        !fits(own.batches, all.batches)) {
      return false;
    }
    const int64_t head = own.rows * own.columns;
    ScoreTensor& shift = plan_.pse;
    shift.slot = kMask;
    shift.dtype = mask.dtype;
    shift.rows = own.rows;
    shift.columns = own.columns;
    shift.row_stride = own.rows == 1 ? 0 : own.columns;
    shift.head_stride = own.heads == 1 ? 0 : head;
    shift.batch_stride = own.batches == 1 ? 0 : own.heads * head;
    return true;
  }

  // Fills in the plan. False when batches or heads are broadcast.
  bool Describe(NodeId softmax) {
    const Extents q = ExtentsOf(q_shape_);
    const Extents k = ExtentsOf(k_shape_);
    const Extents v = ExtentsOf(v_shape_);
    const auto alike = [&q](const Extents& x) {
      return x.batches == q.batches && x.heads == q.heads;
    };
    const int rank = out(softmax).shape.rank();
    const bool same_rank =
        q_shape_.rank() == rank && k_shape_.rank() == rank && v_shape_.rank() == rank;
    if (!same_rank || !alike(k) || !alike(v) || q.columns == 0 || v.columns == 0) return false;
    const OpContext& context = view_.context(softmax);
    plan_.who = context.Who();
    plan_.threads = context.threads();
    plan_.batches = q.batches;
    plan_.heads = q.heads;
    plan_.q = Heads(kQuery, q);
    plan_.k = Rows(kKey, k);
    plan_.v = Rows(kValue, v);
    plan_.out = Heads(0, ExtentsOf(y_shape_));
    plan_.empty_is_nan = true;
    return true;
  }

  FusionView& view_;
  std::vector<NodeId> nodes_;
  AttentionPlan plan_;
  Value query_, key_, value_;
  std::optional<Value> mask_;
  Shape q_shape_, k_shape_, v_shape_, y_shape_;
};

}  // namespace

void FuseAttention(FusionView& view) {
  AttentionFinder finder(view);
  for (const NodeId id : view.order()) {
    if (view.Is(id, {"SoftmaxV2"})) finder.Try(id);
  }
}

}  // namespace npumesh
