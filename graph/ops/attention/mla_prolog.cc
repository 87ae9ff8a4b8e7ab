// MlaProlog, MlaPrologV2 and MlaPrologV3: what latent attention computes from its tokens.
//
//   cq = qc_qr_scale * rms_norm(x W_dq);    [q, qr] = cq W_uq_qr, for each head
//   query = q W_uk;                         query_rope = rope(qr)
//   [ckv, kr] = x W_dkv_kr;  kv_cache <- kc_scale * rms_norm(ckv);  kr_cache <- rope(kr)
//
// Products and norms are rounded to the type of the tokens, as on the device. The rotation takes
// pairs of neighbours and leaves halves. Only the forms without quantisation are computed; the
// outputs for scales are empty. A cache index below 0 is skipped.
#include <algorithm>
#include <string>

#include "graph/ops/attention/rope.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/blocked_product.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/rms_row.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

constexpr int64_t kChunk = 128;  // tokens computed together

// What the latent vectors of queries, or of keys and values, are normalised by.
struct LatentNorm {
  int gamma = -1;  // slot
  DataType dtype = DataType::kUndefined;
  double epsilon = 0;
  float scale = 1;

  static LatentNorm Of(const OpContext& op, std::string_view gamma, std::string_view epsilon) {
    const int slot = op.slot(gamma);
    return {slot, op.in(slot).dtype, static_cast<double>(op.attr_float(epsilon))};
  }
};

struct MlaPlan : Planned {
  int threads = 1;
  int64_t tokens = 0;
  int64_t model = 0, latent_q = 0, latent_kv = 0;  // He, Hcq, Hckv
  int64_t heads = 0, head = 0, rope = 0;           // N, D, Dr
  DataType dtype = DataType::kUndefined;
  RotaryTables tables;
  Integers index;  // absent: row t of the caches is that of token t
  int64_t slots = 0, block_size = 0;
  bool tiled = false;
  LatentNorm norm_q, norm_kv;
  bool gives_norm = false;
  Workspace<float> queries, heads_of_queries, keys, gamma, rotated;

  int64_t head_both() const { return head + rope; }
};

// Slots of the inputs that begin all three interfaces, as far as a product reads them.
enum MlaSlot { kX, kDq, kUq, kUk, kDkv };

void RefuseQuantised(bool third, Check& check) {
  check.NotFed({"dequant_scale_x", "dequant_scale_w_dq", "dequant_scale_w_uq_qr",
                "dequant_scale_w_dkv_kr", "quant_scale_ckv", "quant_scale_ckr",
                "smooth_scales_cq"});
  if (!third) return;
  check.NotFed({"actual_seq_len", "k_nope_clip_alpha"});
  for (const std::string_view mode :
       {"weight_quant_mode", "kv_cache_quant_mode", "query_quant_mode", "ckvkr_repo_mode",
        "quant_scale_repo_mode"}) {
    check.Among(mode, {0});
  }
}

// token_x is [.., He], weight_dq [He, Hcq], weight_uq_qr [Hcq, N * (D + Dr)], weight_uk
// [N, D, Hckv], weight_dkv_kr [He, Hckv + Dr] and rope_cos [.., Dr].
void ReadShapes(const OpContext& op, Check& check, MlaPlan& plan) {
  const TensorType &x = op.in("token_x"), &uk = op.in("weight_uk"), &cos = op.in("rope_cos");
  const int rank = x.shape.rank();
  check.Type("token_x", kFloats);
  check.That(rank == 2 || rank == 3, "token_x is {}, expected two or three dimensions", x);
  const int64_t latent_q = check.Matrix("weight_dq", x.dtype).width;
  check.Matrix("weight_uq_qr", x.dtype);
  check.Rank("weight_uk", x.dtype, 3);
  check.Matrix("weight_dkv_kr", x.dtype);
  check.Rank("rope_cos", x.dtype, rank);
  check.SameTensor("rope_sin", "rope_cos");
  check.Type("rmsnorm_gamma_cq", kFloats);
  check.Type("rmsnorm_gamma_ckv", kFloats);
  if (!check.ok()) return;
  plan.dtype = x.dtype;
  plan.norm_q = LatentNorm::Of(op, "rmsnorm_gamma_cq", "rmsnorm_epsilon_cq");
  plan.norm_kv = LatentNorm::Of(op, "rmsnorm_gamma_ckv", "rmsnorm_epsilon_ckv");
  plan.tokens = ElementsBetween(x.shape, 0, rank - 1);
  plan.model = x.shape[rank - 1];
  plan.latent_q = latent_q;
  plan.heads = uk.shape[0], plan.head = uk.shape[1], plan.latent_kv = uk.shape[2];
  plan.rope = cos.shape[rank - 1];
  check.Shape("weight_dq", {plan.model, latent_q});
  check.Shape("weight_dkv_kr", {plan.model, plan.latent_kv + plan.rope});
  check.That(op.in("weight_uq_qr").shape == Shape({latent_q, plan.heads * plan.head_both()}),
             "weight_uq_qr is {} and weight_uk {}, expected [{},N*(D+{})] and [N,D,Hckv]",
             op.in("weight_uq_qr"), uk, latent_q, plan.rope);
  check.That(plan.rope % 2 == 0 && ElementsBetween(cos.shape, 0, rank - 1) == plan.tokens,
             "rope_cos is {}, expected an even last dimension for each of {} tokens", cos,
             plan.tokens);
  check.Elements("rmsnorm_gamma_cq", {latent_q});
  check.Elements("rmsnorm_gamma_ckv", {plan.latent_kv});
}

void ReadCaches(const OpContext& op, Check& check, MlaPlan& plan) {
  const std::string mode = op.attr_string("cache_mode");
  const bool paged = mode == "PA_BSND" || mode == "PA_NZ";
  check.Supported(paged || mode == "BSND" || mode == "TND",
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
               "{} is {} in mode {} for {} tokens, expected {} rows [1,{}]", port, op.in(port),
               mode, plan.tokens, plan.slots, width);
  }
  if (!paged) return;
  plan.index = Integers::Of(op, "cache_index");
  const int slot = plan.index.slot();
  check.That(
      plan.index.count() == plan.tokens && slot >= 0 && op.in(slot).dtype == DataType::kInt64,
      "cache_index is {}, expected an int64 cache index for each token of {}",
      slot < 0 ? std::string("missing") : op.in(slot).ToString(), plan.tokens);
}

// Outputs that a form without quantisation does not have are empty.
std::vector<TensorType> OutputsOf(const OpContext& op, const MlaPlan& plan) {
  const Shape& x = op.in("token_x").shape;
  const int rank = x.rank();
  const TensorType none = {DataType::kFloat, {0}};
  std::vector<TensorType> outputs = {
      {plan.dtype, Spliced(x, rank - 1, rank, {plan.heads, plan.latent_kv})},
      {plan.dtype, Spliced(x, rank - 1, rank, {plan.heads, plan.rope})},
      op.in("kv_cache"),
      op.in("kr_cache"),
      none,
      {plan.dtype, plan.gives_norm ? WithLast(x, plan.latent_q) : Shape({0})},
      none};
  outputs.resize(op.schema().outputs.size());
  return outputs;
}

void LayOut(MlaPlan& plan) {
  Scratch& scratch = plan.scratch;
  const int64_t k = std::max({plan.model, plan.latent_q, plan.head});
  // Begins the scratch, as BlockedProduct wants it.
  scratch.Take<std::byte>(static_cast<int64_t>(BlockedProduct(k, false).scratch_bytes()));
  plan.queries = scratch.Floats(kChunk * plan.latent_q);
  plan.heads_of_queries = scratch.Floats(kChunk * plan.heads * plan.head_both());
  plan.keys = scratch.Floats(kChunk * (plan.latent_kv + plan.rope));
  plan.gamma = scratch.Floats(std::max(plan.latent_q, plan.latent_kv));
  plan.rotated = scratch.Floats(plan.rope);
}

template <bool kThird>
MlaPlan PlanMla(const OpContext& op, Check& check) {
  MlaPlan plan;
  RefuseQuantised(kThird, check);
  ReadShapes(op, check, plan);
  ReadCaches(op, check, plan);
  if (!check.ok()) return plan;
  plan.threads = op.threads();
  if constexpr (kThird) {
    plan.norm_q.scale = op.attr_float("qc_qr_scale");
    plan.norm_kv.scale = op.attr_float("kc_scale");
    plan.gives_norm = op.attr_bool("query_norm_flag");
  }
  plan.outputs = OutputsOf(op, plan);
  LayOut(plan);
  plan.tables =
      RotaryTables::Of(op, "rope_cos", "rope_sin", RotaryMode::kInterleaveHalf, plan.scratch);
  return plan;
}

// ---- the computation: chunks of tokens, one product after the other ----

// to[rows, n] = left w[k, n], rounded.
Status Project(const MlaPlan& plan, const KernelArgs& args, int64_t rows, int64_t n, int64_t k,
               const StoredMatrix& left, MlaSlot weight, float* to) {
  const StoredMatrix w{plan.dtype, args.in[weight], 0, false};
  return BlockedProduct(k, false).Run(args, rows, n, left, w, {}, [&](const SumSegment& segment) {
    float room[kBlockColumns];
    RoundRow(plan.dtype, segment.floats, segment.count, room, to + segment.row * n + segment.first);
  });
}

void Normalise(const MlaPlan& plan, const KernelArgs& args, const LatentNorm& norm, int64_t width,
               float* row) {
  float* room = plan.gamma(args);
  const float* gamma = LoadRow(norm.dtype, args.in[norm.gamma], 0, width, room);
  RmsNormalise(row, gamma, norm.epsilon, width);
  ScaleRow(row, norm.scale, width, row);
  RoundRow(plan.dtype, row, width, room, row);
}

// Query `h` of the tokens and its rotated part.
Status RunHead(const MlaPlan& plan, const KernelArgs& args, int64_t first, int64_t rows,
               int64_t h) {
  const int64_t all = plan.heads * plan.head_both(), own = h * plan.head_both();
  const float* queries = plan.heads_of_queries(args);
  float* rotated = plan.rotated(args);
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = queries + r * all + own + plan.head;
    plan.tables.Rotate(args, (first + r) * plan.rope, row, rotated);
    StoreRow(plan.dtype, rotated, args.out[1], ((first + r) * plan.heads + h) * plan.rope,
             plan.rope);
  }
  const int64_t n = plan.latent_kv;
  const StoredMatrix q{DataType::kFloat, queries, own, false, all};
  const StoredMatrix w{plan.dtype, args.in[kUk], h * plan.head * n, false};
  const BlockedProduct product(plan.head, false);
  return product.Run(args, rows, n, q, w, {}, [&](const SumSegment& segment) {
    const int64_t row = (first + segment.row) * plan.heads + h;
    StoreRow(plan.dtype, segment.floats, args.out[0], row * n + segment.first, segment.count);
  });
}

// In blocks of PA_NZ the rows are cut into tiles of 16 elements, [width / 16, block_size, 16].
void Write(const MlaPlan& plan, void* cache, int64_t slot, int64_t width, const float* row) {
  const int64_t tile = plan.tiled ? 16 : width, size = plan.block_size;
  int64_t element = slot / size * size * width + slot % size * tile;
  for (int64_t d = 0; d < width; d += tile, element += size * tile) {
    StoreRow(plan.dtype, row + d, cache, element, tile);
  }
}

Status WriteCaches(const MlaPlan& plan, const KernelArgs& args, int64_t token, float* row) {
  const int64_t slot = plan.index.given() ? plan.index.At(args, token) : token;
  if (slot < 0) return Status();
  NPUMESH_RETURN_IF_ERROR(CheckSlot(plan.who, token, slot, plan.slots));
  float* rotated = plan.rotated(args);
  plan.tables.Rotate(args, token * plan.rope, row + plan.latent_kv, rotated);
  Write(plan, args.out[3], slot, plan.rope, rotated);
  Normalise(plan, args, plan.norm_kv, plan.latent_kv, row);
  Write(plan, args.out[2], slot, plan.latent_kv, row);
  return Status();
}

Status RunChunk(const MlaPlan& plan, const KernelArgs& args, int64_t first, int64_t rows) {
  const int64_t latent_q = plan.latent_q, width = plan.latent_kv + plan.rope;
  float *queries = plan.queries(args), *keys = plan.keys(args);
  const StoredMatrix x{plan.dtype, args.in[kX], first * plan.model, false};
  NPUMESH_RETURN_IF_ERROR(Project(plan, args, rows, latent_q, plan.model, x, kDq, queries));
  for (int64_t r = 0; r < rows; ++r) {
    float* row = queries + r * latent_q;
    Normalise(plan, args, plan.norm_q, latent_q, row);
    if (plan.gives_norm) StoreRow(plan.dtype, row, args.out[5], (first + r) * latent_q, latent_q);
  }
  const StoredMatrix left{DataType::kFloat, queries, 0, false};
  NPUMESH_RETURN_IF_ERROR(Project(plan, args, rows, plan.heads * plan.head_both(), latent_q, left,
                                  kUq, plan.heads_of_queries(args)));
  for (int64_t h = 0; h < plan.heads; ++h) {
    NPUMESH_RETURN_IF_ERROR(RunHead(plan, args, first, rows, h));
  }
  NPUMESH_RETURN_IF_ERROR(Project(plan, args, rows, width, plan.model, x, kDkv, keys));
  for (int64_t r = 0; r < rows; ++r) {
    NPUMESH_RETURN_IF_ERROR(WriteCaches(plan, args, first + r, keys + r * width));
  }
  return Status();
}

Status RunMla(const MlaPlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  for (int64_t first = 0; first < plan.tokens; first += kChunk) {
    NPUMESH_RETURN_IF_ERROR(RunChunk(plan, args, first, std::min(kChunk, plan.tokens - first)));
  }
  return Status();
}

}  // namespace

void RegisterMlaPrologOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kWhite);
  registry.Add(Define<PlanMla<false>, RunMla>(
      "MlaProlog(token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq, "
      "rmsnorm_gamma_ckv, rope_sin, rope_cos, cache_index, kv_cache, kr_cache, dequant_scale_x?, "
      "dequant_scale_w_dq?, dequant_scale_w_uq_qr?, dequant_scale_w_dkv_kr?, quant_scale_ckv?, "
      "quant_scale_ckr?, smooth_scales_cq?; rmsnorm_epsilon_cq=1e-05, rmsnorm_epsilon_ckv=1e-05, "
      "cache_mode=\"PA_BSND\") -> query, query_rope, kv_cache, kr_cache",
      {.in_place = {{2, 10}, {3, 11}}}));
  registry.Add(Define<PlanMla<false>, RunMla>(
      "MlaPrologV2(token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq, "
      "rmsnorm_gamma_ckv, rope_sin, rope_cos, cache_index, kv_cache, kr_cache, dequant_scale_x?, "
      "dequant_scale_w_dq?, dequant_scale_w_uq_qr?, dequant_scale_w_dkv_kr?, quant_scale_ckv?, "
      "quant_scale_ckr?, smooth_scales_cq?; rmsnorm_epsilon_cq=1e-05, rmsnorm_epsilon_ckv=1e-05, "
      "cache_mode=\"PA_BSND\") -> query, query_rope, kv_cache, kr_cache, dequant_scale_q_nope",
      {.in_place = {{2, 10}, {3, 11}}}));
  registry.Add(Define<PlanMla<true>, RunMla>(
      "MlaPrologV3(token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq, "
      "rmsnorm_gamma_ckv, rope_sin, rope_cos, kv_cache, kr_cache, cache_index?, dequant_scale_x?, "
      "dequant_scale_w_dq?, dequant_scale_w_uq_qr?, dequant_scale_w_dkv_kr?, quant_scale_ckv?, "
      "quant_scale_ckr?, smooth_scales_cq?, actual_seq_len?, k_nope_clip_alpha?; "
      "rmsnorm_epsilon_cq=1e-05, rmsnorm_epsilon_ckv=1e-05, cache_mode=\"PA_BSND\", "
      "query_norm_flag=false, weight_quant_mode=0, kv_cache_quant_mode=0, query_quant_mode=0, "
      "ckvkr_repo_mode=0, quant_scale_repo_mode=0, tile_size=128, qc_qr_scale=1.0, kc_scale=1.0) "
      "-> query, query_rope, kv_cache, kr_cache, dequant_scale_q_nope, query_norm, "
      "dequant_scale_q_norm",
      {.in_place = {{2, 9}, {3, 10}}}));
}

}  // namespace npumesh
