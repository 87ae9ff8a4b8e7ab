// FlashAttentionScoreGrad: the gradients of attention by query, key, value, and where they are fed
// by the position shift, the rope parts and the sinks. Ops reference 5.11.
//
// With P the probabilities, D the dropout (an element is kept and divided by keep_prob, or 0):
//   dV = (P D)^T dO, dP = (dO V^T) D, dS = P (dP - rowsum(P dP)), dQ = scale dS K,
//   dK = scale dS^T Q.
// The scores of a tile of rows exist whole, so P is made anew from them, and the statistics and the
// output of the forward pass, which the operator is fed too, are not needed.
#include <algorithm>
#include <cstring>

#include "graph/ops/attention_scores.h"
#include "graph/ops/attention_train.h"
#include "graph/ops/float_exp.h"
#include "graph/ops/float_product.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/train_families.h"

namespace npumesh::attention {
namespace {

constexpr int64_t kRows = 32;  // of a tile

enum Port { kDq, kDk, kDv, kDpse, kDqRope, kDkRope, kDsink };

struct GradientPlan {
  AttentionPlan plan;
  HeadTensor dy;
};

Result<GradientPlan> PlanGradient(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(TrainingPlan training, PlanTraining(op, "pse_shift"));
  GradientPlan gradient;
  gradient.plan = std::move(training.plan);
  NPUMESH_ASSIGN_OR_RETURN(const Layouts layouts, LayoutsOf(op, op.attr_string("input_layout")));
  NPUMESH_ASSIGN_OR_RETURN(gradient.dy,
                           HeadsOf(op, op.slot("dy"), layouts.out, gradient.plan.heads));
  const TensorType& dy = op.in("dy");
  if (dy.shape == training.out && IsRowType(dy.dtype) && IsRowType(gradient.plan.q.dtype)) {
    return gradient;
  }
  return Error(Code::kInvalidArgument, "{}: dy is {}, expected a float type in the shape {}",
               op.Who(), dy.ToString(), training.out.ToString());
}

// An output in the type and shape of an input, or without elements where that is not fed.
Status SetLike(OpContext& op, int output, std::string_view port) {
  if (output >= op.outputs()) return Status();
  const int slot = SlotIfFed(op, port);
  if (slot < 0) return SetOutput(op, output, op.in("query").dtype, {0});
  return SetOutput(op, output, op.in(slot).dtype, op.in(slot).shape);
}

Status InferGradient(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(PlanGradient(op).status());
  NPUMESH_RETURN_IF_ERROR(SetLike(op, kDq, "query"));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, kDk, "key"));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, kDv, "value"));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, kDpse, "pse_shift"));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, kDqRope, "query_rope"));
  NPUMESH_RETURN_IF_ERROR(SetLike(op, kDkRope, "key_rope"));
  return SetLike(op, kDsink, "sink");
}

class AttentionGradKernel final : public Kernel {
 public:
  AttentionGradKernel(const OpContext& op, const GradientPlan& gradient)
      : plan_(gradient.plan),
        dy_(gradient.dy),
        columns_(plan_.k.parts[0].rows),
        shared_(plan_.heads / plan_.k.heads),
        k_width_(plan_.k.width + (plan_.k_rope.given() ? plan_.k_rope.width : 0)),
        v_width_(plan_.v.width) {
    for (int port = 0; port < op.outputs(); ++port) bytes_.push_back(op.out(port).bytes());
    const auto sums = [&](int port) {
      const bool asked = port < op.outputs();
      return std::vector<float>(asked ? static_cast<size_t>(op.out(port).shape.elements()) : 0);
    };
    shift_sums_ = sums(kDpse);
    sink_sums_ = sums(kDsink);
    if (!sink_sums_.empty()) sink_dtype_ = op.out(kDsink).dtype;
  }

  uint64_t scratch_bytes() const override {
    const int64_t floats = kRows * (2 * k_width_ + v_width_) +
                           2 * columns_ * (k_width_ + v_width_) + 3 * kRows * columns_ + columns_;
    return static_cast<uint64_t>(floats) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const ProductThreads threads(plan_.threads);
    for (size_t port = 0; port < bytes_.size(); ++port) {
      if (bytes_[port] > 0) std::memset(args.out[port], 0, bytes_[port]);
    }
    std::fill(shift_sums_.begin(), shift_sums_.end(), 0.0f);
    std::fill(sink_sums_.begin(), sink_sums_.end(), 0.0f);
    for (int64_t b = 0; b < plan_.batches; ++b) {
      NPUMESH_ASSIGN_OR_RETURN(const Sequence sequence, ReadSequence(plan_, args, b));
      NPUMESH_RETURN_IF_ERROR(CheckCovers(plan_, plan_.mask, "the mask", sequence));
      NPUMESH_RETURN_IF_ERROR(CheckCovers(plan_, plan_.pse, "the position shift", sequence));
      for (int64_t head = 0; head < plan_.k.heads; ++head) {
        NPUMESH_RETURN_IF_ERROR(RunHead(args, sequence, head));
      }
    }
    const auto count = static_cast<int64_t>(shift_sums_.size());
    if (count > 0) StoreRow(plan_.pse.dtype, shift_sums_.data(), args.out[kDpse], 0, count);
    if (!sink_sums_.empty()) {
      StoreRow(sink_dtype_, sink_sums_.data(), args.out[kDsink], 0,
               static_cast<int64_t>(sink_sums_.size()));
    }
    return Status();
  }

 private:
  // Matrices of one tile and of the key head that it belongs to, in scratch.
  struct Work {
    const KernelArgs& args;
    const Sequence& sequence;
    int64_t kv_head;
    float *q, *dq, *dy;       // [kRows, width]
    float *k, *v, *dk, *dv;   // [columns, width]
    float *p, *dropped, *dp;  // [kRows, columns]
    float* room;              // columns
    int64_t first = 0;        // row of the tile among those of all heads that share the key head
    int64_t rows = 0;
  };

  Work Divide(const KernelArgs& args, const Sequence& sequence, int64_t kv_head) const {
    auto* next = static_cast<float*>(args.scratch);
    const auto take = [&](int64_t rows, int64_t width) {
      float* taken = next;
      next += rows * width;
      return taken;
    };
    Work work{args, sequence, kv_head};
    work.q = take(kRows, k_width_);
    work.dq = take(kRows, k_width_);
    work.dy = take(kRows, v_width_);
    work.k = take(columns_, k_width_);
    work.dk = take(columns_, k_width_);
    work.v = take(columns_, v_width_);
    work.dv = take(columns_, v_width_);
    work.p = take(kRows, columns_);
    work.dropped = take(kRows, columns_);
    work.dp = take(kRows, columns_);
    work.room = take(1, columns_);
    return work;
  }

  int64_t HeadOf(const Work& work, int64_t r) const {
    return work.kv_head * shared_ + (work.first + r) / work.sequence.q_rows;
  }
  static int64_t RowOf(const Work& work, int64_t r) {
    return (work.first + r) % work.sequence.q_rows;
  }
  ScoreRow At(const Work& work, int64_t r) const {
    return {plan_, work.args, work.sequence, HeadOf(work, r), RowOf(work, r)};
  }

  // First element of the vector of row r.
  int64_t ElementOf(const Work& work, const HeadTensor& tensor, int64_t r) const {
    const int64_t batch = tensor.packed ? 0 : work.sequence.index * tensor.batch_stride;
    return batch + (work.sequence.q_begin + RowOf(work, r)) * tensor.row_stride +
           HeadOf(work, r) * tensor.head_stride;
  }

  Status RunHead(const KernelArgs& args, const Sequence& sequence, int64_t kv_head) {
    const int64_t columns = sequence.columns();
    const int64_t rows = shared_ * sequence.q_rows;
    if (columns == 0 || rows == 0) return Status();
    Work work = Divide(args, sequence, kv_head);
    NPUMESH_RETURN_IF_ERROR(LoadColumns(plan_, args, sequence, false, kv_head, 0, columns, work.k));
    NPUMESH_RETURN_IF_ERROR(LoadColumns(plan_, args, sequence, true, kv_head, 0, columns, work.v));
    std::fill_n(work.dk, columns * k_width_, 0.0f);
    std::fill_n(work.dv, columns * v_width_, 0.0f);
    for (work.first = 0; work.first < rows; work.first += kRows) {
      work.rows = std::min(kRows, rows - work.first);
      NPUMESH_RETURN_IF_ERROR(RunTile(work));
    }
    StoreColumns(work, plan_.k, work.dk, k_width_, kDk);
    StoreColumns(work, plan_.v, work.dv, v_width_, kDv);
    if (plan_.k_rope.given()) {
      StoreColumns(work, plan_.k_rope, work.dk + plan_.k.width, k_width_, kDkRope);
    }
    return Status();
  }

  Status RunTile(const Work& work) {
    const int64_t columns = work.sequence.columns();
    LoadRows(work);
    NPUMESH_RETURN_IF_ERROR(Multiply(work.rows, columns, k_width_, {work.q, k_width_, false},
                                     {work.k, k_width_, true}, false, work.p, columns));
    NPUMESH_RETURN_IF_ERROR(Multiply(work.rows, columns, v_width_, {work.dy, v_width_, false},
                                     {work.v, v_width_, true}, false, work.dp, columns));
    for (int64_t r = 0; r < work.rows; ++r) GradientOfScores(work, r);
    NPUMESH_RETURN_IF_ERROR(Multiply(columns, v_width_, work.rows, {work.dropped, columns, true},
                                     {work.dy, v_width_, false}, true, work.dv, v_width_));
    NPUMESH_RETURN_IF_ERROR(Multiply(work.rows, k_width_, columns, {work.dp, columns, false},
                                     {work.k, k_width_, false}, false, work.dq, k_width_));
    StoreQuery(work);
    return Multiply(columns, k_width_, work.rows, {work.dp, columns, true},
                    {work.q, k_width_, false}, true, work.dk, k_width_);
  }

  void LoadRows(const Work& work) const {
    for (int64_t r = 0; r < work.rows; ++r) {
      const auto load = [&](const HeadTensor& from, float* to) {
        LoadNumbers(from.dtype, work.args.in[from.slot], ElementOf(work, from, r), from.width, to);
      };
      load(plan_.q, work.q + r * k_width_);
      if (plan_.q_rope.slot >= 0) load(plan_.q_rope, work.q + r * k_width_ + plan_.q.width);
      load(dy_, work.dy + r * v_width_);
    }
  }

  // Row r: q k^T in `p` becomes the probabilities, which are left in `dropped` as they meet the
  // values; dO V^T in `dp` becomes scale * dS.
  void GradientOfScores(const Work& work, int64_t r) {
    const int64_t columns = work.sequence.columns();
    const ScoreRow at = At(work, r);
    float *p = work.p + r * columns, *dp = work.dp + r * columns;
    float* dropped = work.dropped + r * columns;
    const bool late = plan_.scales_pse;
    for (int64_t j = 0; !late && j < columns; ++j) p[j] *= plan_.scale;
    if (plan_.pse.slot >= 0) AddShift(at, 0, columns, work.room, p);
    for (int64_t j = 0; late && j < columns; ++j) p[j] *= plan_.scale;
    MaskScores(at, Visible(plan_, work.sequence, at.row), 0, columns, p);
    const float sink = Softmax(at, columns, p);
    std::copy_n(p, columns, dropped);
    if (plan_.drop_mask >= 0) {
      DropScores(at, 0, columns, dropped);
      DropScores(at, 0, columns, dp);
    }
    double through = 0;
    for (int64_t j = 0; j < columns; ++j) {
      through += static_cast<double>(p[j]) * static_cast<double>(dp[j]);
    }
    for (int64_t j = 0; j < columns; ++j) dp[j] = p[j] * (dp[j] - static_cast<float>(through));
    if (!sink_sums_.empty()) {
      sink_sums_[static_cast<size_t>(at.head)] -= sink * static_cast<float>(through);
    }
    AddToShift(at, columns, dp);
    for (int64_t j = 0; j < columns; ++j) dp[j] *= plan_.scale;
  }

  // Scores become probabilities, all 0 for a row that sees nothing. Returns that of the sink.
  float Softmax(const ScoreRow& at, int64_t columns, float* p) const {
    const float sink = plan_.sink.given() ? plan_.sink.At(at.args, at.head) : kMasked;
    const float most = std::max(MaxOf(p, columns), sink);
    if (most == kMasked) {
      std::fill_n(p, columns, 0.0f);
      return 0;
    }
    for (int64_t j = 0; j < columns; ++j) p[j] = ExpOfNonPositive(p[j] - most);
    const float of_sink = plan_.sink.given() ? ExpOfNonPositive(sink - most) : 0.0f;
    const double sum =
        static_cast<double>(of_sink) + BlockedSum(p, columns, [](float v) { return v; });
    const auto factor = static_cast<float>(1 / sum);
    for (int64_t j = 0; j < columns; ++j) p[j] *= factor;
    return of_sink * factor;
  }

  void AddToShift(const ScoreRow& at, int64_t columns, const float* ds) {
    if (shift_sums_.empty()) return;
    const ScoreTensor& pse = plan_.pse;
    const int64_t first =
        at.sequence.index * pse.batch_stride + at.head * pse.head_stride + at.row * pse.row_stride;
    const float factor = plan_.scales_pse ? plan_.scale : 1.0f;
    for (int64_t j = 0; j < columns; ++j) {
      shift_sums_[static_cast<size_t>(first + j)] += factor * ds[j];
    }
  }

  void StoreQuery(const Work& work) const {
    for (int64_t r = 0; r < work.rows; ++r) {
      const float* row = work.dq + r * k_width_;
      StoreRow(plan_.q.dtype, row, work.args.out[kDq], ElementOf(work, plan_.q, r), plan_.q.width);
      if (plan_.q_rope.slot < 0 || bytes_.size() <= kDqRope) continue;
      StoreRow(plan_.q_rope.dtype, row + plan_.q.width, work.args.out[kDqRope],
               ElementOf(work, plan_.q_rope, r), plan_.q_rope.width);
    }
  }

  // Rows of K, V or the rope part of K, `stride` floats apart.
  void StoreColumns(const Work& work, const KeyValue& like, const float* rows, int64_t stride,
                    size_t port) const {
    if (bytes_.size() <= port) return;
    const KeyValue::Part& part = like.parts[0];
    const int64_t block = like.packed ? 0 : work.sequence.index * part.block_stride;
    for (int64_t j = 0; j < work.sequence.columns(); ++j) {
      const int64_t element =
          block + work.kv_head * part.head_stride + (work.sequence.kv_begin + j) * part.row_stride;
      StoreRow(like.dtype, rows + j * stride, work.args.out[port], element, like.width);
    }
  }

  const AttentionPlan plan_;
  HeadTensor dy_;
  int64_t columns_;
  int64_t shared_;  // query heads for each key head
  int64_t k_width_;
  int64_t v_width_;
  std::vector<uint64_t> bytes_;  // of each output
  std::vector<float> shift_sums_;
  std::vector<float> sink_sums_;
  DataType sink_dtype_ = DataType::kFloat;
};

Result<std::unique_ptr<Kernel>> MakeGradient(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GradientPlan gradient, PlanGradient(op));
  return std::unique_ptr<Kernel>(std::make_unique<AttentionGradKernel>(op, gradient));
}

}  // namespace
}  // namespace npumesh::attention

namespace npumesh {

void RegisterAttentionGradients(OpRegistry& registry) {
  std::vector<PortSpec> inputs = {{"query"}, {"key"}, {"value"}, {"dy"}};
  for (const std::string_view port :
       {"pse_shift",    "drop_mask",       "padding_mask",     "atten_mask",
        "softmax_max",  "softmax_sum",     "softmax_in",       "attention_in",
        "prefix",       "actual_seq_qlen", "actual_seq_kvlen", "q_start_idx",
        "kv_start_idx", "d_scale_q",       "d_scale_k",        "d_scale_v",
        "d_scale_dy",   "d_scale_o",       "query_rope",       "key_rope",
        "sink",         "ds_scale",        "p_scale"}) {
    inputs.push_back({port, PortKind::kOptional});
  }
  registry.Add({.schema = {"FlashAttentionScoreGrad",
                           std::move(inputs),
                           {{"dq"}, {"dk"}, {"dv"}, {"dpse"}, {"dq_rope"}, {"dk_rope"}, {"dsink"}},
                           {{"scale_value", AttrValue::Float(1.0f)},
                            {"keep_prob", AttrValue::Float(1.0f)},
                            {"pre_tockens", AttrValue::Int(65536)},
                            {"next_tockens", AttrValue::Int(65536)},
                            {"head_num", Required::kInt},
                            {"input_layout", Required::kString},
                            {"inner_precise", AttrValue::Int(1)},
                            {"sparse_mode", AttrValue::Int(0)},
                            {"pse_type", AttrValue::Int(0)},
                            AttrSpec::Only("seed", AttrValue::Int(0)),
                            AttrSpec::Only("offset", AttrValue::Int(0)),
                            AttrSpec::Only("out_dtype", AttrValue::Int(0)),
                            AttrSpec::Only("softmax_in_layout", AttrValue::String(""))}},
                .infer = attention::InferGradient,
                .make_kernel = attention::MakeGradient});
}

}  // namespace npumesh
