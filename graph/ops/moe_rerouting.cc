// MoeReRouting: tokens that came by rank and expert, brought into the order of expert and rank. Ops
// reference 5.12.
#include <cstring>

#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

struct ReRouting {
  int64_t ranks = 0;
  int64_t experts = 0;
  int64_t rows = 0;
  size_t row_bytes = 0;
  int scales = -1;
  size_t scale_bytes = 0;
  DataType count_dtype = DataType::kInt64;
  bool sums = false;  // expert_token_num are prefix sums
};

Result<ReRouting> PlanReRouting(const OpContext& op) {
  const TensorType& tokens = op.in("tokens");
  const TensorType& counts = op.in("expert_token_num_per_rank");
  ReRouting plan;
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, tokens.dtype));
  plan.scales = SlotIfFed(op, "per_token_scales");
  const int64_t type = op.attr_int("expert_token_num_type");
  bool fits = tokens.shape.rank() == 2 && counts.shape.rank() == 2 &&
              (counts.dtype == DataType::kInt32 || counts.dtype == DataType::kInt64) &&
              (type == 0 || type == 1) && op.attr_int("idx_type") == 0;
  if (fits) {
    plan.ranks = counts.shape[0];
    plan.experts = counts.shape[1];
    plan.rows = tokens.shape[0];
    plan.row_bytes = element * static_cast<size_t>(tokens.shape[1]);
    plan.count_dtype = counts.dtype;
    plan.sums = type == 0;
  }
  if (fits && plan.scales >= 0) {
    const TensorType& scales = op.in(plan.scales);
    NPUMESH_ASSIGN_OR_RETURN(const size_t bytes, ElementBytes(op, scales.dtype));
    if (scales.shape.rank() == 0 || scales.shape[0] != plan.rows) {
      return Error(Code::kInvalidArgument,
                   "{}: per_token_scales {}; expected one row for each of {}", op.Who(),
                   scales.ToString(), tokens.ToString());
    }
    plan.scale_bytes =
        bytes * static_cast<size_t>(ElementsBetween(scales.shape, 1, scales.shape.rank()));
  }
  if (fits) return plan;
  return Error(Code::kInvalidArgument,
               "{}: tokens {}, expert_token_num_per_rank {}, expert_token_num_type {} and idx_type "
               "{}; expected [A,H], integers [ranks,experts], 0 or 1, and 0",
               op.Who(), tokens.ToString(), counts.ToString(), type, op.attr_int("idx_type"));
}

Status InferReRouting(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const ReRouting plan, PlanReRouting(op));
  const TensorType scales =
      plan.scales < 0 ? TensorType{DataType::kFloat, {plan.rows}} : op.in(plan.scales);
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("tokens").dtype, op.in("tokens").shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, scales.dtype, scales.shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 2, DataType::kInt32, {plan.rows}));
  return SetOutput(op, 3, plan.count_dtype, {plan.experts});
}

class ReRoutingKernel final : public Kernel {
 public:
  ReRoutingKernel(const OpContext& op, const ReRouting& plan)
      : who_(op.Who()),
        plan_(plan),
        tokens_(op.slot("tokens")),
        counts_(op.slot("expert_token_num_per_rank")) {
    for (int i = 0; i < 4; ++i) bytes_[i] = op.out(i).bytes();
  }

  // Rows that no count names are zero.
  Status Run(const KernelArgs& args) override {
    NPUMESH_RETURN_IF_ERROR(CheckCounts(args));
    for (int i = 0; i < 4; ++i) {
      if (bytes_[i] > 0) std::memset(args.out[i], 0, bytes_[i]);
    }
    int64_t to = 0;
    for (int64_t e = 0; e < plan_.experts; ++e) {
      const int64_t before = to;
      int64_t from = 0;
      for (int64_t r = 0; r < plan_.ranks; ++r) {
        for (int64_t other = 0; other < plan_.experts; ++other) {
          const int64_t count = Count(args, r, other);
          if (other == e) {
            for (int64_t i = 0; i < count; ++i) Move(args, from + i, to++);
          }
          from += count;
        }
      }
      StoreCount(args, e, plan_.sums ? to : to - before);
    }
    return Status();
  }

 private:
  int64_t Count(const KernelArgs& args, int64_t rank, int64_t expert) const {
    return IntegerAt(plan_.count_dtype, args.in[counts_], rank * plan_.experts + expert);
  }

  Status CheckCounts(const KernelArgs& args) const {
    int64_t left = plan_.rows;
    for (int64_t r = 0; r < plan_.ranks; ++r) {
      for (int64_t e = 0; e < plan_.experts; ++e) {
        const int64_t count = Count(args, r, e);
        if (count < 0 || count > left) {
          return Error(Code::kInvalidArgument,
                       "{}: {} tokens of rank {} for expert {}, but only {} of {} rows are left",
                       who_, count, r, e, left, plan_.rows);
        }
        left -= count;
      }
    }
    return Status();
  }

  void Move(const KernelArgs& args, int64_t from, int64_t to) const {
    const auto copy = [&](int slot, int output, size_t bytes) {
      std::memcpy(static_cast<std::byte*>(args.out[output]) + static_cast<size_t>(to) * bytes,
                  static_cast<const std::byte*>(args.in[slot]) + static_cast<size_t>(from) * bytes,
                  bytes);
    };
    copy(tokens_, 0, plan_.row_bytes);
    if (plan_.scales >= 0) copy(plan_.scales, 1, plan_.scale_bytes);
    static_cast<int32_t*>(args.out[2])[to] = static_cast<int32_t>(from);
  }

  void StoreCount(const KernelArgs& args, int64_t expert, int64_t count) const {
    if (plan_.count_dtype == DataType::kInt64) {
      static_cast<int64_t*>(args.out[3])[expert] = count;
    } else {
      static_cast<int32_t*>(args.out[3])[expert] = static_cast<int32_t>(count);
    }
  }

  std::string who_;
  ReRouting plan_;
  int tokens_;
  int counts_;
  uint64_t bytes_[4] = {};
};

Result<std::unique_ptr<Kernel>> MakeReRouting(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const ReRouting plan, PlanReRouting(op));
  return std::unique_ptr<Kernel>(std::make_unique<ReRoutingKernel>(op, plan));
}

}  // namespace

void RegisterMoeReRoutingOps(OpRegistry& registry) {
  registry.Add(
      {.schema = {"MoeReRouting",
                  {{"tokens"},
                   {"expert_token_num_per_rank"},
                   {"per_token_scales", PortKind::kOptional}},
                  {{"permute_tokens"},
                   {"permute_per_token_scales"},
                   {"permute_token_idx"},
                   {"expert_token_num"}},
                  {{"expert_token_num_type", AttrValue::Int(1)}, {"idx_type", AttrValue::Int(0)}}},
       .infer = InferReRouting,
       .make_kernel = MakeReRouting});
}

}  // namespace npumesh
