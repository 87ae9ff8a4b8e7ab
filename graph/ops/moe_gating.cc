// MoeGatingTopKSoftmax, MoeGatingTopKSoftmaxV2 and MoeGatingTopK: which experts a token goes to,
// and with what weight. Ops reference 5.12.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "graph/ops/float_exp.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/moe.h"
#include "graph/ops/numbers.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

void Softmax(const float* x, int64_t count, float* y) {
  const float most = MaxOf(x, count);
  for (int64_t i = 0; i < count; ++i) y[i] = ExpOfNonPositive(x[i] - most);
  const auto scale = static_cast<float>(1.0 / BlockedSum(y, count, [](float v) { return v; }));
  for (int64_t i = 0; i < count; ++i) y[i] *= scale;
}

// x as [.., experts], and k of them.
Status CheckScores(const OpContext& op) {
  const TensorType& x = op.in("x");
  const int64_t k = op.attr_int("k");
  if (IsRowType(x.dtype) && x.shape.rank() >= 2 && k >= 1 && k <= x.shape.dims().back()) {
    return Status();
  }
  return Error(Code::kInvalidArgument,
               "{}: x is {} and k {}; expected float16, bfloat16 or float32 [..,E] with E of at "
               "least k",
               op.Who(), x.ToString(), k);
}

// The shape of x with its experts replaced by k.
Shape Chosen(const OpContext& op) {
  Shape shape = op.in("x").shape;
  shape.mutable_dims().back() = op.attr_int("k");
  return shape;
}

// ---- MoeGatingTopKSoftmax, MoeGatingTopKSoftmaxV2 ----

Status InferSoftmaxGating(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckScores(op));
  const TensorType& x = op.in("x");
  const Shape chosen = Chosen(op);
  if (const int finished = SlotIfFed(op, "finished"); finished >= 0) {
    const TensorType& type = op.in(finished);
    const bool fits = type.dtype == DataType::kBool &&
                      type.shape.elements() == ElementsBetween(x.shape, 0, x.shape.rank() - 1);
    if (!fits) {
      return Error(Code::kInvalidArgument, "{}: finished is {}, expected a bool for each row of {}",
                   op.Who(), type.ToString(), x.ToString());
    }
  }
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, x.dtype, chosen));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kInt32, chosen));
  const bool second = op.schema().type == "MoeGatingTopKSoftmaxV2";
  return second ? SetOutput(op, 2, DataType::kFloat, x.shape)
                : SetOutput(op, 2, DataType::kInt32, chosen);
}

class SoftmaxGatingKernel final : public Kernel {
 public:
  explicit SoftmaxGatingKernel(const OpContext& op)
      : second_(op.schema().type == "MoeGatingTopKSoftmaxV2"),
        x_(op.slot("x")),
        finished_(SlotIfFed(op, "finished")),
        dtype_(op.in("x").dtype),
        experts_(op.in("x").shape.dims().back()),
        rows_(op.in("x").shape.elements() / experts_),
        k_(op.attr_int("k")),
        late_(second_ && op.attr_int("renorm") == 1),
        keeps_(second_ && !late_ && op.attr_bool("output_softmax_result_flag")),
        order_(static_cast<size_t>(experts_)) {}

  // x, its softmax, the chosen values.
  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(2 * experts_ + 2 * k_) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* x = static_cast<float*>(args.scratch);
    float* p = x + experts_;
    float* chosen = p + experts_;
    auto* ids = static_cast<int32_t*>(args.out[1]);
    for (int64_t row = 0; row < rows_; ++row, ids += k_) {
      LoadNumbers(dtype_, args.in[x_], row * experts_, experts_, x);
      if (late_) {
        std::copy_n(x, experts_, p);
      } else {
        Softmax(x, experts_, p);
      }
      LargestFirst(p, experts_, k_, order_);
      for (int64_t j = 0; j < k_; ++j) {
        ids[j] = order_[static_cast<size_t>(j)];
        chosen[j] = p[ids[j]];
      }
      if (late_) Softmax(chosen, k_, chosen + k_);
      StoreRow(dtype_, late_ ? chosen + k_ : chosen, args.out[0], row * k_, k_);
      if (finished_ >= 0 && static_cast<const uint8_t*>(args.in[finished_])[row] != 0) {
        std::fill_n(ids, k_, static_cast<int32_t>(experts_));
      }
      StoreThird(args, row, p);
    }
    return Status();
  }

 private:
  // The numbers of rows in column order, or the softmax.
  void StoreThird(const KernelArgs& args, int64_t row, const float* p) const {
    if (second_) {
      float* to = static_cast<float*>(args.out[2]) + row * experts_;
      for (int64_t i = 0; i < experts_; ++i) to[i] = keeps_ ? p[i] : 0.0f;
      return;
    }
    int32_t* to = static_cast<int32_t*>(args.out[2]) + row * k_;
    for (int64_t j = 0; j < k_; ++j) to[j] = static_cast<int32_t>(j * rows_ + row);
  }

  bool second_;
  int x_;
  int finished_;
  DataType dtype_;
  int64_t experts_;
  int64_t rows_;
  int64_t k_;
  bool late_;   // softmax of the chosen ones only
  bool keeps_;  // the softmax of all is an output
  std::vector<int32_t> order_;
};

// ---- MoeGatingTopK ----

Status CheckGroups(const OpContext& op) {
  const int64_t experts = op.in("x").shape.dims().back();
  const int64_t groups = op.attr_int("group_count");
  const int64_t kept = op.attr_int("k_group");
  const bool groups_fit = groups >= 1 && experts % groups == 0 && kept >= 1 && kept <= groups &&
                          op.attr_int("k") <= kept * (experts / groups);
  const int64_t norm = op.attr_int("norm_type");
  const int64_t mode = op.attr_int("group_select_mode");
  if (groups_fit && norm >= 0 && norm <= 2 && (mode == 0 || mode == 1)) return Status();
  return Error(Code::kInvalidArgument,
               "{}: {} of {} groups for {} experts and k {}, norm_type {}, group_select_mode {}",
               op.Who(), kept, groups, experts, op.attr_int("k"), norm, mode);
}

Status InferGating(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckScores(op));
  NPUMESH_RETURN_IF_ERROR(CheckGroups(op));
  const TensorType& x = op.in("x");
  NPUMESH_ASSIGN_OR_RETURN(const Factors bias, Factors::Of(op, "bias"));
  if (bias.given() && bias.count() != x.shape.dims().back()) {
    return Error(Code::kInvalidArgument, "{}: bias has {} elements for x {}", op.Who(),
                 bias.count(), x.ToString());
  }
  for (const std::string_view port : {"input_ids", "tid2eid"}) {
    if (SlotIfFed(op, port) >= 0) {
      return Error(Code::kUnsupported, "{}: the input \"{}\" is not supported", op.Who(), port);
    }
  }
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, x.dtype, Chosen(op)));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kInt32, Chosen(op)));
  return SetOutput(op, 2, DataType::kFloat, x.shape);
}

class GatingKernel final : public Kernel {
 public:
  GatingKernel(const OpContext& op, Factors bias)
      : bias_(bias),
        x_(op.slot("x")),
        dtype_(op.in("x").dtype),
        experts_(op.in("x").shape.dims().back()),
        rows_(op.in("x").shape.elements() / experts_),
        k_(op.attr_int("k")),
        groups_(op.attr_int("group_count")),
        kept_groups_(op.attr_int("k_group")),
        two_largest_(op.attr_int("group_select_mode") == 1),
        norm_(op.attr_int("norm_type")),
        divides_(norm_ != 0 || op.attr_int("renorm") == 1),
        keeps_(op.attr_bool("out_flag")),
        factor_(op.attr_float("routed_scaling_factor")),
        epsilon_(op.attr_float("eps")),
        order_(static_cast<size_t>(experts_)) {}

  // x, normalised, biased, bias, group scores, results.
  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(6 * experts_) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* x = static_cast<float*>(args.scratch);
    float* n = x + experts_;
    float* biased = n + experts_;
    float* bias = biased + experts_;
    float* y = bias + 2 * experts_;
    if (bias_.given()) bias_.Load(args, 0, experts_, bias);
    auto* ids = static_cast<int32_t*>(args.out[1]);
    for (int64_t row = 0; row < rows_; ++row, ids += k_) {
      LoadNumbers(dtype_, args.in[x_], row * experts_, experts_, x);
      Normalise(x, n);
      for (int64_t i = 0; i < experts_; ++i) biased[i] = n[i] + (bias_.given() ? bias[i] : 0.0f);
      if (groups_ > 1) DropGroups(biased, bias + experts_);
      LargestFirst(biased, experts_, k_, order_);
      double sum = 0;
      for (int64_t j = 0; j < k_; ++j) {
        ids[j] = order_[static_cast<size_t>(j)];
        y[j] = n[ids[j]];
        sum += static_cast<double>(y[j]);
      }
      const float divisor = divides_ ? static_cast<float>(sum) + epsilon_ : 1.0f;
      for (int64_t j = 0; j < k_; ++j) y[j] = y[j] / divisor * factor_;
      StoreRow(dtype_, y, args.out[0], row * k_, k_);
      float* out = static_cast<float*>(args.out[2]) + row * experts_;
      for (int64_t i = 0; i < experts_; ++i) out[i] = keeps_ ? n[i] : 0.0f;
    }
    return Status();
  }

 private:
  void Normalise(const float* x, float* n) const {
    if (norm_ == 0) {
      Softmax(x, experts_, n);
      return;
    }
    for (int64_t i = 0; i < experts_; ++i) {
      const auto v = static_cast<double>(x[i]);
      const double softplus = std::max(v, 0.0) + std::log1p(std::exp(-std::fabs(v)));
      n[i] = static_cast<float>(norm_ == 1 ? 1 / (1 + std::exp(-v)) : std::sqrt(softplus));
    }
  }

  // Experts of all but the best groups become -inf.
  void DropGroups(float* biased, float* scores) {
    const int64_t size = experts_ / groups_;
    for (int64_t g = 0; g < groups_; ++g) {
      const int64_t count = two_largest_ ? std::min<int64_t>(2, size) : 1;
      LargestFirst(biased + g * size, size, count, order_);
      scores[g] = 0;
      for (int64_t i = 0; i < count; ++i) {
        scores[g] += biased[g * size + order_[static_cast<size_t>(i)]];
      }
    }
    LargestFirst(scores, groups_, kept_groups_, order_);
    std::fill_n(scores, groups_, 0.0f);
    for (int64_t i = 0; i < kept_groups_; ++i) scores[order_[static_cast<size_t>(i)]] = 1;
    for (int64_t i = 0; i < experts_; ++i) {
      if (scores[i / size] == 0) biased[i] = -std::numeric_limits<float>::infinity();
    }
  }

  Factors bias_;
  int x_;
  DataType dtype_;
  int64_t experts_;
  int64_t rows_;
  int64_t k_;
  int64_t groups_;
  int64_t kept_groups_;
  bool two_largest_;
  int64_t norm_;
  bool divides_;
  bool keeps_;
  float factor_;
  float epsilon_;
  std::vector<int32_t> order_;
};

Result<std::unique_ptr<Kernel>> MakeSoftmaxGating(const OpContext& op) {
  return std::unique_ptr<Kernel>(std::make_unique<SoftmaxGatingKernel>(op));
}

Result<std::unique_ptr<Kernel>> MakeGating(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Factors bias, Factors::Of(op, "bias"));
  return std::unique_ptr<Kernel>(std::make_unique<GatingKernel>(op, bias));
}

}  // namespace

void LargestFirst(const float* values, int64_t count, int64_t k, std::vector<int32_t>& order) {
  std::iota(order.begin(), order.begin() + count, 0);
  const auto above = [values](int32_t a, int32_t b) {
    const bool a_nan = std::isnan(values[a]);
    const bool b_nan = std::isnan(values[b]);
    if (a_nan != b_nan) return a_nan;
    if (!a_nan && values[a] != values[b]) return values[a] > values[b];
    return a < b;
  };
  std::partial_sort(order.begin(), order.begin() + k, order.begin() + count, above);
}

void RegisterMoeOps(OpRegistry& registry) {
  RegisterMoeGatingOps(registry);
  RegisterMoeRoutingOps(registry);
  RegisterMoeFinalizeOps(registry);
  RegisterMoeReRoutingOps(registry);
  RegisterMoeDispatchOps(registry);
  RegisterMoeCombineOps(registry);
}

void RegisterMoeGatingOps(OpRegistry& registry) {
  const PortSpec finished = {"finished", PortKind::kOptional};
  const AttrSpec k = {"k", Required::kInt};
  registry.Add({.schema = {"MoeGatingTopKSoftmax",
                           {{"x"}, finished},
                           {{"y"}, {"expert_idx"}, {"row_idx"}},
                           {k}},
                .infer = InferSoftmaxGating,
                .make_kernel = MakeSoftmaxGating});
  registry.Add({.schema = {"MoeGatingTopKSoftmaxV2",
                           {{"x"}, finished},
                           {{"y"}, {"expert_idx"}, {"softmax_result"}},
                           {k,
                            {"renorm", AttrValue::Int(0)},
                            {"output_softmax_result_flag", AttrValue::Bool(false)}}},
                .infer = InferSoftmaxGating,
                .make_kernel = MakeSoftmaxGating});
  registry.Add({.schema = {"MoeGatingTopK",
                           {{"x"},
                            {"bias", PortKind::kOptional},
                            {"input_ids", PortKind::kOptional},
                            {"tid2eid", PortKind::kOptional}},
                           {{"y"}, {"expert_idx"}, {"out"}},
                           {k,
                            {"k_group", AttrValue::Int(1)},
                            {"group_count", AttrValue::Int(1)},
                            {"group_select_mode", AttrValue::Int(0)},
                            {"renorm", AttrValue::Int(0)},
                            {"norm_type", AttrValue::Int(0)},
                            {"out_flag", AttrValue::Bool(false)},
                            {"routed_scaling_factor", AttrValue::Float(1.0f)},
                            {"eps", AttrValue::Float(1e-20f)}}},
                .infer = InferGating,
                .make_kernel = MakeGating});
}

}  // namespace npumesh
