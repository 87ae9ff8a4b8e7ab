#include "graph/ops/fused_experts.h"

#include <numeric>

#include "graph/ops/float_rows.h"
#include "graph/ops/scaled_matmul.h"

namespace npumesh::fused {
namespace {

Status ReadCounts(const OpContext& op, ExpertsPlan& plan) {
  NPUMESH_RETURN_IF_ERROR(RefuseInputs(op, {"send_counts_tensor", "recv_counts_tensor"}));
  plan.sent = op.attr_ints("send_counts");
  plan.received = op.attr_ints("recv_counts");
  const auto expected = static_cast<size_t>(plan.ring.ranks * plan.experts);
  const auto fit = [&](const std::vector<int64_t>& counts) {
    return counts.size() == expected && std::ranges::all_of(counts, [](int64_t count) {
             return count >= 0 && count <= INT32_MAX;
           });
  };
  const int64_t rows = op.in("gmm_x").shape[0];
  if (plan.experts > 0 && fit(plan.sent) && fit(plan.received) && Sum(plan.sent) == rows) {
    return Status();
  }
  return Error(Code::kInvalidArgument,
               "{}: {} send_counts of together {} rows and {} recv_counts for gmm_x {}, {} ranks "
               "and {} experts of each; expected {} of each, none below 0, and the rows of gmm_x",
               op.Who(), plan.sent.size(), Sum(plan.sent), plan.received.size(),
               op.in("gmm_x").ToString(), plan.ring.ranks, plan.experts, expected);
}

// `experts`: dimensions of w in front of the matrix.
Status ReadFactor(const OpContext& op, std::string_view transposed, int experts, Factor& factor) {
  const TensorType& x = op.in(factor.x);
  const TensorType& w = op.in(factor.w);
  factor.transposed = op.attr_bool(transposed);
  if (x.shape.rank() == 2 && w.shape.rank() == 2 + experts) {
    factor.k = x.shape[1];
    factor.n = w.shape[experts + (factor.transposed ? 0 : 1)];
    if (w.shape[experts + (factor.transposed ? 1 : 0)] == factor.k) return Status();
  }
  return Error(Code::kInvalidArgument, "{}: {} {} and {} {}{} cannot be multiplied", op.Who(),
               factor.x, x.ToString(), factor.w, w.ToString(),
               factor.transposed ? " transposed" : "");
}

Status CheckScale(const OpContext& op, std::string_view port) {
  const int slot = SlotIfFed(op, port);
  if (slot >= 0 && op.in(slot).dtype == DataType::kFloat && op.in(slot).shape.elements() == 1) {
    return Status();
  }
  return Error(Code::kUnsupported, "{}: {} is {}, expected one float32 for the tensor", op.Who(),
               port, slot < 0 ? "not fed" : op.in(slot).ToString());
}

Status ReadTypes(const OpContext& op, ExpertsPlan& plan) {
  if (!plan.scaled) {
    plan.y_dtype = plan.shared_dtype = op.in("gmm_x").dtype;
    const bool same = plan.shared_rows < 0 || (op.in("mm_x").dtype == plan.y_dtype &&
                                               op.in("mm_weight").dtype == plan.y_dtype);
    if (IsRowType(plan.y_dtype) && op.in("gmm_weight").dtype == plan.y_dtype && same) {
      return Status();
    }
    return Error(
        Code::kUnsupported,
        "{}: gmm_x is {} and gmm_weight {}; expected float16 or bfloat16, the same for all "
        "inputs",
        op.Who(), Name(plan.y_dtype), Name(op.in("gmm_weight").dtype));
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, op.attr_dtype("y_dtype"));
  plan.shared_dtype = plan.y_dtype;
  if (op.attr_int("mm_dtype") != static_cast<int64_t>(DataType::kUndefined)) {
    NPUMESH_ASSIGN_OR_RETURN(plan.shared_dtype, op.attr_dtype("mm_dtype"));
  }
  if (!IsRowType(plan.y_dtype) || !IsRowType(plan.shared_dtype)) {
    return Error(Code::kUnsupported, "{}: y_dtype is {} and mm_dtype {}, expected a float type",
                 op.Who(), Name(plan.y_dtype), Name(plan.shared_dtype));
  }
  for (const Factor* factor : {&plan.routed, &plan.shared}) {
    if (factor == &plan.shared && plan.shared_rows < 0) continue;
    NPUMESH_RETURN_IF_ERROR(ExpectEightBits(op, factor->x, factor->w));
    NPUMESH_RETURN_IF_ERROR(CheckScale(op, factor->x_scale));
    NPUMESH_RETURN_IF_ERROR(CheckScale(op, factor->w_scale));
  }
  return Status();
}

// One scale for each tensor (mode 1) is what is supported.
Status CheckModes(const OpContext& op, const ExpertsPlan& plan) {
  if (!plan.exchange_first) {
    NPUMESH_RETURN_IF_ERROR(RefuseInputs(op, {"comm_quant_scale"}));
    NPUMESH_RETURN_IF_ERROR(RefuseModes(op, {"comm_quant_mode"}));
  }
  NPUMESH_RETURN_IF_ERROR(RefuseModes(op, {"group_size"}));
  for (const std::string_view name :
       {"gmm_x_quant_mode", "gmm_weight_quant_mode", "mm_x_quant_mode", "mm_weight_quant_mode"}) {
    const bool shared = name.starts_with("mm");
    if (op.attr_int(name) == 1 || (shared && plan.shared_rows < 0)) continue;
    return Error(Code::kUnsupported,
                 "{}: {} {} is not supported, expected 1, one scale for the tensor", op.Who(), name,
                 op.attr_int(name));
  }
  return Status();
}

}  // namespace

int64_t Sum(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

Result<ExpertsPlan> PlanExperts(const OpContext& op) {
  const std::string_view type = op.schema().type;
  ExpertsPlan plan;
  plan.exchange_first = type.starts_with("AlltoAllv");
  plan.scaled = type.find("Quant") != std::string_view::npos;
  NPUMESH_ASSIGN_OR_RETURN(plan.ring, RingOf(op, "ep_world_size"));
  NPUMESH_RETURN_IF_ERROR(ReadFactor(op, "trans_gmm_weight", 1, plan.routed));
  plan.experts = op.in("gmm_weight").shape[0];
  NPUMESH_RETURN_IF_ERROR(ReadCounts(op, plan));
  const bool x = SlotIfFed(op, "mm_x") >= 0;
  if (x != (SlotIfFed(op, "mm_weight") >= 0)) {
    return Error(Code::kInvalidArgument, "{}: of mm_x and mm_weight only one is fed", op.Who());
  }
  if (x) {
    NPUMESH_RETURN_IF_ERROR(ReadFactor(op, "trans_mm_weight", 0, plan.shared));
    plan.shared_rows = op.in("mm_x").shape[0];
  }
  if (plan.scaled) NPUMESH_RETURN_IF_ERROR(CheckModes(op, plan));
  NPUMESH_RETURN_IF_ERROR(ReadTypes(op, plan));
  return plan;
}

OpSchema ExpertsSchema(std::string_view type, bool first, bool scaled) {
  OpSchema schema = {type,
                     {{"gmm_x"}, {"gmm_weight"}},
                     {{first ? "gmm_y" : "y"}, {"mm_y"}},
                     {{"group", Required::kString},
                      {"ep_world_size", Required::kInt},
                      {"send_counts", Required::kInts},
                      {"recv_counts", Required::kInts},
                      {"trans_gmm_weight", AttrValue::Bool(false)},
                      {"trans_mm_weight", AttrValue::Bool(false)},
                      {"comm_mode", AttrValue::String("")}}};
  const auto optional = [&](std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      schema.inputs.push_back({name, PortKind::kOptional});
    }
  };
  const auto integers = [&](std::initializer_list<std::string_view> names, int64_t value) {
    for (const std::string_view name : names) schema.attrs.push_back({name, AttrValue::Int(value)});
  };
  if (scaled) {
    schema.inputs.push_back({"gmm_x_scale"});
    schema.inputs.push_back({"gmm_weight_scale"});
    schema.attrs.push_back({"gmm_x_quant_mode", Required::kInt});
    schema.attrs.push_back({"gmm_weight_quant_mode", Required::kInt});
    integers({"mm_x_quant_mode", "mm_weight_quant_mode", "group_size"}, 0);
    integers({"y_dtype", "mm_dtype"}, 28);
  }
  optional({"send_counts_tensor", "recv_counts_tensor", "mm_x", "mm_weight"});
  if (scaled) optional({"mm_x_scale", "mm_weight_scale"});
  if (scaled && !first) {
    optional({"comm_quant_scale"});
    integers({"comm_quant_mode", "comm_quant_dtype"}, 0);
  }
  if (first) {
    schema.outputs.push_back({"permute_out"});
    schema.attrs.push_back({"permute_out_flag", AttrValue::Bool(false)});
  }
  return schema;
}

}  // namespace npumesh::fused
