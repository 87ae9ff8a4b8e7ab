#include "graph/ops/moe_combine.h"

#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"

namespace npumesh::moe {
namespace {

Status ReadSpecial(const OpContext& op, Combine& plan) {
  if (op.schema().type == "MoeDistributeCombine") return Status();
  plan.zeros = op.attr_int("zero_expert_num");
  plan.copies = op.attr_int("copy_expert_num");
  plan.constants = op.attr_int("const_expert_num");
  plan.original = SlotIfFed(op, "ori_x");
  NPUMESH_ASSIGN_OR_RETURN(plan.alpha1, Factors::Of(op, "const_expert_alpha_1"));
  NPUMESH_ASSIGN_OR_RETURN(plan.alpha2, Factors::Of(op, "const_expert_alpha_2"));
  NPUMESH_ASSIGN_OR_RETURN(plan.constant, Factors::Of(op, "const_expert_v"));
  bool fits = plan.copies + plan.constants == 0 ||
              (plan.original >= 0 &&
               op.in(plan.original) == TensorType{plan.dtype, {plan.tokens, plan.width}});
  const int64_t elements = plan.constants * plan.width;
  for (const Factors* alpha : {&plan.alpha1, &plan.alpha2}) {
    fits = fits &&
           (plan.constants == 0 || alpha->count() == plan.constants || alpha->count() == elements);
  }
  if (fits && (plan.constants == 0 || plan.constant.count() == elements)) return Status();
  return Error(Code::kInvalidArgument,
               "{}: {} copy and {} constant experts need ori_x [{},{}] and, for the latter, "
               "alphas and v",
               op.Who(), plan.copies, plan.constants, plan.tokens, plan.width);
}

// The sum and its norm that follow in MoeDistributeCombineAddRmsNorm.
Status ReadNorm(const OpContext& op, Combine& plan) {
  if (op.schema().type != "MoeDistributeCombineAddRmsNorm") return Status();
  plan.residual = op.slot("residual_x");
  plan.gamma = op.slot("gamma");
  plan.epsilon = static_cast<double>(op.attr_float("norm_eps"));
  const TensorType& residual = op.in(plan.residual);
  const int rank = residual.shape.rank();
  const bool fits = residual.dtype == plan.dtype && rank >= 2 &&
                    residual.shape[rank - 1] == plan.width &&
                    ElementsBetween(residual.shape, 0, rank - 1) == plan.tokens &&
                    op.in(plan.gamma) == TensorType{plan.dtype, {plan.width}};
  if (fits) return Status();
  return Error(Code::kInvalidArgument,
               "{}: residual_x is {} and gamma {}; expected {} [{},1,{}] and [{}]", op.Who(),
               residual.ToString(), op.in(plan.gamma).ToString(), Name(plan.dtype), plan.tokens,
               plan.width, plan.width);
}

Status ReadInputs(const OpContext& op, Combine& plan) {
  plan.active = SlotIfFed(op, "x_active_mask");
  if (op.schema().type != "MoeDistributeCombine") {
    plan.assist = op.slot("assist_info_for_combine");
    plan.shared_x = SlotIfFed(op, "shared_expert_x");
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.weights, Factors::Of(op, "expert_scales"));
  const TensorType& counts = op.in("ep_send_counts");
  const TensorType& passed = op.in(plan.assist < 0 ? op.slot("expand_idx") : plan.assist);
  const int64_t expected = plan.assist < 0 ? plan.tokens * plan.k : plan.rows * kAssist;
  const bool fits =
      passed.dtype == DataType::kInt32 && passed.shape.elements() == expected &&
      counts.dtype == DataType::kInt32 &&
      counts.shape.elements() == plan.placement.local_experts() * plan.placement.ranks &&
      (!plan.weights.given() || plan.weights.count() == plan.tokens * plan.k) &&
      (plan.active < 0 || op.in(plan.active) == TensorType{DataType::kBool, {plan.tokens}}) &&
      (plan.shared_x < 0 || (op.in(plan.shared_x).dtype == plan.dtype &&
                             op.in(plan.shared_x).shape.elements() == plan.tokens * plan.width));
  if (fits) return Status();
  return Error(Code::kInvalidArgument,
               "{}: {} {}, ep_send_counts {}, {} expert_scales, the mask or shared_expert_x do not "
               "fit expand_x {} and expert_ids {}",
               op.Who(), plan.assist < 0 ? "expand_idx" : "assist_info_for_combine",
               passed.ToString(), counts.ToString(), plan.weights.count(),
               op.in("expand_x").ToString(), op.in("expert_ids").ToString());
}

}  // namespace

Result<Combine> PlanCombine(const OpContext& op) {
  Combine plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.placement, PlacementOf(op));
  const TensorType& rows = op.in("expand_x");
  const TensorType& ids = op.in("expert_ids");
  if (!IsRowType(rows.dtype) || rows.shape.rank() != 2 || ids.shape.rank() != 2 ||
      ids.dtype != DataType::kInt32) {
    return Error(Code::kInvalidArgument,
                 "{}: expand_x is {} and expert_ids {}; expected float16 or bfloat16 [A,H] and "
                 "int32[BS,K]",
                 op.Who(), rows.ToString(), ids.ToString());
  }
  if (op.attr_int("comm_quant_mode") != 0) {
    return Error(Code::kUnsupported, "{}: comm_quant_mode {} is not supported, expected 0",
                 op.Who(), op.attr_int("comm_quant_mode"));
  }
  plan.tokens = ids.shape[0];
  plan.k = ids.shape[1];
  plan.rows = rows.shape[0];
  plan.width = rows.shape[1];
  plan.dtype = rows.dtype;
  const int64_t given = op.attr_int("global_bs");
  plan.group_tokens = given > 0 ? given : plan.tokens * plan.placement.ranks;
  NPUMESH_RETURN_IF_ERROR(ReadInputs(op, plan));
  NPUMESH_RETURN_IF_ERROR(ReadSpecial(op, plan));
  NPUMESH_RETURN_IF_ERROR(ReadNorm(op, plan));
  return plan;
}

std::vector<OpSchema> CombineSchemas() {
  const auto add = [](std::vector<PortSpec>& ports, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) ports.push_back({name, PortKind::kOptional});
  };
  OpSchema first = {
      "MoeDistributeCombine",
      {{"expand_x"}, {"expert_ids"}, {"expand_idx"}, {"ep_send_counts"}, {"expert_scales"}},
      {{"x"}},
      {{"group_ep", Required::kString},
       {"ep_world_size", Required::kInt},
       {"ep_rank_id", Required::kInt},
       {"moe_expert_num", Required::kInt},
       {"group_tp", AttrValue::String("")}}};
  OpSchema second = first;
  second.type = "MoeDistributeCombineV2";
  second.inputs[2] = {"assist_info_for_combine"};
  OpSchema third = second;
  third.type = "MoeDistributeCombineAddRmsNorm";
  third.inputs.push_back({"residual_x"});
  third.inputs.push_back({"gamma"});
  third.outputs = {{"y"}, {"rstd"}, {"x"}};
  for (OpSchema* schema : {&first, &second, &third}) {
    add(schema->inputs, {"tp_send_counts", "x_active_mask", "activation_scale", "weight_scale",
                         "group_list", "expand_scales"});
    for (const std::string_view name : {"tp_world_size", "tp_rank_id", "expert_shard_type",
                                        "shared_expert_num", "shared_expert_rank_num", "global_bs",
                                        "out_dtype", "comm_quant_mode", "group_list_type"}) {
      schema->attrs.push_back({name, AttrValue::Int(name == "shared_expert_num" ? 1 : 0)});
    }
  }
  for (OpSchema* schema : {&second, &third}) {
    add(schema->inputs, {"shared_expert_x", "elastic_info", "ori_x", "const_expert_alpha_1",
                         "const_expert_alpha_2", "const_expert_v"});
    schema->attrs.push_back({"comm_alg", AttrValue::String("")});
    for (const std::string_view name : {"zero_expert_num", "copy_expert_num", "const_expert_num"}) {
      schema->attrs.push_back({name, AttrValue::Int(0)});
    }
  }
  add(second.inputs, {"performance_info"});
  third.attrs.push_back({"norm_eps", AttrValue::Float(1e-6f)});
  return {std::move(first), std::move(second), std::move(third)};
}

}  // namespace npumesh::moe
