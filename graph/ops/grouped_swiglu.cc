// GroupedMatmulSwigluQuantV2: products of int8 rows with the weights of their experts, gated and
// quantised again. Ops reference 5.6.
//
// Rows behind the last group are unspecified; they are zero here.
#include <algorithm>
#include <cmath>

#include "graph/ops/blocked_product.h"
#include "graph/ops/expert_families.h"
#include "graph/ops/grouped_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/moe.h"

namespace npumesh {
namespace {

struct SwigluQuant {
  GroupedRows rows;
  std::vector<int> weights;     // slots: one for all experts, or one each
  std::vector<Factors> scales;  // of the columns, by expert
  Factors row_scale;
};

Result<SwigluQuant> PlanSwigluQuant(const OpContext& op) {
  for (const std::string_view name : {"dequant_mode", "quant_mode"}) {
    if (op.attr_int(name) == 0) continue;
    return Error(Code::kUnsupported, "{}: {} {} is not supported, expected 0", op.Who(), name,
                 op.attr_int(name));
  }
  for (const std::string_view port : {"weight_assist_matrix", "bias", "smooth_scale"}) {
    if (op.count(port) == 0 || op.in(op.slot(port)).shape.elements() == 0) continue;
    return Error(Code::kUnsupported, "{}: the input \"{}\" is not supported", op.Who(), port);
  }
  SwigluQuant plan;
  for (int i = 0; i < op.count("weight"); ++i) plan.weights.push_back(op.slot("weight") + i);
  const bool stacked = plan.weights.size() == 1;
  NPUMESH_ASSIGN_OR_RETURN(plan.rows,
                           PlanGroupedRows(op, plan.weights[0], stacked, "transpose_weight"));
  const auto experts = static_cast<size_t>(plan.rows.experts);
  NPUMESH_ASSIGN_OR_RETURN(plan.row_scale, Factors::Of(op, "x_scale"));
  bool fits = (stacked || plan.weights.size() == experts) && plan.rows.n % 2 == 0 &&
              plan.row_scale.count() == plan.rows.m;
  for (const int slot : plan.weights) fits = fits && op.in(slot) == op.in(plan.weights[0]);
  const int given = op.count("weight_scale");
  for (size_t e = 0; fits && e < experts; ++e) {
    const int slot = op.slot("weight_scale") + (given == 1 ? 0 : static_cast<int>(e));
    fits = given == 1 || given == plan.rows.experts;
    if (!fits) break;
    NPUMESH_ASSIGN_OR_RETURN(const Factors all, Factors::OfSlot(op, slot));
    fits = all.count() == plan.rows.n * (given == 1 ? plan.rows.experts : 1);
    if (fits && given == 1 && experts > 1) {
      plan.scales.push_back(all.Part(static_cast<int64_t>(e), plan.rows.experts));
    } else {
      plan.scales.push_back(all);
    }
  }
  if (fits) return plan;
  return Error(Code::kInvalidArgument,
               "{}: {} weights like {}, {} weight_scale and {} x_scale for x {} and {} experts; "
               "expected equal weights, an even number of columns, a scale for each column and row",
               op.Who(), plan.weights.size(), op.in(plan.weights[0]).ToString(), given,
               plan.row_scale.count(), op.in("x").ToString(), experts);
}

Status InferSwigluQuant(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const SwigluQuant plan, PlanSwigluQuant(op));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, DataType::kInt8, {plan.rows.m, plan.rows.n / 2}));
  return SetOutput(op, 1, DataType::kFloat, {plan.rows.m});
}

// The product of an expert as floats in scratch, then its rows one by one.
class SwigluQuantKernel final : public Kernel {
 public:
  SwigluQuantKernel(const OpContext& op, SwigluQuant plan)
      : who_(op.Who()),
        plan_(std::move(plan)),
        list_dtype_(op.in(plan_.rows.list).dtype),
        product_(plan_.rows.k, true),
        threads_(op.threads()) {}

  uint64_t scratch_bytes() const override {
    const int64_t floats = plan_.rows.m * plan_.rows.n + kBlockColumns;
    return product_.scratch_bytes() + static_cast<uint64_t>(floats) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const ProductThreads threads(threads_);
    NPUMESH_ASSIGN_OR_RETURN(const int64_t end,
                             EachGroup(who_, plan_.rows, list_dtype_, args,
                                       [&](int64_t e, int64_t first, int64_t count) {
                                         return Multiply(args, e, first, count);
                                       }));
    const int64_t half = plan_.rows.n / 2;
    auto* y = static_cast<int8_t*>(args.out[0]);
    auto* scales = static_cast<float*>(args.out[1]);
    for (int64_t row = 0; row < end; ++row) {
      float* c = Products(args) + row * plan_.rows.n;
      for (int64_t i = 0; i < half; ++i) {
        const auto gate = static_cast<double>(c[i]);
        c[i] = static_cast<float>(gate / (1 + std::exp(-gate))) * c[half + i];
      }
      scales[row] = QuantiseRow(c, half, y + row * half);
    }
    std::fill_n(y + end * half, (plan_.rows.m - end) * half, int8_t{0});
    std::fill_n(scales + end, plan_.rows.m - end, 0.0f);
    return Status();
  }

 private:
  float* Products(const KernelArgs& args) const {
    auto* const room = static_cast<std::byte*>(args.scratch) + product_.scratch_bytes();
    return reinterpret_cast<float*>(room);
  }

  Status Multiply(const KernelArgs& args, int64_t expert, int64_t first, int64_t count) const {
    const GroupedRows& rows = plan_.rows;
    const bool stacked = plan_.weights.size() == 1;
    const auto e = static_cast<size_t>(expert);
    Dequant dequant;
    dequant.scale = plan_.scales[e];
    dequant.row_scale = plan_.row_scale;
    float* const products = Products(args);
    float* const factors = products + rows.m * rows.n;
    const auto take = [&](SumSegment segment) {
      segment.row += first;
      dequant.Apply(args, segment, factors, products + segment.row * rows.n + segment.first);
    };
    return product_.Run(args, count, rows.n, {DataType::kInt8, args.in[0], first * rows.k},
                        {DataType::kInt8, args.in[plan_.weights[stacked ? 0 : e]],
                         stacked ? expert * rows.k * rows.n : 0, rows.transposed},
                        {}, take);
  }

  std::string who_;
  SwigluQuant plan_;
  DataType list_dtype_;
  BlockedProduct product_;
  int threads_;
};

Result<std::unique_ptr<Kernel>> MakeSwigluQuant(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(SwigluQuant plan, PlanSwigluQuant(op));
  return std::unique_ptr<Kernel>(std::make_unique<SwigluQuantKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterGroupedSwigluOps(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  const auto list = [](std::string_view name) { return PortSpec{name, PortKind::kDynamic}; };
  registry.Add({.schema = {"GroupedMatmulSwigluQuantV2",
                           {{"x"},
                            {"x_scale"},
                            {"group_list"},
                            list("weight"),
                            list("weight_scale"),
                            list("weight_assist_matrix"),
                            optional("bias"),
                            optional("smooth_scale")},
                           {{"y"}, {"y_scale"}},
                           {{"dequant_mode", AttrValue::Int(0)},
                            {"dequant_dtype", AttrValue::Int(0)},
                            {"quant_mode", AttrValue::Int(0)},
                            {"quant_dtype", AttrValue::Int(1)},
                            {"transpose_weight", AttrValue::Bool(false)},
                            {"group_list_type", AttrValue::Int(0)},
                            {"tuning_config", AttrValue::Ints({0})}}},
                .infer = InferSwigluQuant,
                .make_kernel = MakeSwigluQuant});
}

}  // namespace npumesh
