// MoeInitRouting and MoeInitRoutingV2: tokens sorted by the experts they go to. Ops reference 5.12.
//
// The first version carries a row number with each choice, that of MoeGatingTopKSoftmax: choice j
// of token t is row j * tokens + t. In the second a choice is position t * K + j. Choices of equal
// experts stay in order. Expanded rows that nothing goes to are zero.
#include <algorithm>
#include <cstring>

#include "graph/ops/expert_families.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"

namespace npumesh {
namespace {

struct InitRouting {
  int64_t tokens = 0;
  int64_t k = 0;
  int64_t rows = 0;       // of expanded_x
  int64_t row_bytes = 0;  // of x
  int64_t experts = 0;    // 0: any number
  int64_t capacity = 0;   // rows of each expert; 0: they follow each other
  int64_t counts = 0;     // 1 prefix sums, 2 counts, 0 neither
  bool raw_counts = false;
  DataType id_dtype = DataType::kInt32;

  int64_t positions() const { return tokens * k; }
};

// x [tokens, H], expert_idx [tokens, K].
Result<InitRouting> PlanTokens(const OpContext& op) {
  const TensorType& x = op.in("x");
  const TensorType& ids = op.in("expert_idx");
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, op.slot("expert_idx")));
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, x.dtype));
  if (x.shape.rank() != 2 || ids.shape.rank() != 2 || ids.shape[0] != x.shape[0]) {
    return Error(Code::kInvalidArgument,
                 "{}: x is {} and expert_idx {}, expected [tokens,H] and [tokens,K]", op.Who(),
                 x.ToString(), ids.ToString());
  }
  InitRouting plan;
  plan.tokens = x.shape[0];
  plan.k = ids.shape[1];
  plan.row_bytes = x.shape[1] * static_cast<int64_t>(element);
  plan.id_dtype = ids.dtype;
  return plan;
}

// Positions by expert. Error: an expert that is none.
Status SortPositions(const std::string& who, const InitRouting& plan, const void* ids,
                     std::vector<int32_t>& order) {
  const auto id = [&](int64_t position) { return IntegerAt(plan.id_dtype, ids, position); };
  for (int64_t p = 0; p < plan.positions(); ++p) {
    order[static_cast<size_t>(p)] = static_cast<int32_t>(p);
    if (id(p) >= 0 && (plan.experts == 0 || id(p) < plan.experts)) continue;
    return Error(Code::kInvalidArgument, "{}: expert_idx holds {} for token {}, expected 0 to {}",
                 who, id(p), p / plan.k, plan.experts == 0 ? INT32_MAX : plan.experts - 1);
  }
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return id(a) != id(b) ? id(a) < id(b) : a < b; });
  return Status();
}

void CopyRow(const KernelArgs& args, int64_t row_bytes, int64_t from, int64_t to) {
  std::copy_n(static_cast<const std::byte*>(args.in[0]) + from * row_bytes, row_bytes,
              static_cast<std::byte*>(args.out[0]) + to * row_bytes);
}

// ---- MoeInitRouting ----

Result<InitRouting> PlanFirst(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(InitRouting plan, PlanTokens(op));
  const int64_t active = op.attr_int("active_num");
  if (op.in("row_idx") == op.in("expert_idx") && plan.id_dtype == DataType::kInt32 && active >= 0) {
    plan.rows = std::min(active, plan.tokens) * plan.k;
    return plan;
  }
  return Error(
      Code::kInvalidArgument,
      "{}: row_idx is {}, expert_idx {} and active_num {}; expected int32 of one shape and "
      "0 or more",
      op.Who(), op.in("row_idx").ToString(), op.in("expert_idx").ToString(), active);
}

Status InferFirst(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const InitRouting plan, PlanFirst(op));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("x").dtype, {plan.rows, op.in("x").shape[1]}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kInt32, {plan.positions()}));
  return SetOutput(op, 2, DataType::kInt32, {plan.positions()});
}

Result<std::unique_ptr<Kernel>> MakeFirst(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const InitRouting plan, PlanFirst(op));
  std::vector<int32_t> room(static_cast<size_t>(plan.positions()));
  return MakeKernel(
      [plan, who = op.Who(), order = std::move(room)](const KernelArgs& args) mutable -> Status {
        const auto* rows = static_cast<const int32_t*>(args.in[1]);
        const auto* ids = static_cast<const int32_t*>(args.in[2]);
        auto* row_at = static_cast<int32_t*>(args.out[1]);
        NPUMESH_RETURN_IF_ERROR(SortPositions(who, plan, ids, order));
        std::fill_n(row_at, plan.positions(), 0);
        for (int64_t i = 0; i < plan.positions(); ++i) {
          const int32_t position = order[static_cast<size_t>(i)];
          const int32_t row = rows[position];
          if (row < 0 || row >= plan.positions()) {
            return Error(Code::kInvalidArgument, "{}: row_idx holds {} at {}, expected 0 to {}",
                         who, row, position, plan.positions() - 1);
          }
          row_at[row] = static_cast<int32_t>(i);
          static_cast<int32_t*>(args.out[2])[i] = ids[position];
          if (i < plan.rows) CopyRow(args, plan.row_bytes, row % plan.tokens, i);
        }
        return Status();
      });
}

// ---- MoeInitRoutingV2 ----

Result<InitRouting> PlanSecond(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(InitRouting plan, PlanTokens(op));
  plan.experts = op.attr_int("expert_num");
  const int64_t drop = op.attr_int("drop_pad_mode");
  const int64_t capacity = op.attr_int("expert_capacity");
  const int64_t active = op.attr_int("active_num");
  plan.counts = op.attr_int("expert_tokens_count_or_cumsum_flag");
  plan.raw_counts = op.attr_bool("expert_tokens_before_capacity_flag") && drop == 1;
  const bool counted = plan.counts >= 0 && plan.counts <= 2;
  const bool modes = drop == 0 || (drop == 1 && capacity > 0);
  const bool named = plan.experts > 0 || (plan.experts == 0 && drop == 0 && plan.counts == 0);
  if (!counted || !modes || !named || active < 0) {
    return Error(Code::kInvalidArgument,
                 "{}: expert_num {}, active_num {}, drop_pad_mode {} with expert_capacity {}, "
                 "expert_tokens_count_or_cumsum_flag {}; expected 0 or more, mode 0 or 1 with a "
                 "capacity, flag 0 to 2, and experts for counts and capacities",
                 op.Who(), plan.experts, active, drop, capacity, plan.counts);
  }
  plan.capacity = drop == 1 ? capacity : 0;
  if (drop == 1) plan.counts = 0;
  plan.rows = drop == 1    ? plan.experts * capacity
              : active > 0 ? std::min(active, plan.positions())
                           : plan.positions();
  return plan;
}

Status InferSecond(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const InitRouting plan, PlanSecond(op));
  const int64_t width = op.in("x").shape[1];
  const Shape expanded =
      plan.capacity > 0 ? Shape{plan.experts, plan.capacity, width} : Shape{plan.rows, width};
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("x").dtype, expanded));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kInt32, {plan.positions()}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 2, DataType::kInt32, {plan.counts > 0 ? plan.experts : 0}));
  return SetOutput(op, 3, DataType::kInt32, {plan.raw_counts ? plan.experts : 0});
}

class SecondKernel final : public Kernel {
 public:
  SecondKernel(const OpContext& op, const InitRouting& plan)
      : who_(op.Who()),
        plan_(plan),
        order_(static_cast<size_t>(plan.positions())),
        counts_(static_cast<size_t>(plan.experts)) {}

  Status Run(const KernelArgs& args) override {
    NPUMESH_RETURN_IF_ERROR(SortPositions(who_, plan_, args.in[1], order_));
    std::fill(counts_.begin(), counts_.end(), 0);
    if (plan_.capacity > 0) {
      std::fill_n(static_cast<std::byte*>(args.out[0]), plan_.rows * plan_.row_bytes, std::byte{0});
    }
    auto* row_of = static_cast<int32_t*>(args.out[1]);
    for (int64_t i = 0; i < plan_.positions(); ++i) {
      const int32_t position = order_[static_cast<size_t>(i)];
      const int64_t row = RowOf(i, IntegerAt(plan_.id_dtype, args.in[1], position));
      row_of[position] = static_cast<int32_t>(row);
      if (row >= 0 && row < plan_.rows) CopyRow(args, plan_.row_bytes, position / plan_.k, row);
    }
    if (plan_.counts > 0) StoreCounts(plan_.counts == 1, static_cast<int32_t*>(args.out[2]));
    if (plan_.raw_counts) StoreCounts(false, static_cast<int32_t*>(args.out[3]));
    return Status();
  }

 private:
  // Where choice `i` of the sorted ones goes; -1: it is dropped.
  int64_t RowOf(int64_t i, int64_t expert) {
    if (counts_.empty()) return i;
    const int32_t before = counts_[static_cast<size_t>(expert)]++;
    if (plan_.capacity == 0) return i;
    return before < plan_.capacity ? expert * plan_.capacity + before : -1;
  }

  void StoreCounts(bool sums, int32_t* to) const {
    int32_t sum = 0;
    for (const int32_t count : counts_) {
      sum = sums ? sum + count : count;
      *to++ = sum;
    }
  }

  std::string who_;
  InitRouting plan_;
  std::vector<int32_t> order_;   // positions by expert
  std::vector<int32_t> counts_;  // of each expert
};

Result<std::unique_ptr<Kernel>> MakeSecond(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const InitRouting plan, PlanSecond(op));
  return std::unique_ptr<Kernel>(std::make_unique<SecondKernel>(op, plan));
}

}  // namespace

void RegisterMoeInitRoutingOps(OpRegistry& registry) {
  registry.Add({.schema = {"MoeInitRouting",
                           {{"x"}, {"row_idx"}, {"expert_idx"}},
                           {{"expanded_x"}, {"expanded_row_idx"}, {"expanded_expert_idx"}},
                           {{"active_num", Required::kInt}}},
                .infer = InferFirst,
                .make_kernel = MakeFirst});
  registry.Add({.schema = {"MoeInitRoutingV2",
                           {{"x"}, {"expert_idx"}},
                           {{"expanded_x"},
                            {"expanded_row_idx"},
                            {"expert_tokens_count_or_cumsum"},
                            {"expert_tokens_before_capacity"}},
                           {{"active_num", AttrValue::Int(0)},
                            {"expert_capacity", AttrValue::Int(0)},
                            {"expert_num", AttrValue::Int(0)},
                            {"drop_pad_mode", AttrValue::Int(0)},
                            {"expert_tokens_count_or_cumsum_flag", AttrValue::Int(0)},
                            {"expert_tokens_before_capacity_flag", AttrValue::Bool(false)}}},
                .infer = InferSecond,
                .make_kernel = MakeSecond});
}

}  // namespace npumesh
