// MoeInitRoutingV3 and MoeComputeExpertTokens: tokens sorted by the experts they go to. Ops
// reference 5.12.
//
// Position p of expert_idx is choice p % K of token p / K. Positions are sorted by expert, those of
// equal experts stay in order; experts outside of active_expert_range come last and are not
// expanded. Expanded rows that nothing goes to are unspecified; they are zero here.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/moe.h"
#include "graph/ops/numbers.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

enum class Quant : uint8_t { kNone, kStatic, kDynamic };

struct Routing {
  int64_t tokens = 0;
  int64_t k = 0;
  int64_t width = 0;
  int64_t first = 0;  // active experts [first, last)
  int64_t last = 0;
  int64_t experts = 0;
  int64_t capacity = 0;  // rows of each expert; 0: they follow each other
  int64_t rows = 0;      // of expanded_x
  Quant quant = Quant::kNone;
  bool counts = false;  // expert_tokens_count_or_cumsum is asked for
  int64_t count_type = 0;
  bool gathers = true;  // expanded_row_idx by position, not by row
  Factors scale;
  Factors offset;
  DataType x_dtype = DataType::kUndefined;

  int64_t positions() const { return tokens * k; }
  Shape CountShape() const {
    if (!counts) return {0};
    return count_type == 2 ? Shape{experts, 2} : Shape{last - first};
  }
};

Status ReadExperts(const OpContext& op, Routing& plan) {
  plan.experts = op.attr_int("expert_num");
  const std::vector<int64_t> range = op.attr_ints("active_expert_range");
  plan.last = plan.experts;
  if (range.size() == 2) {
    plan.first = range[0];
    plan.last = range[1];
  }
  const bool range_fits = (range.empty() || range.size() == 2) && plan.first >= 0 &&
                          plan.first < plan.last && plan.last <= plan.experts;
  const int64_t drop = op.attr_int("drop_pad_mode");
  plan.capacity = drop == 1 ? op.attr_int("expert_capacity") : 0;
  if (plan.experts < 1 || !range_fits || (drop != 0 && (drop != 1 || plan.capacity < 1))) {
    return Error(Code::kInvalidArgument,
                 "{}: expert_num {}, active_expert_range of {} numbers, drop_pad_mode {} with "
                 "expert_capacity {}",
                 op.Who(), plan.experts, range.size(), drop, op.attr_int("expert_capacity"));
  }
  return Status();
}

// scale: none without quantisation or [tokens]; static one; dynamic smoothing [1 or experts, H].
Status ReadScales(const OpContext& op, Routing& plan) {
  const int64_t mode = op.attr_int("quant_mode");
  if (mode < -1 || mode > 1) {
    return Error(Code::kUnsupported, "{}: quant_mode {} is not supported, expected -1, 0 or 1",
                 op.Who(), mode);
  }
  plan.quant = mode < 0 ? Quant::kNone : mode == 0 ? Quant::kStatic : Quant::kDynamic;
  NPUMESH_ASSIGN_OR_RETURN(plan.scale, Factors::Of(op, "scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.offset, Factors::Of(op, "offset"));
  const int64_t count = plan.scale.count();
  const bool fits = plan.quant == Quant::kStatic ? count == 1 && plan.offset.count() <= 1
                    : !plan.scale.given()        ? true
                    : plan.quant == Quant::kNone
                        ? count == plan.tokens
                        : count == plan.width || count == plan.width * plan.experts ||
                              count == plan.width * (plan.last - plan.first);
  const bool typed = plan.quant == Quant::kNone || IsRowType(plan.x_dtype);
  if (fits && typed) return Status();
  return Error(Code::kInvalidArgument, "{}: {} scales for x {} and quant_mode {}", op.Who(), count,
               op.in("x").ToString(), mode);
}

Result<Routing> PlanRouting(const OpContext& op) {
  const TensorType& x = op.in("x");
  const TensorType& ids = op.in("expert_idx");
  if (x.shape.rank() != 2 || ids.shape.rank() != 2 || ids.shape[0] != x.shape[0] ||
      ids.dtype != DataType::kInt32) {
    return Error(Code::kInvalidArgument,
                 "{}: x is {} and expert_idx {}, expected [tokens,H] and int32[tokens,K]", op.Who(),
                 x.ToString(), ids.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(ElementBytes(op, x.dtype).status());
  Routing plan;
  plan.tokens = x.shape[0];
  plan.k = ids.shape[1];
  plan.width = x.shape[1];
  plan.x_dtype = x.dtype;
  NPUMESH_RETURN_IF_ERROR(ReadExperts(op, plan));
  NPUMESH_RETURN_IF_ERROR(ReadScales(op, plan));
  plan.counts = op.attr_bool("expert_tokens_num_flag");
  plan.count_type = op.attr_int("expert_tokens_num_type");
  plan.gathers = op.attr_int("row_idx_type") == 0;
  if (plan.count_type < 0 || plan.count_type > 2) {
    return Error(Code::kInvalidArgument, "{}: expert_tokens_num_type {}, expected 0, 1 or 2",
                 op.Who(), plan.count_type);
  }
  const int64_t active = op.attr_int("active_num");
  plan.rows = plan.capacity > 0 ? plan.experts * plan.capacity
              : active > 0      ? std::min(active, plan.positions())
                                : plan.positions();
  return plan;
}

Status InferRouting(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Routing plan, PlanRouting(op));
  const DataType dtype = plan.quant == Quant::kNone ? plan.x_dtype : DataType::kInt8;
  const Shape expanded = plan.capacity > 0 ? Shape{plan.experts, plan.capacity, plan.width}
                                           : Shape{plan.rows, plan.width};
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, dtype, expanded));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kInt32, {plan.positions()}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 2, DataType::kInt64, plan.CountShape()));
  return SetOutput(op, 3, DataType::kFloat, {plan.rows});
}

class RoutingKernel final : public Kernel {
 public:
  RoutingKernel(const OpContext& op, const Routing& plan)
      : who_(op.Who()),
        plan_(plan),
        x_(op.slot("x")),
        ids_(op.slot("expert_idx")),
        row_bytes_(static_cast<size_t>(plan.width * BitsOf(plan.x_dtype) / 8)),
        expanded_bytes_(op.out(0).bytes()),
        order_(static_cast<size_t>(plan.positions())),
        counts_(static_cast<size_t>(plan.experts)) {}

  // A row of x and its smoothing.
  uint64_t scratch_bytes() const override {
    return 2 * static_cast<uint64_t>(plan_.width) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const auto* ids = static_cast<const int32_t*>(args.in[ids_]);
    NPUMESH_RETURN_IF_ERROR(Sort(ids));
    if (expanded_bytes_ > 0) std::memset(args.out[0], 0, expanded_bytes_);
    std::fill_n(static_cast<float*>(args.out[3]), plan_.rows, 0.0f);
    auto* row_of = static_cast<int32_t*>(args.out[1]);
    std::fill_n(row_of, plan_.positions(), -1);
    int64_t in_expert = 0;
    for (int64_t i = 0; i < active_; ++i) {
      const int32_t position = order_[static_cast<size_t>(i)];
      const int32_t expert = ids[position];
      in_expert = i > 0 && ids[order_[static_cast<size_t>(i - 1)]] == expert ? in_expert + 1 : 0;
      int64_t row = i;
      if (plan_.capacity > 0) {
        if (in_expert >= plan_.capacity) continue;
        row = expert * plan_.capacity + in_expert;
      }
      if (plan_.gathers) {
        row_of[position] = static_cast<int32_t>(row);
      } else {
        row_of[i] = position;
      }
      if (row < plan_.rows) Expand(args, position / plan_.k, expert, row);
    }
    if (plan_.counts) StoreCounts(static_cast<int64_t*>(args.out[2]));
    return Status();
  }

 private:
  bool IsActive(int32_t expert) const { return expert >= plan_.first && expert < plan_.last; }

  // Fills order_, counts_ and active_.
  Status Sort(const int32_t* ids) {
    std::fill(counts_.begin(), counts_.end(), 0);
    active_ = 0;
    for (int64_t p = 0; p < plan_.positions(); ++p) {
      order_[static_cast<size_t>(p)] = static_cast<int32_t>(p);
      if (ids[p] < 0 || ids[p] >= plan_.experts) {
        return Error(Code::kInvalidArgument,
                     "{}: expert_idx holds {} for token {}, expected 0 to {}", who_, ids[p],
                     p / plan_.k, plan_.experts - 1);
      }
      if (!IsActive(ids[p])) continue;
      ++counts_[static_cast<size_t>(ids[p])];
      ++active_;
    }
    std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
      if (IsActive(ids[a]) != IsActive(ids[b])) return IsActive(ids[a]);
      return ids[a] != ids[b] ? ids[a] < ids[b] : a < b;
    });
    return Status();
  }

  void Expand(const KernelArgs& args, int64_t token, int32_t expert, int64_t row) const {
    auto* scales = static_cast<float*>(args.out[3]);
    if (plan_.quant == Quant::kNone) {
      std::memcpy(
          static_cast<std::byte*>(args.out[0]) + static_cast<size_t>(row) * row_bytes_,
          static_cast<const std::byte*>(args.in[x_]) + static_cast<size_t>(token) * row_bytes_,
          row_bytes_);
      if (plan_.scale.given()) scales[row] = plan_.scale.At(args, token);
      return;
    }
    const int64_t n = plan_.width;
    auto* x = static_cast<float*>(args.scratch);
    int8_t* to = static_cast<int8_t*>(args.out[0]) + row * n;
    LoadNumbers(plan_.x_dtype, args.in[x_], token * n, n, x);
    if (plan_.quant == Quant::kDynamic) {
      if (plan_.scale.given()) Smooth(args, expert, x);
      scales[row] = QuantiseRow(x, n, to);
      return;
    }
    const float scale = plan_.scale.At(args, 0);
    const float offset = plan_.offset.given() ? plan_.offset.At(args, 0) : 0.0f;
    for (int64_t i = 0; i < n; ++i) x[i] = x[i] * scale + offset;
    StoreIntegers(DataType::kInt8, Rounding::kNearest, x, to, 0, n);
  }

  void Smooth(const KernelArgs& args, int32_t expert, float* x) const {
    const int64_t n = plan_.width;
    float* factors = x + n;
    const int64_t sets = plan_.scale.count() / n;
    const int64_t set = sets == 1 ? 0 : sets == plan_.experts ? expert : expert - plan_.first;
    plan_.scale.Load(args, set * n, n, factors);
    for (int64_t i = 0; i < n; ++i) x[i] *= factors[i];
  }

  void StoreCounts(int64_t* to) const {
    int64_t sum = 0;
    if (plan_.count_type == 2) std::fill_n(to, 2 * plan_.experts, 0);
    for (int64_t e = plan_.first; e < plan_.last; ++e) {
      const int64_t count = counts_[static_cast<size_t>(e)];
      sum += count;
      if (plan_.count_type == 2) {
        if (count == 0) continue;
        *to++ = e;
        *to++ = count;
      } else {
        *to++ = plan_.count_type == 0 ? sum : count;
      }
    }
  }

  std::string who_;
  Routing plan_;
  int x_;
  int ids_;
  size_t row_bytes_;
  uint64_t expanded_bytes_;
  std::vector<int32_t> order_;   // positions by expert
  std::vector<int64_t> counts_;  // of each expert
  int64_t active_ = 0;           // positions of active experts
};

Result<std::unique_ptr<Kernel>> MakeRouting(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Routing plan, PlanRouting(op));
  return std::unique_ptr<Kernel>(std::make_unique<RoutingKernel>(op, plan));
}

// ---- MoeComputeExpertTokens ----

Status InferTokens(OpContext& op) {
  const int64_t experts = op.attr_int("num_experts");
  if (op.in(0).dtype != DataType::kInt32 || experts < 1) {
    return Error(Code::kInvalidArgument, "{}: sorted_experts is {} and num_experts {}", op.Who(),
                 op.in(0).ToString(), experts);
  }
  return SetOutput(op, 0, DataType::kInt32, {experts});
}

Result<std::unique_ptr<Kernel>> MakeTokens(const OpContext& op) {
  const int64_t experts = op.attr_int("num_experts");
  const int64_t count = op.in(0).shape.elements();
  return MakeKernel([=](const KernelArgs& args) {
    const auto* sorted = static_cast<const int32_t*>(args.in[0]);
    auto* to = static_cast<int32_t*>(args.out[0]);
    for (int64_t e = 0, at = 0; e < experts; ++e) {
      while (at < count && sorted[at] <= e) ++at;
      to[e] = static_cast<int32_t>(at);
    }
    return Status();
  });
}

}  // namespace

float QuantiseRow(float* from, int64_t count, int8_t* to) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::fabs(from[i]));
  const float scale = most / 127.0f;
  for (int64_t i = 0; i < count; ++i) from[i] = scale == 0 ? 0.0f : from[i] / scale;
  StoreIntegers(DataType::kInt8, Rounding::kNearest, from, to, 0, count);
  return scale;
}

void RegisterMoeRoutingOps(OpRegistry& registry) {
  registry.Add({.schema = {"MoeInitRoutingV3",
                           {{"x"},
                            {"expert_idx"},
                            {"scale", PortKind::kOptional},
                            {"offset", PortKind::kOptional}},
                           {{"expanded_x"},
                            {"expanded_row_idx"},
                            {"expert_tokens_count_or_cumsum"},
                            {"expanded_scale"}},
                           {{"active_num", AttrValue::Int(-1)},
                            {"expert_capacity", AttrValue::Int(-1)},
                            {"expert_num", AttrValue::Int(-1)},
                            {"drop_pad_mode", AttrValue::Int(0)},
                            {"expert_tokens_num_type", AttrValue::Int(0)},
                            {"expert_tokens_num_flag", AttrValue::Bool(false)},
                            {"quant_mode", AttrValue::Int(-1)},
                            {"active_expert_range", AttrValue::Ints({})},
                            {"row_idx_type", AttrValue::Int(0)}}},
                .infer = InferRouting,
                .make_kernel = MakeRouting});
  registry.Add({.schema = {"MoeComputeExpertTokens",
                           {{"sorted_experts"}},
                           {{"total_rows_before_expert"}},
                           {{"num_experts", Required::kInt}}},
                .infer = InferTokens,
                .make_kernel = MakeTokens});
}

}  // namespace npumesh
