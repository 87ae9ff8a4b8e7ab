// MlaProlog, MlaPrologV2 and MlaPrologV3: what latent attention computes from its tokens. Ops
// reference 5.11.
//
//   cq = qc_qr_scale * rms_norm(x W_dq);    [q, qr] = cq W_uq_qr, for each head
//   query = q W_uk;                         query_rope = rope(qr)
//   [ckv, kr] = x W_dkv_kr;  kv_cache <- kc_scale * rms_norm(ckv);  kr_cache <- rope(kr)
//
// Products and norms are rounded to the type of the tokens, as on the device. The rotation takes
// pairs of neighbours and leaves halves. Only the forms without quantisation are computed; the
// outputs for scales are empty. A cache index below 0 is skipped.
#include "graph/ops/mla_prolog.h"

#include <string>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"

namespace npumesh {
namespace {

bool IsThird(const OpContext& op) {
  return op.schema().type == "MlaPrologV3";
}

Status RefuseQuantised(const OpContext& op) {
  for (const std::string_view port :
       {"dequant_scale_x", "dequant_scale_w_dq", "dequant_scale_w_uq_qr", "dequant_scale_w_dkv_kr",
        "quant_scale_ckv", "quant_scale_ckr", "smooth_scales_cq"}) {
    if (SlotIfFed(op, port) < 0) continue;
    return Error(Code::kUnsupported, "{}: \"{}\" is fed; quantised forms are not supported",
                 op.Who(), port);
  }
  if (!IsThird(op)) return Status();
  for (const std::string_view port : {"actual_seq_len", "k_nope_clip_alpha"}) {
    if (SlotIfFed(op, port) < 0) continue;
    return Error(Code::kUnsupported, "{}: \"{}\" is fed, which is not supported", op.Who(), port);
  }
  for (const std::string_view attr :
       {"weight_quant_mode", "kv_cache_quant_mode", "query_quant_mode", "ckvkr_repo_mode",
        "quant_scale_repo_mode"}) {
    if (op.attr_int(attr) == 0) continue;
    return Error(Code::kUnsupported, "{}: {} is {}; quantised forms are not supported", op.Who(),
                 attr, op.attr_int(attr));
  }
  return Status();
}

Status ReadShapes(const OpContext& op, MlaPlan& plan) {
  const TensorType &x = op.in("token_x"), &dq = op.in("weight_dq"), &uq = op.in("weight_uq_qr"),
                   &uk = op.in("weight_uk"), &dkv = op.in("weight_dkv_kr"),
                   &cos = op.in("rope_cos");
  const int rank = x.shape.rank();
  plan.dtype = x.dtype;
  bool fits = IsRowType(x.dtype) && (rank == 2 || rank == 3) && dq.shape.rank() == 2 &&
              uq.shape.rank() == 2 && uk.shape.rank() == 3 && dkv.shape.rank() == 2 &&
              cos.shape.rank() == rank && cos == op.in("rope_sin");
  for (const TensorType* weight : {&dq, &uq, &uk, &dkv, &cos}) {
    fits = fits && weight->dtype == x.dtype;
  }
  if (fits) {
    plan.tokens = ElementsBetween(x.shape, 0, rank - 1);
    plan.model = x.shape[rank - 1];
    plan.latent_q = dq.shape[1];
    plan.heads = uk.shape[0];
    plan.head = uk.shape[1];
    plan.latent_kv = uk.shape[2];
    plan.rope = cos.shape[rank - 1];
    fits = dq.shape[0] == plan.model && dkv.shape[0] == plan.model &&
           uq.shape == Shape({plan.latent_q, plan.heads * plan.head_both()}) &&
           dkv.shape[1] == plan.latent_kv + plan.rope && plan.rope % 2 == 0 &&
           ElementsBetween(cos.shape, 0, rank - 1) == plan.tokens &&
           op.in("rmsnorm_gamma_cq").shape.elements() == plan.latent_q &&
           op.in("rmsnorm_gamma_ckv").shape.elements() == plan.latent_kv;
  }
  if (fits) return Status();
  return Error(Code::kInvalidArgument,
               "{}: token_x is {}, weight_dq {}, weight_uq_qr {}, weight_uk {}, weight_dkv_kr {}, "
               "rope_cos {}; expected [..,He], [He,Hcq], [Hcq,N*(D+Dr)], [N,D,Hckv], "
               "[He,Hckv+Dr] and [..,Dr] of one float type",
               op.Who(), x.ToString(), dq.ToString(), uq.ToString(), uk.ToString(), dkv.ToString(),
               cos.ToString());
}

Status ReadCaches(const OpContext& op, MlaPlan& plan) {
  const std::string mode = op.attr_string("cache_mode");
  const bool paged = mode == "PA_BSND" || mode == "PA_NZ";
  const TensorType &kv = op.in("kv_cache"), &kr = op.in("kr_cache");
  plan.tiled = mode == "PA_NZ";
  plan.index = SlotIfFed(op, "cache_index");
  if (!paged && mode != "BSND" && mode != "TND") {
    return Error(Code::kUnsupported, "{}: cache_mode \"{}\", expected PA_BSND, PA_NZ, BSND or TND",
                 op.Who(), mode);
  }
  if (!paged) plan.index = -1;
  const int rank = kv.shape.rank();
  bool fits = kv.dtype == plan.dtype && kr.dtype == plan.dtype && rank >= 3 &&
              kr.shape.rank() == rank && kv.shape[rank - 1] == plan.latent_kv &&
              kr.shape[rank - 1] == plan.rope && kv.shape[rank - 2] == 1 &&
              kr.shape[rank - 2] == 1 && (!paged || rank == 4);
  if (fits) {
    plan.slots = ElementsBetween(kv.shape, 0, rank - 2);
    plan.block_size = paged ? kv.shape[1] : plan.slots;
    fits = plan.slots == ElementsBetween(kr.shape, 0, rank - 2) &&
           (!paged || kr.shape[1] == plan.block_size) && (paged || plan.slots == plan.tokens) &&
           (!plan.tiled || (plan.latent_kv % 16 == 0 && plan.rope % 16 == 0));
  }
  if (fits && paged) {
    fits = plan.index >= 0 && op.in(plan.index).dtype == DataType::kInt64 &&
           op.in(plan.index).shape.elements() == plan.tokens;
  }
  if (fits) return Status();
  return Error(Code::kInvalidArgument,
               "{}: kv_cache is {} and kr_cache {} in mode {} for {} tokens; expected rows [1,{}] "
               "and [1,{}] and an int64 cache index for each token",
               op.Who(), kv.ToString(), kr.ToString(), mode, plan.tokens, plan.latent_kv,
               plan.rope);
}

Result<MlaPlan> PlanMla(const OpContext& op) {
  MlaPlan plan;
  NPUMESH_RETURN_IF_ERROR(RefuseQuantised(op));
  NPUMESH_RETURN_IF_ERROR(ReadShapes(op, plan));
  NPUMESH_RETURN_IF_ERROR(ReadCaches(op, plan));
  plan.epsilon_q = static_cast<double>(op.attr_float("rmsnorm_epsilon_cq"));
  plan.epsilon_kv = static_cast<double>(op.attr_float("rmsnorm_epsilon_ckv"));
  if (!IsThird(op)) return plan;
  plan.scale_q = op.attr_float("qc_qr_scale");
  plan.scale_kv = op.attr_float("kc_scale");
  plan.gives_norm = op.attr_bool("query_norm_flag");
  return plan;
}

// Outputs that a form without quantisation does not have are empty.
Status InferMla(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const MlaPlan plan, PlanMla(op));
  Shape rows = op.in("token_x").shape;
  rows.mutable_dims().back() = plan.heads;
  Shape query = rows, rope = rows, norm = op.in("token_x").shape;
  query.mutable_dims().push_back(plan.latent_kv);
  rope.mutable_dims().push_back(plan.rope);
  norm.mutable_dims().back() = plan.latent_q;
  const TensorType kv = op.in("kv_cache"), kr = op.in("kr_cache");
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.dtype, query));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, plan.dtype, rope));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 2, kv.dtype, kv.shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 3, kr.dtype, kr.shape));
  if (op.schema().outputs.size() > 4) {
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, 4, DataType::kFloat, {0}));
  }
  if (!IsThird(op)) return Status();
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 5, plan.dtype, plan.gives_norm ? norm : Shape({0})));
  return SetOutput(op, 6, DataType::kFloat, {0});
}

Result<std::unique_ptr<Kernel>> MakeMla(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const MlaPlan plan, PlanMla(op));
  return MakeMlaKernel(op, plan);
}

// The interface of one of the three.
Operator MlaOperator(std::string_view type, bool third) {
  Operator op;
  op.schema.type = type;
  op.schema.inputs = {{"token_x"},           {"weight_dq"},     {"weight_uq_qr"},
                      {"weight_uk"},         {"weight_dkv_kr"}, {"rmsnorm_gamma_cq"},
                      {"rmsnorm_gamma_ckv"}, {"rope_sin"},      {"rope_cos"}};
  if (!third) op.schema.inputs.push_back({"cache_index"});
  op.schema.inputs.push_back({"kv_cache"});
  op.schema.inputs.push_back({"kr_cache"});
  if (third) op.schema.inputs.push_back({"cache_index", PortKind::kOptional});
  for (const std::string_view port :
       {"dequant_scale_x", "dequant_scale_w_dq", "dequant_scale_w_uq_qr", "dequant_scale_w_dkv_kr",
        "quant_scale_ckv", "quant_scale_ckr", "smooth_scales_cq"}) {
    op.schema.inputs.push_back({port, PortKind::kOptional});
  }
  op.schema.outputs = {{"query"}, {"query_rope"}, {"kv_cache"}, {"kr_cache"}};
  op.schema.attrs = {{"rmsnorm_epsilon_cq", AttrValue::Float(1e-5f)},
                     {"rmsnorm_epsilon_ckv", AttrValue::Float(1e-5f)},
                     {"cache_mode", AttrValue::String("PA_BSND")}};
  const int cache = third ? 9 : 10;
  op.in_place = {{2, cache}, {3, cache + 1}};
  op.infer = InferMla;
  op.make_kernel = MakeMla;
  return op;
}

}  // namespace

void RegisterMlaPrologOps(OpRegistry& registry) {
  registry.Add(MlaOperator("MlaProlog", false));
  Operator second = MlaOperator("MlaPrologV2", false);
  second.schema.outputs.push_back({"dequant_scale_q_nope"});
  registry.Add(std::move(second));
  Operator third = MlaOperator("MlaPrologV3", true);
  third.schema.inputs.push_back({"actual_seq_len", PortKind::kOptional});
  third.schema.inputs.push_back({"k_nope_clip_alpha", PortKind::kOptional});
  for (const std::string_view port :
       {"dequant_scale_q_nope", "query_norm", "dequant_scale_q_norm"}) {
    third.schema.outputs.push_back({port});
  }
  third.schema.attrs.push_back({"query_norm_flag", AttrValue::Bool(false)});
  for (const std::string_view attr :
       {"weight_quant_mode", "kv_cache_quant_mode", "query_quant_mode", "ckvkr_repo_mode",
        "quant_scale_repo_mode"}) {
    third.schema.attrs.push_back({attr, AttrValue::Int(0)});
  }
  third.schema.attrs.push_back({"tile_size", AttrValue::Int(128)});
  third.schema.attrs.push_back({"qc_qr_scale", AttrValue::Float(1.0f)});
  third.schema.attrs.push_back({"kc_scale", AttrValue::Float(1.0f)});
  registry.Add(std::move(third));
}

}  // namespace npumesh
