// MoeFinalizeRouting and MoeFinalizeRoutingV2: the rows of a token's experts, weighted and summed.
// Ops reference 5.12.
#include <algorithm>

#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

struct Finalize {
  int64_t tokens = 0;
  int64_t k = 0;
  int64_t width = 0;
  int64_t rows = 0;       // of expanded_x
  bool by_column = true;  // entry of (token i, choice j) is j * tokens + i, not i * k + j
  bool drops = false;     // -1 contributes nothing
  int x1 = -1;
  int x2 = -1;
  int expert_idx = -1;
  int64_t experts = 0;
  Factors bias;    // [experts, width]
  Factors scales;  // [tokens, k]
};

std::string_view ExpertPort(const OpContext& op) {
  return op.schema().type == "MoeFinalizeRouting" ? "expanded_expert_idx" : "expert_idx";
}

Status RefuseSpecialExperts(const OpContext& op) {
  for (const std::string_view range :
       {"zero_expert_range", "copy_expert_range", "constant_expert_range"}) {
    if (!op.attr_ints(range).empty()) {
      return Error(Code::kUnsupported, "{}: {} is not supported", op.Who(), range);
    }
  }
  return Status();
}

Status ReadMode(const OpContext& op, Finalize& plan) {
  if (op.schema().type == "MoeFinalizeRouting") return Status();
  NPUMESH_RETURN_IF_ERROR(RefuseSpecialExperts(op));
  const int64_t mode = op.attr_int("drop_pad_mode");
  if (mode < 0 || mode > 3) {
    return Error(Code::kInvalidArgument, "{}: drop_pad_mode {}, expected 0 to 3", op.Who(), mode);
  }
  plan.by_column = mode < 2;
  plan.drops = mode % 2 == 1;
  return Status();
}

// Tokens and choices: from the weights, else the rows that are added, else one choice for each.
void ReadSizes(const OpContext& op, Finalize& plan) {
  const Shape& expanded = op.in("expanded_x").shape;
  const int64_t entries = op.in("expanded_row_idx").shape.elements();
  plan.width = expanded.rank() == 0 ? 0 : expanded.dims().back();
  plan.rows = plan.width == 0 ? 0 : expanded.elements() / plan.width;
  plan.x1 = SlotIfFed(op, "x1");
  plan.x2 = SlotIfFed(op, "x2");
  plan.tokens = entries;
  for (const int slot : {SlotIfFed(op, "scales"), plan.x1}) {
    if (slot >= 0 && op.in(slot).shape.rank() > 0) plan.tokens = op.in(slot).shape[0];
  }
  if (plan.tokens == entries && op.schema().type != "MoeFinalizeRouting") {
    plan.tokens = entries / std::max<int64_t>(op.attr_int("k"), 1);
  }
  plan.k = plan.tokens == 0 ? 0 : entries / plan.tokens;
}

Result<Finalize> PlanFinalize(const OpContext& op) {
  Finalize plan;
  NPUMESH_RETURN_IF_ERROR(ReadMode(op, plan));
  ReadSizes(op, plan);
  const TensorType& expanded = op.in("expanded_x");
  NPUMESH_ASSIGN_OR_RETURN(plan.bias, Factors::Of(op, "bias"));
  NPUMESH_ASSIGN_OR_RETURN(plan.scales, Factors::Of(op, "scales"));
  plan.expert_idx = SlotIfFed(op, ExpertPort(op));
  const TensorType row = {expanded.dtype, {plan.tokens, plan.width}};
  const int64_t entries = plan.tokens * plan.k;
  bool fits = IsRowType(expanded.dtype) && op.in("expanded_row_idx").dtype == DataType::kInt32 &&
              entries == op.in("expanded_row_idx").shape.elements();
  for (const int slot : {plan.x1, plan.x2}) fits = fits && (slot < 0 || op.in(slot) == row);
  fits = fits && (!plan.scales.given() || plan.scales.count() == entries);
  if (plan.bias.given()) {
    plan.experts = plan.width == 0 ? 0 : plan.bias.count() / plan.width;
    fits = fits && plan.expert_idx >= 0 && op.in(plan.expert_idx).dtype == DataType::kInt32 &&
           op.in(plan.expert_idx).shape.elements() == entries &&
           plan.bias.count() == plan.experts * plan.width;
  }
  if (fits) return plan;
  return Error(Code::kInvalidArgument,
               "{}: expanded_x {}, expanded_row_idx {}, {} scales and {} elements of bias do not "
               "belong to {} tokens with {} choices",
               op.Who(), expanded.ToString(), op.in("expanded_row_idx").ToString(),
               plan.scales.count(), plan.bias.count(), plan.tokens, plan.k);
}

Status InferFinalize(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Finalize plan, PlanFinalize(op));
  return SetOutput(op, 0, op.in("expanded_x").dtype, {plan.tokens, plan.width});
}

class FinalizeKernel final : public Kernel {
 public:
  FinalizeKernel(const OpContext& op, const Finalize& plan)
      : who_(op.Who()),
        plan_(plan),
        x_(op.slot("expanded_x")),
        map_(op.slot("expanded_row_idx")),
        dtype_(op.in("expanded_x").dtype) {}

  // The sum, a row and its bias.
  uint64_t scratch_bytes() const override {
    return 3 * static_cast<uint64_t>(plan_.width) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* sum = static_cast<float*>(args.scratch);
    float* row = sum + plan_.width;
    for (int64_t i = 0; i < plan_.tokens; ++i) {
      std::fill_n(sum, plan_.width, 0.0f);
      for (const int slot : {plan_.x1, plan_.x2}) {
        if (slot < 0) continue;
        LoadNumbers(dtype_, args.in[slot], i * plan_.width, plan_.width, row);
        for (int64_t d = 0; d < plan_.width; ++d) sum[d] += row[d];
      }
      for (int64_t j = 0; j < plan_.k; ++j) NPUMESH_RETURN_IF_ERROR(AddChoice(args, i, j, sum));
      StoreRow(dtype_, sum, args.out[0], i * plan_.width, plan_.width);
    }
    return Status();
  }

 private:
  Status AddChoice(const KernelArgs& args, int64_t token, int64_t choice, float* sum) const {
    const int64_t entry =
        plan_.by_column ? choice * plan_.tokens + token : token * plan_.k + choice;
    const int64_t from = static_cast<const int32_t*>(args.in[map_])[entry];
    if (from == -1 && plan_.drops) return Status();
    if (from < 0 || from >= plan_.rows) {
      return Error(Code::kInvalidArgument,
                   "{}: expanded_row_idx names row {} for token {}, there "
                   "are {}",
                   who_, from, token, plan_.rows);
    }
    float* row = sum + plan_.width;
    float* bias = row + plan_.width;
    LoadNumbers(dtype_, args.in[x_], from * plan_.width, plan_.width, row);
    if (plan_.bias.given()) {
      const int64_t expert =
          static_cast<const int32_t*>(args.in[plan_.expert_idx])[token * plan_.k + choice];
      if (expert < 0 || expert >= plan_.experts) {
        return Error(Code::kInvalidArgument, "{}: expert {} of token {} has no bias, there are {}",
                     who_, expert, token, plan_.experts);
      }
      plan_.bias.Load(args, expert * plan_.width, plan_.width, bias);
      for (int64_t d = 0; d < plan_.width; ++d) row[d] += bias[d];
    }
    const float scale =
        plan_.scales.given() ? plan_.scales.At(args, token * plan_.k + choice) : 1.0f;
    for (int64_t d = 0; d < plan_.width; ++d) sum[d] += scale * row[d];
    return Status();
  }

  std::string who_;
  Finalize plan_;
  int x_;
  int map_;
  DataType dtype_;
};

Result<std::unique_ptr<Kernel>> MakeFinalize(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Finalize plan, PlanFinalize(op));
  return std::unique_ptr<Kernel>(std::make_unique<FinalizeKernel>(op, plan));
}

}  // namespace

void RegisterMoeFinalizeOps(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  const AttrValue none = AttrValue::Ints({});
  registry.Add({.schema = {"MoeFinalizeRouting",
                           {{"expanded_x"},
                            {"x1"},
                            optional("x2"),
                            {"bias"},
                            {"scales"},
                            {"expanded_row_idx"},
                            {"expanded_expert_idx"}},
                           {{"y"}},
                           {}},
                .infer = InferFinalize,
                .make_kernel = MakeFinalize});
  registry.Add({.schema = {"MoeFinalizeRoutingV2",
                           {{"expanded_x"},
                            {"expanded_row_idx"},
                            optional("x1"),
                            optional("x2"),
                            optional("bias"),
                            optional("scales"),
                            optional("expert_idx"),
                            optional("x"),
                            optional("alpha1"),
                            optional("alpha2"),
                            optional("v")},
                           {{"y"}},
                           {{"drop_pad_mode", AttrValue::Int(0)},
                            {"zero_expert_range", none},
                            {"copy_expert_range", none},
                            {"constant_expert_range", none},
                            {"k", AttrValue::Int(1)}}},
                .infer = InferFinalize,
                .make_kernel = MakeFinalize});
}

}  // namespace npumesh
