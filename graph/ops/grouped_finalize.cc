// GroupedMatmulFinalizeRouting: products of int8 rows with the weights of their experts, weighted
// and added to the rows of their tokens. Ops reference 5.6.
#include <algorithm>

#include "graph/ops/blocked_product.h"
#include "graph/ops/expert_families.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/grouped_rows.h"
#include "graph/ops/infer_checks.h"

namespace npumesh {
namespace {

struct Finalize {
  GroupedRows rows;
  Factors scale;  // [E, n]
  Factors bias;   // [E, n]
  Factors row_scale;
  Factors logit;
  int shared = -1;
  int index = -1;
  int64_t shared_rows = 0;
  int64_t shared_first = 0;
  float shared_weight = 1;
  int64_t y_rows = 0;
};

Result<Finalize> PlanFinalize(const OpContext& op) {
  Finalize plan;
  if (op.attr_bool("transpose_x") || op.attr_int("dtype") != 0 || SlotIfFed(op, "offset") >= 0) {
    return Error(Code::kUnsupported,
                 "{}: transpose_x {}, dtype {} and offset{} fed; expected no, 0 and none", op.Who(),
                 op.attr_bool("transpose_x") ? "yes" : "no", op.attr_int("dtype"),
                 SlotIfFed(op, "offset") < 0 ? " not" : "");
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.rows, PlanGroupedRows(op, op.slot("w"), true, "transpose_w"));
  NPUMESH_ASSIGN_OR_RETURN(plan.scale, Factors::Of(op, "scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.bias, Factors::Of(op, "bias"));
  NPUMESH_ASSIGN_OR_RETURN(plan.row_scale, Factors::Of(op, "pertoken_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.logit, Factors::Of(op, "logit"));
  plan.index = SlotIfFed(op, "row_index");
  plan.shared = SlotIfFed(op, "shared_input");
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, plan.index));
  plan.shared_first = op.attr_int("shared_input_offset");
  plan.shared_weight = op.attr_float("shared_input_weight");
  const GroupedRows& rows = plan.rows;
  plan.y_rows = op.attr_int("output_bs") > 0 ? op.attr_int("output_bs") : rows.m;
  const auto either = [](int64_t count, int64_t expected) {
    return count == 0 || count == expected;
  };
  bool fits = plan.scale.count() == rows.experts * rows.n &&
              either(plan.bias.count(), rows.experts * rows.n) &&
              either(plan.row_scale.count(), rows.m) && either(plan.logit.count(), rows.m) &&
              plan.index >= 0 && op.in(plan.index).shape.elements() == rows.m;
  if (fits && plan.shared >= 0) {
    const TensorType& shared = op.in(plan.shared);
    fits = IsRowType(shared.dtype) && shared.shape.rank() == 2 && shared.shape[1] == rows.n &&
           plan.shared_first >= 0 && plan.shared_first <= plan.y_rows - shared.shape[0];
    plan.shared_rows = shared.shape[0];
  }
  if (fits) return plan;
  return Error(
      Code::kInvalidArgument,
      "{}: {} scale, {} bias, {} pertoken_scale, {} logit, row_index {} and shared_input {} "
      "from row {} do not fit x {}, w {} and {} output rows",
      op.Who(), plan.scale.count(), plan.bias.count(), plan.row_scale.count(), plan.logit.count(),
      plan.index < 0 ? "absent" : op.in(plan.index).ToString(),
      plan.shared < 0 ? "absent" : op.in(plan.shared).ToString(), plan.shared_first,
      op.in("x").ToString(), op.in("w").ToString(), plan.y_rows);
}

Status InferFinalize(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Finalize plan, PlanFinalize(op));
  return SetOutput(op, 0, DataType::kFloat, {plan.y_rows, plan.rows.n});
}

// Rows are added in their order, after the shared ones.
class FinalizeKernel final : public Kernel {
 public:
  FinalizeKernel(const OpContext& op, Finalize plan)
      : who_(op.Who()),
        plan_(std::move(plan)),
        list_dtype_(op.in(plan_.rows.list).dtype),
        index_dtype_(op.in(plan_.index).dtype),
        shared_dtype_(plan_.shared < 0 ? DataType::kFloat : op.in(plan_.shared).dtype),
        w_(op.slot("w")),
        product_(plan_.rows.k, true),
        threads_(op.threads()) {}

  // The product's, then a row of the shared input, or a segment of factors and one of results.
  uint64_t scratch_bytes() const override {
    const int64_t floats = std::max(plan_.rows.n, 2 * kBlockColumns);
    return product_.scratch_bytes() + static_cast<uint64_t>(floats) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const ProductThreads threads(threads_);
    NPUMESH_RETURN_IF_ERROR(CheckIndex(args));
    AddShared(args);
    return EachGroup(who_, plan_.rows, list_dtype_, args,
                     [&](int64_t e, int64_t first, int64_t count) {
                       return Multiply(args, e, first, count);
                     })
        .status();
  }

 private:
  float* Room(const KernelArgs& args) const {
    auto* const room = static_cast<std::byte*>(args.scratch) + product_.scratch_bytes();
    return reinterpret_cast<float*>(room);
  }
  int64_t Target(const KernelArgs& args, int64_t row) const {
    return IntegerAt(index_dtype_, args.in[plan_.index], row);
  }

  Status CheckIndex(const KernelArgs& args) const {
    for (int64_t row = 0; row < plan_.rows.m; ++row) {
      if (Target(args, row) >= 0 && Target(args, row) < plan_.y_rows) continue;
      return Error(Code::kInvalidArgument, "{}: row_index holds {} for row {}, expected 0 to {}",
                   who_, Target(args, row), row, plan_.y_rows - 1);
    }
    return Status();
  }

  void AddShared(const KernelArgs& args) const {
    const int64_t n = plan_.rows.n;
    auto* y = static_cast<float*>(args.out[0]);
    std::fill_n(y, plan_.y_rows * n, 0.0f);
    for (int64_t row = 0; row < plan_.shared_rows; ++row) {
      const float* shared = LoadRow(shared_dtype_, args.in[plan_.shared], row * n, n, Room(args));
      float* to = y + (plan_.shared_first + row) * n;
      for (int64_t i = 0; i < n; ++i) to[i] = shared[i] * plan_.shared_weight;
    }
  }

  Status Multiply(const KernelArgs& args, int64_t expert, int64_t first, int64_t count) const {
    const GroupedRows& rows = plan_.rows;
    Dequant dequant;
    dequant.scale = rows.experts == 1 ? plan_.scale : plan_.scale.Part(expert, rows.experts);
    dequant.row_scale = plan_.row_scale;
    if (plan_.bias.given()) {
      dequant.after = rows.experts == 1 ? plan_.bias : plan_.bias.Part(expert, rows.experts);
    }
    float* const factors = Room(args);
    float* const results = factors + kBlockColumns;
    const auto take = [&](SumSegment segment) {
      segment.row += first;
      dequant.Apply(args, segment, factors, results);
      const float weight = plan_.logit.given() ? plan_.logit.At(args, segment.row) : 1.0f;
      float* to =
          static_cast<float*>(args.out[0]) + Target(args, segment.row) * rows.n + segment.first;
      for (int64_t i = 0; i < segment.count; ++i) to[i] += results[i] * weight;
    };
    return product_.Run(args, count, rows.n, {DataType::kInt8, args.in[0], first * rows.k},
                        {DataType::kInt8, args.in[w_], expert * rows.k * rows.n, rows.transposed},
                        {}, take);
  }

  std::string who_;
  Finalize plan_;
  DataType list_dtype_;
  DataType index_dtype_;
  DataType shared_dtype_;
  int w_;
  BlockedProduct product_;
  int threads_;
};

Result<std::unique_ptr<Kernel>> MakeFinalize(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Finalize plan, PlanFinalize(op));
  return std::unique_ptr<Kernel>(std::make_unique<FinalizeKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterGroupedFinalizeOps(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  registry.Add({.schema = {"GroupedMatmulFinalizeRouting",
                           {{"x"},
                            {"w"},
                            optional("scale"),
                            optional("bias"),
                            optional("pertoken_scale"),
                            optional("group_list"),
                            optional("shared_input"),
                            optional("logit"),
                            optional("row_index"),
                            optional("offset")},
                           {{"y"}},
                           {{"dtype", AttrValue::Int(0)},
                            {"shared_input_weight", AttrValue::Float(1.0f)},
                            {"shared_input_offset", AttrValue::Int(0)},
                            {"transpose_x", AttrValue::Bool(false)},
                            {"transpose_w", AttrValue::Bool(false)},
                            {"output_bs", AttrValue::Int(0)},
                            {"group_list_type", AttrValue::Int(1)},
                            {"tuning_config", AttrValue::Ints({})}}},
                .infer = InferFinalize,
                .make_kernel = MakeFinalize});
}

}  // namespace npumesh
