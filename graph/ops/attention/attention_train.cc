// FlashAttentionScore: attention of training, with dropout and the statistics that the backward
// pass needs. And FlashAttentionScoreGrad: its gradients by query, key, value, and where they are
// fed by the position shift, the rope parts and the sinks.
//
// With P the probabilities, D the dropout (an element is kept and divided by keep_prob, or 0):
//   dV = (P D)^T dO, dP = (dO V^T) D, dS = P (dP - rowsum(P dP)), dQ = scale dS K,
//   dK = scale dS^T Q.
// The scores of a tile of rows exist whole, so P is made anew from them, and the statistics and the
// output of the forward pass, which the operator is fed too, are not needed.
#include <algorithm>

#include "graph/ops/attention/attention.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/float_exp.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh::attention {
namespace {

// Key heads: of the layout, or, where H hides them, as many as vectors of query's size fit.
int64_t KeyHeads(const OpContext& op, std::string_view layout, int64_t width) {
  const Shape& key = op.in("key").shape;
  const size_t at = layout.find('N');
  if (key.rank() != static_cast<int>(layout.size())) return 0;
  if (at != std::string_view::npos) return key[static_cast<int>(at)];
  return width > 0 ? key[key.rank() - 1] / width : 0;
}

void ReadDropout(const OpContext& op, Check& check, AttentionPlan& plan) {
  plan.keep_prob = op.attr_float("keep_prob");
  const int slot = SlotIfFed(op, "drop_mask");
  if (slot < 0 || plan.keep_prob >= 1 || !check.ok()) return;
  check.Supported(!plan.q.packed, "dropout in layout TND is not supported");
  const TensorType& mask = op.in(slot);
  const int64_t scores = plan.batches * plan.heads * plan.q.rows * plan.k.rows;
  check.That(
      plan.keep_prob > 0 && mask.dtype == DataType::kUint8 && mask.shape.elements() * 8 >= scores,
      "drop_mask is {} and keep_prob {}; expected at least {} bits in uint8 and a "
      "probability above 0",
      mask, plan.keep_prob, scores);
  plan.drop_mask = slot;
}

// The plan that both operators follow, with the attention as the only output. `shift` is the port
// of the position shift.
AttentionPlan PlanTraining(const OpContext& op, std::string_view shift, Check& check) {
  AttentionPlan plan;
  check.NotFed({"d_scale_q", "d_scale_k", "d_scale_v", "p_scale"});
  const Layouts layouts = LayoutsOf(op, check);
  plan.who = op.Who();
  plan.threads = op.threads();
  plan.heads = op.attr_int("head_num");
  plan.scale = op.attr_float("scale_value");
  // The attribute came with a later interface, whose default is 1; its absence means the formula
  // of the earlier one, which is that of 0.
  // Types 2 and 3 make the shift of slopes; only they read q_start_idx and kv_start_idx.
  plan.scales_pse = check.Among("pse_type", {0, 1}) == 1;
  if (!check.ok()) return plan;
  const HeadTensor query = HeadsOf(op, op.slot("query"), layouts.in, plan.heads, check);
  ReadTensors(op, layouts.in, KeyHeads(op, layouts.in, query.width), false, check, plan);
  plan.q_lengths = ReadLengths(op, "actual_seq_qlen", plan.q.packed, check);
  plan.kv_lengths = ReadLengths(op, "actual_seq_kvlen", plan.q.packed, check);
  plan.batches = SequencesOf(plan);
  plan.pre_tokens = op.attr_int("pre_tockens");
  plan.next_tokens = op.attr_int("next_tockens");
  plan.band_prefix = ReadLengths(op, "prefix", false, check);
  plan.pse = ReadScores(op, shift, plan, check);
  ReadBand(op, op.attr_int("sparse_mode"), check, plan);
  ReadDropout(op, check, plan);
  plan.sink = check.Take(Factors::Of(op, "sink"));
  plan.out.dtype = plan.q.dtype;
  Complete(op, layouts.out, check, plan);
  return plan;
}

AttentionPlan PlanScore(const OpContext& op, Check& check) {
  AttentionPlan plan = PlanTraining(op, "real_shift", check);
  if (!check.ok()) return plan;
  plan.max_port = 0;
  plan.sum_port = 1;
  plan.out.slot = 3;
  const TensorType statistics = StatisticsOf(plan, 8);
  plan.outputs = {statistics, statistics, {plan.out.dtype, {0}}, plan.outputs[0]};
  return plan;
}

// ---- gradients ----

constexpr int64_t kRows = 32;  // of a tile

enum GradientPort { kDq, kDk, kDv, kDpse, kDqRope, kDkRope, kDsink };

struct GradientPlan : Planned {
  AttentionPlan forward;
  HeadTensor dy;
  int64_t columns = 0;              // of the widest sequence
  Workspace<float> q, dq, dout;     // [kRows, width]
  Workspace<float> k, v, dk, dv;    // [columns, width]
  Workspace<float> p, dropped, dp;  // [kRows, columns]
  Workspace<float> shift;           // a row
  Workspace<float> dpse, dsink;     // sums of all rows

  // Whether the node has the output, and the input that it is the gradient of is fed.
  bool gives(GradientPort port) const {
    return outputs.size() > port && outputs[port].shape.elements() > 0;
  }
};

void LayOut(GradientPlan& plan) {
  Scratch& scratch = plan.scratch;
  const int64_t columns = plan.columns, k = plan.forward.k_width(), v = plan.forward.v.width;
  scratch.Take(kRows * k, {&plan.q, &plan.dq});
  plan.dout = scratch.Floats(kRows * v);
  scratch.Take(columns * k, {&plan.k, &plan.dk});
  scratch.Take(columns * v, {&plan.v, &plan.dv});
  scratch.Take(kRows * columns, {&plan.p, &plan.dropped, &plan.dp});
  plan.shift = scratch.Floats(columns);
  if (plan.gives(kDpse)) plan.dpse = scratch.Floats(plan.outputs[kDpse].shape.elements());
  if (plan.gives(kDsink)) plan.dsink = scratch.Floats(plan.outputs[kDsink].shape.elements());
}

// Each gradient has the type and shape of its input, or no elements where that is not fed.
GradientPlan PlanGradient(const OpContext& op, Check& check) {
  GradientPlan plan;
  plan.forward = PlanTraining(op, "pse_shift", check);
  plan.dy = HeadsOf(op, op.slot("dy"), LayoutsOf(op, check).out, plan.forward.heads, check);
  check.Type("query", kFloats);
  if (!check.ok()) return plan;
  check.TypeAndShape("dy", kFloats, plan.forward.outputs[0].shape);
  for (const std::string_view port :
       {"query", "key", "value", "pse_shift", "query_rope", "key_rope", "sink"}) {
    const int slot = SlotIfFed(op, port);
    plan.outputs.push_back(slot < 0 ? TensorType{op.in("query").dtype, {0}} : op.in(slot));
  }
  plan.outputs.resize(std::min(plan.outputs.size(), static_cast<size_t>(op.outputs())));
  plan.columns = plan.forward.k.rows;
  LayOut(plan);
  return plan;
}

// The rows of one key head, and of the query heads that share it, in tiles of kRows.
class KeyHead {
 public:
  KeyHead(const GradientPlan& plan, const Sequence& sequence, int64_t kv_head)
      : gradient_(plan), sequence_(sequence), kv_head_(kv_head) {}

  Status Run() {
    const int64_t rows = plan_.shared() * sequence_.q_rows;
    if (columns_ == 0 || rows == 0) return Status();
    using Of = ColumnRange::Of;
    NPUMESH_RETURN_IF_ERROR(LoadColumns(sequence_, {Of::kKeys, kv_head_, 0, columns_}, k_));
    NPUMESH_RETURN_IF_ERROR(LoadColumns(sequence_, {Of::kValues, kv_head_, 0, columns_}, v_));
    std::fill_n(dk_, columns_ * k_width_, 0.0f);
    std::fill_n(dv_, columns_ * v_width_, 0.0f);
    for (first_ = 0; first_ < rows; first_ += kRows) {
      rows_ = std::min(kRows, rows - first_);
      NPUMESH_RETURN_IF_ERROR(RunTile());
    }
    StoreColumns(plan_.k, dk_, k_width_, kDk);
    StoreColumns(plan_.v, dv_, v_width_, kDv);
    if (plan_.k_rope.given()) StoreColumns(plan_.k_rope, dk_ + plan_.k.width, k_width_, kDkRope);
    return Status();
  }

 private:
  ScoreRow At(int64_t r) const {
    const int64_t row = first_ + r;
    return {sequence_, kv_head_ * plan_.shared() + row / sequence_.q_rows, row % sequence_.q_rows};
  }

  Status RunTile() {
    const int64_t n = columns_;
    LoadRows();
    NPUMESH_RETURN_IF_ERROR(
        Multiply(rows_, n, k_width_, {q_, k_width_, false}, {k_, k_width_, true}, false, p_, n));
    NPUMESH_RETURN_IF_ERROR(
        Multiply(rows_, n, v_width_, {dy_, v_width_, false}, {v_, v_width_, true}, false, dp_, n));
    for (int64_t r = 0; r < rows_; ++r) GradientOfScores(r);
    NPUMESH_RETURN_IF_ERROR(Multiply(n, v_width_, rows_, {dropped_, n, true},
                                     {dy_, v_width_, false}, true, dv_, v_width_));
    NPUMESH_RETURN_IF_ERROR(
        Multiply(rows_, k_width_, n, {dp_, n, false}, {k_, k_width_, false}, false, dq_, k_width_));
    StoreQuery();
    return Multiply(n, k_width_, rows_, {dp_, n, true}, {q_, k_width_, false}, true, dk_, k_width_);
  }

  void LoadRows() const {
    for (int64_t r = 0; r < rows_; ++r) {
      const ScoreRow at = At(r);
      at.Load(plan_.q, q_ + r * k_width_);
      if (plan_.q_rope.given()) at.Load(plan_.q_rope, q_ + r * k_width_ + plan_.q.width);
      at.Load(gradient_.dy, dy_ + r * v_width_);
    }
  }

  // Row r: q k^T in `p` becomes the probabilities, which are left in `dropped` as they meet the
  // values; dO V^T in `dp` becomes scale * dS.
  void GradientOfScores(int64_t r) const {
    const int64_t n = columns_;
    const ScoreRow at = At(r);
    float *p = p_ + r * n, *dp = dp_ + r * n, *dropped = dropped_ + r * n;
    FinishScores(at, Visible(sequence_, at.row), plan_.scale, 0, n, gradient_.shift(args_), p);
    const float sink = Softmax(at, p);
    std::copy_n(p, n, dropped);
    if (plan_.drop_mask >= 0) {
      DropScores(at, 0, n, dropped);
      DropScores(at, 0, n, dp);
    }
    double through = 0;
    for (int64_t j = 0; j < n; ++j) {
      through += static_cast<double>(p[j]) * static_cast<double>(dp[j]);
    }
    for (int64_t j = 0; j < n; ++j) dp[j] = p[j] * (dp[j] - static_cast<float>(through));
    if (gradient_.gives(kDsink)) {
      gradient_.dsink(args_)[at.head] -= sink * static_cast<float>(through);
    }
    if (gradient_.gives(kDpse)) AddToShift(at, dp);
    ScaleRow(dp, plan_.scale, n, dp);
  }

  // Scores become probabilities, all 0 for a row that sees nothing. Returns that of the sink.
  float Softmax(const ScoreRow& at, float* p) const {
    const int64_t n = columns_;
    const float sink = plan_.sink.given() ? plan_.sink.At(args_, at.head) : kMasked;
    const float most = std::max(LargestInRow(p, n), sink);
    if (most == kMasked) {
      std::fill_n(p, n, 0.0f);
      return 0;
    }
    ExponentialsOfRow(p, most, n, p);
    const float of_sink = plan_.sink.given() ? ExpOfNonPositive(sink - most) : 0.0f;
    const auto factor = static_cast<float>(1 / (static_cast<double>(of_sink) + SumOfRow(p, n)));
    ScaleRow(p, factor, n, p);
    return of_sink * factor;
  }

  void AddToShift(const ScoreRow& at, const float* ds) const {
    float* sums = gradient_.dpse(args_) + at.IndexIn(plan_.pse, 0);
    const float factor = plan_.scales_pse ? plan_.scale : 1.0f;
    for (int64_t j = 0; j < columns_; ++j) sums[j] += factor * ds[j];
  }

  void StoreQuery() const {
    for (int64_t r = 0; r < rows_; ++r) {
      const float* row = dq_ + r * k_width_;
      const HeadTensor &q = plan_.q, &rope = plan_.q_rope;
      StoreRow(q.dtype, row, args_.out[kDq], At(r).Element(q), q.width);
      if (!rope.given() || !gradient_.gives(kDqRope)) continue;
      StoreRow(rope.dtype, row + q.width, args_.out[kDqRope], At(r).Element(rope), rope.width);
    }
  }

  // Rows of K, V or the rope part of K, `stride` floats apart.
  void StoreColumns(const KeyValue& like, const float* rows, int64_t stride,
                    GradientPort port) const {
    if (!gradient_.gives(port)) return;
    for (int64_t j = 0; j < columns_; ++j) {
      const int64_t element = like.Element(sequence_.index, kv_head_, sequence_.kv_begin + j);
      StoreRow(like.dtype, rows + j * stride, args_.out[port], element, like.width);
    }
  }

  const GradientPlan& gradient_;
  const Sequence& sequence_;
  const AttentionPlan& plan_ = sequence_.plan;
  const KernelArgs& args_ = sequence_.args;
  const int64_t kv_head_;
  const int64_t columns_ = sequence_.columns();
  const int64_t k_width_ = plan_.k_width(), v_width_ = plan_.v.width;
  float *const q_ = gradient_.q(args_), *const dq_ = gradient_.dq(args_);
  float* const dy_ = gradient_.dout(args_);
  float *const k_ = gradient_.k(args_), *const dk_ = gradient_.dk(args_);
  float *const v_ = gradient_.v(args_), *const dv_ = gradient_.dv(args_);
  float *const p_ = gradient_.p(args_), *const dp_ = gradient_.dp(args_);
  float* const dropped_ = gradient_.dropped(args_);
  int64_t first_ = 0;  // row of the tile among those of all heads that share the key head
  int64_t rows_ = 0;
};

Status RunGradient(const GradientPlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.forward.threads);
  const std::pair<GradientPort, Workspace<float>> sums[] = {{kDpse, plan.dpse},
                                                            {kDsink, plan.dsink}};
  const auto elements = [&](GradientPort port) {
    return plan.gives(port) ? plan.outputs[port].shape.elements() : 0;
  };
  ClearOutputs(plan, args);
  for (const auto& [port, sum] : sums) std::fill_n(sum(args), elements(port), 0.0f);
  for (int64_t b = 0; b < plan.forward.batches; ++b) {
    NPUMESH_ASSIGN_OR_RETURN(const Sequence sequence, ReadSequence(plan.forward, args, b));
    for (int64_t head = 0; head < plan.forward.k.heads; ++head) {
      NPUMESH_RETURN_IF_ERROR(KeyHead(plan, sequence, head).Run());
    }
  }
  for (const auto& [port, sum] : sums) {
    if (!plan.gives(port)) continue;
    StoreRow(plan.outputs[port].dtype, sum(args), args.out[port], 0, elements(port));
  }
  return Status();
}

}  // namespace
}  // namespace npumesh::attention

namespace npumesh {

void RegisterTrainAttentionOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kWhite);
  registry.Add(Define<attention::PlanScore, attention::RunAttention>(
      "FlashAttentionScore(query, key, value, real_shift?, drop_mask?, padding_mask?, atten_mask?, "
      "prefix?, actual_seq_qlen?, actual_seq_kvlen?, q_start_idx?, kv_start_idx?, d_scale_q?, "
      "d_scale_k?, d_scale_v?, query_rope?, key_rope?, sink?, p_scale?; scale_value=1.0, "
      "keep_prob=1.0, pre_tockens=2147483647, next_tockens=2147483647, head_num:int, "
      "input_layout:string, inner_precise=1, sparse_mode=0, pse_type=0, seed==0, offset==0, "
      "out_dtype==0, softmax_out_layout==\"\") -> softmax_max, softmax_sum, softmax_out, "
      "attention_out",
      {.heads = HeadsTrait{.heads = "head_num",
                           .by_head = {"real_shift"},
                           .of_all = {"atten_mask", "prefix", "actual_seq_qlen", "actual_seq_kvlen",
                                      "q_start_idx", "kv_start_idx"}}}));
  registry.Add(Define<attention::PlanGradient, attention::RunGradient>(
      "FlashAttentionScoreGrad(query, key, value, dy, pse_shift?, drop_mask?, padding_mask?, "
      "atten_mask?, softmax_max?, softmax_sum?, softmax_in?, attention_in?, prefix?, "
      "actual_seq_qlen?, actual_seq_kvlen?, q_start_idx?, kv_start_idx?, d_scale_q?, d_scale_k?, "
      "d_scale_v?, d_scale_dy?, d_scale_o?, query_rope?, key_rope?, sink?, ds_scale?, p_scale?; "
      "scale_value=1.0, keep_prob=1.0, pre_tockens=65536, next_tockens=65536, head_num:int, "
      "input_layout:string, inner_precise=1, sparse_mode=0, pse_type=0, seed==0, offset==0, "
      "out_dtype==0, softmax_in_layout==\"\") -> dq, dk, dv, dpse, dq_rope, dk_rope, dsink"));
}

}  // namespace npumesh
