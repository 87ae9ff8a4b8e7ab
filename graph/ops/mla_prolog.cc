// MlaProlog, MlaPrologV2 and MlaPrologV3: what latent attention computes from its tokens.
//
//   cq = qc_qr_scale * rms_norm(x W_dq);    [q, qr] = cq W_uq_qr, for each head
//   query = q W_uk;                         query_rope = rope(qr)
//   [ckv, kr] = x W_dkv_kr;  kv_cache <- kc_scale * rms_norm(ckv);  kr_cache <- rope(kr)
//
// Products and norms are rounded to the type of the tokens, as on the device. The rotation takes
// pairs of neighbours and leaves halves. Only the forms without quantisation are computed; the
// outputs for scales are empty. A cache index below 0 is skipped.
#include "graph/ops/mla_prolog.h"

#include "graph/ops/fused_families.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/plan_parts.h"

namespace npumesh {
namespace {

void RefuseQuantised(const OpContext& op, bool third, Check& check) {
  NotFed(check, op,
         {"dequant_scale_x", "dequant_scale_w_dq", "dequant_scale_w_uq_qr",
          "dequant_scale_w_dkv_kr", "quant_scale_ckv", "quant_scale_ckr", "smooth_scales_cq"});
  if (!third) return;
  NotFed(check, op, {"actual_seq_len", "k_nope_clip_alpha"});
  for (const std::string_view mode :
       {"weight_quant_mode", "kv_cache_quant_mode", "query_quant_mode", "ckvkr_repo_mode",
        "quant_scale_repo_mode"}) {
    SupportedOf(check, op, mode, {0});
  }
}

// token_x is [.., He], weight_dq [He, Hcq], weight_uq_qr [Hcq, N * (D + Dr)], weight_uk
// [N, D, Hckv], weight_dkv_kr [He, Hckv + Dr] and rope_cos [.., Dr].
void ReadShapes(const OpContext& op, Check& check, MlaPlan& plan) {
  const TensorType &x = op.in("token_x"), &uk = op.in("weight_uk"), &cos = op.in("rope_cos");
  const int rank = x.shape.rank();
  check.Type("token_x", kFloats);
  check.That(rank == 2 || rank == 3, "token_x is {}, expected two or three dimensions",
             x.ToString());
  const int64_t latent_q = check.Matrix("weight_dq", x.dtype).width;
  check.Matrix("weight_uq_qr", x.dtype);
  check.Rank("weight_uk", x.dtype, 3);
  check.Matrix("weight_dkv_kr", x.dtype);
  check.Rank("rope_cos", x.dtype, rank);
  check.SameTensor("rope_sin", "rope_cos");
  for (const std::string_view gamma : {"rmsnorm_gamma_cq", "rmsnorm_gamma_ckv"}) {
    check.Type(gamma, kFloats);
  }
  if (!check.ok()) return;
  plan.dtype = x.dtype;
  plan.gamma_q = op.in("rmsnorm_gamma_cq").dtype;
  plan.gamma_kv = op.in("rmsnorm_gamma_ckv").dtype;
  plan.tokens = ElementsBetween(x.shape, 0, rank - 1);
  plan.model = x.shape[rank - 1];
  plan.latent_q = latent_q;
  plan.heads = uk.shape[0];
  plan.head = uk.shape[1];
  plan.latent_kv = uk.shape[2];
  plan.rope = cos.shape[rank - 1];
  check.Shape("weight_dq", {plan.model, latent_q});
  check.Shape("weight_dkv_kr", {plan.model, plan.latent_kv + plan.rope});
  check.That(op.in("weight_uq_qr").shape == Shape({latent_q, plan.heads * plan.head_both()}),
             "weight_uq_qr is {} and weight_uk {}, expected [{},N*(D+{})] and [N,D,Hckv]",
             op.in("weight_uq_qr").ToString(), uk.ToString(), latent_q, plan.rope);
  check.That(plan.rope % 2 == 0 && ElementsBetween(cos.shape, 0, rank - 1) == plan.tokens,
             "rope_cos is {}, expected an even last dimension for each of {} tokens",
             cos.ToString(), plan.tokens);
  check.Elements("rmsnorm_gamma_cq", {latent_q});
  check.Elements("rmsnorm_gamma_ckv", {plan.latent_kv});
}

void ReadCaches(const OpContext& op, Check& check, MlaPlan& plan) {
  const std::string mode = op.attr_string("cache_mode");
  const bool paged = mode == "PA_BSND" || mode == "PA_NZ";
  Supported(check, op, paged || mode == "BSND" || mode == "TND",
            "cache_mode is \"{}\", expected PA_BSND, PA_NZ, BSND or TND", mode);
  check.RankAtLeast("kv_cache", plan.dtype, 3);
  if (!check.ok()) return;
  const Shape& kv = op.in("kv_cache").shape;
  const int rank = kv.rank();
  plan.tiled = mode == "PA_NZ";
  plan.slots = ElementsBetween(kv, 0, rank - 2);
  plan.block_size = paged ? kv[1] : plan.slots;
  const std::pair<std::string_view, int64_t> caches[] = {{"kv_cache", plan.latent_kv},
                                                         {"kr_cache", plan.rope}};
  for (const auto& [port, width] : caches) {
    const Shape& cache = op.in(port).shape;
    check.Type(port, plan.dtype);
    check.That(cache.rank() == rank && cache[rank - 2] == 1 && cache[rank - 1] == width &&
                   ElementsBetween(cache, 0, rank - 2) == plan.slots &&
                   (paged ? rank == 4 && cache[1] == plan.block_size : plan.slots == plan.tokens) &&
                   (!plan.tiled || width % 16 == 0),
               "{} is {} in mode {} for {} tokens, expected {} rows [1,{}]", port,
               op.in(port).ToString(), mode, plan.tokens, plan.slots, width);
  }
  if (!paged) return;
  plan.index = SlotIfFed(op, "cache_index");
  check.That(plan.index >= 0 && op.in(plan.index).dtype == DataType::kInt64 &&
                 op.in(plan.index).shape.elements() == plan.tokens,
             "cache_index is {}, expected an int64 cache index for each token of {}",
             plan.index < 0 ? "missing" : op.in(plan.index).ToString(), plan.tokens);
}

// Outputs that a form without quantisation does not have are empty.
std::vector<TensorType> OutputsOf(const OpContext& op, const MlaPlan& plan) {
  const Shape& x = op.in("token_x").shape;
  const TensorType none = {DataType::kFloat, {0}};
  Shape query = WithLast(x, plan.heads), rope = query;
  query.mutable_dims().push_back(plan.latent_kv);
  rope.mutable_dims().push_back(plan.rope);
  std::vector<TensorType> outputs = {
      {plan.dtype, query},
      {plan.dtype, rope},
      op.in("kv_cache"),
      op.in("kr_cache"),
      none,
      {plan.dtype, plan.gives_norm ? WithLast(x, plan.latent_q) : Shape({0})},
      none};
  outputs.resize(op.schema().outputs.size());
  return outputs;
}

template <bool kThird>
Result<MlaPlan> PlanMla(const OpContext& op) {
  Check check(op);
  MlaPlan plan;
  RefuseQuantised(op, kThird, check);
  ReadShapes(op, check, plan);
  ReadCaches(op, check, plan);
  if (!check.ok()) return check.status();
  plan.who = op.Who();
  plan.threads = op.threads();
  plan.epsilon_q = static_cast<double>(op.attr_float("rmsnorm_epsilon_cq"));
  plan.epsilon_kv = static_cast<double>(op.attr_float("rmsnorm_epsilon_ckv"));
  if constexpr (kThird) {
    plan.scale_q = op.attr_float("qc_qr_scale");
    plan.scale_kv = op.attr_float("kc_scale");
    plan.gives_norm = op.attr_bool("query_norm_flag");
  }
  plan.outputs = OutputsOf(op, plan);
  PlanMlaScratch(plan);
  plan.tables =
      RotaryTables::Of(op, "rope_cos", "rope_sin", RotaryMode::kInterleaveHalf, plan.scratch);
  return plan;
}

template <bool kThird>
Operator MlaOperator(std::string_view signature) {
  Operator op = Define<PlanMla<kThird>, RunMla>(signature);
  constexpr int kCache = kThird ? 9 : 10;
  op.in_place = {{2, kCache}, {3, kCache + 1}};
  return op;
}

}  // namespace

void RegisterMlaPrologOps(OpRegistry& registry) {
  registry.Add(MlaOperator<false>(
      "MlaProlog(token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq, "
      "rmsnorm_gamma_ckv, rope_sin, rope_cos, cache_index, kv_cache, kr_cache, dequant_scale_x?, "
      "dequant_scale_w_dq?, dequant_scale_w_uq_qr?, dequant_scale_w_dkv_kr?, quant_scale_ckv?, "
      "quant_scale_ckr?, smooth_scales_cq?; rmsnorm_epsilon_cq=1e-05, rmsnorm_epsilon_ckv=1e-05, "
      "cache_mode=\"PA_BSND\") -> query, query_rope, kv_cache, kr_cache"));
  registry.Add(MlaOperator<false>(
      "MlaPrologV2(token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq, "
      "rmsnorm_gamma_ckv, rope_sin, rope_cos, cache_index, kv_cache, kr_cache, dequant_scale_x?, "
      "dequant_scale_w_dq?, dequant_scale_w_uq_qr?, dequant_scale_w_dkv_kr?, quant_scale_ckv?, "
      "quant_scale_ckr?, smooth_scales_cq?; rmsnorm_epsilon_cq=1e-05, rmsnorm_epsilon_ckv=1e-05, "
      "cache_mode=\"PA_BSND\") -> query, query_rope, kv_cache, kr_cache, dequant_scale_q_nope"));
  registry.Add(MlaOperator<true>(
      "MlaPrologV3(token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq, "
      "rmsnorm_gamma_ckv, rope_sin, rope_cos, kv_cache, kr_cache, cache_index?, dequant_scale_x?, "
      "dequant_scale_w_dq?, dequant_scale_w_uq_qr?, dequant_scale_w_dkv_kr?, quant_scale_ckv?, "
      "quant_scale_ckr?, smooth_scales_cq?, actual_seq_len?, k_nope_clip_alpha?; "
      "rmsnorm_epsilon_cq=1e-05, rmsnorm_epsilon_ckv=1e-05, cache_mode=\"PA_BSND\", "
      "query_norm_flag=false, weight_quant_mode=0, kv_cache_quant_mode=0, query_quant_mode=0, "
      "ckvkr_repo_mode=0, quant_scale_repo_mode=0, tile_size=128, qc_qr_scale=1.0, kc_scale=1.0) "
      "-> query, query_rope, kv_cache, kr_cache, dequant_scale_q_nope, query_norm, "
      "dequant_scale_q_norm"));
}

}  // namespace npumesh
