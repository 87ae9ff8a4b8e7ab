// What MlaProlog and its later versions compute: chunks of tokens, one product after the other.
#include <algorithm>

#include "graph/ops/blocked_product.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/mla_prolog.h"
#include "graph/ops/rms_row.h"

namespace npumesh {
namespace {

constexpr int64_t kChunk = 128;  // tokens computed together

// Rounds floats to the type of the tokens.
void Round(DataType dtype, float* row, int64_t count) {
  constexpr int64_t kBlock = 512;
  float rounded[kBlock];  // holds `kBlock` elements of any row type
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t some = std::min(kBlock, count - first);
    StoreRow(dtype, row + first, rounded, 0, some);
    LoadNumbers(dtype, rounded, 0, some, row + first);
  }
}

// to[rows, n] = left w[k, n], rounded.
Status Multiply(const MlaPlan& plan, const KernelArgs& args, int64_t rows, int64_t n, int64_t k,
                const StoredMatrix& left, MlaSlot weight, float* to) {
  const StoredMatrix w{plan.dtype, args.in[weight], 0, false};
  return BlockedProduct(k, false).Run(args, rows, n, left, w, {}, [&](const SumSegment& segment) {
    float* row = to + segment.row * n + segment.first;
    std::copy_n(segment.floats, segment.count, row);
    Round(plan.dtype, row, segment.count);
  });
}

void Normalise(const MlaPlan& plan, const KernelArgs& args, MlaSlot slot, DataType dtype,
               double epsilon, float scale, int64_t width, float* row) {
  RmsNormalise(row, LoadRow(dtype, args.in[slot], 0, width, plan.gamma(args)), epsilon, width);
  ScaleRow(row, scale, width, row);
  Round(plan.dtype, row, width);
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
  if (!plan.tiled) {
    StoreRow(plan.dtype, row, cache, slot * width, width);
    return;
  }
  const int64_t block = slot / plan.block_size, at = slot % plan.block_size;
  for (int64_t tile = 0; tile < width / 16; ++tile) {
    const int64_t line = block * plan.block_size * width / 16 + tile * plan.block_size + at;
    StoreRow(plan.dtype, row + tile * 16, cache, line * 16, 16);
  }
}

Status WriteCaches(const MlaPlan& plan, const KernelArgs& args, int64_t token, float* row) {
  const int64_t slot =
      plan.index < 0 ? token : static_cast<const int64_t*>(args.in[plan.index])[token];
  if (slot < 0) return Status();
  if (slot >= plan.slots) {
    return Error(Code::kInvalidArgument, "{}: token {} goes to slot {}, the cache has {}", plan.who,
                 token, slot, plan.slots);
  }
  float* rotated = plan.rotated(args);
  plan.tables.Rotate(args, token * plan.rope, row + plan.latent_kv, rotated);
  Write(plan, args.out[3], slot, plan.rope, rotated);
  Normalise(plan, args, kGammaKv, plan.gamma_kv, plan.epsilon_kv, plan.scale_kv, plan.latent_kv,
            row);
  Write(plan, args.out[2], slot, plan.latent_kv, row);
  return Status();
}

Status RunChunk(const MlaPlan& plan, const KernelArgs& args, int64_t first, int64_t rows) {
  const int64_t latent_q = plan.latent_q, width = plan.latent_kv + plan.rope;
  float *queries = plan.queries(args), *keys = plan.keys(args);
  const StoredMatrix x{plan.dtype, args.in[kX], first * plan.model, false};
  NPUMESH_RETURN_IF_ERROR(Multiply(plan, args, rows, latent_q, plan.model, x, kDq, queries));
  for (int64_t r = 0; r < rows; ++r) {
    float* row = queries + r * latent_q;
    Normalise(plan, args, kGammaQ, plan.gamma_q, plan.epsilon_q, plan.scale_q, latent_q, row);
    if (plan.gives_norm) StoreRow(plan.dtype, row, args.out[5], (first + r) * latent_q, latent_q);
  }
  const StoredMatrix left{DataType::kFloat, queries, 0, false};
  NPUMESH_RETURN_IF_ERROR(Multiply(plan, args, rows, plan.heads * plan.head_both(), latent_q, left,
                                   kUq, plan.heads_of_queries(args)));
  for (int64_t h = 0; h < plan.heads; ++h) {
    NPUMESH_RETURN_IF_ERROR(RunHead(plan, args, first, rows, h));
  }
  NPUMESH_RETURN_IF_ERROR(Multiply(plan, args, rows, width, plan.model, x, kDkv, keys));
  for (int64_t r = 0; r < rows; ++r) {
    NPUMESH_RETURN_IF_ERROR(WriteCaches(plan, args, first + r, keys + r * width));
  }
  return Status();
}

}  // namespace

void PlanMlaScratch(MlaPlan& plan) {
  Scratch& scratch = plan.scratch;
  const int64_t k = std::max({plan.model, plan.latent_q, plan.head});
  plan.product =
      scratch.Take<std::byte>(static_cast<int64_t>(BlockedProduct(k, false).scratch_bytes()));
  plan.queries = scratch.Floats(kChunk * plan.latent_q);
  plan.heads_of_queries = scratch.Floats(kChunk * plan.heads * plan.head_both());
  plan.keys = scratch.Floats(kChunk * (plan.latent_kv + plan.rope));
  plan.gamma = scratch.Floats(std::max(plan.latent_q, plan.latent_kv));
  plan.rotated = scratch.Floats(plan.rope);
}

Status RunMla(const MlaPlan& plan, const KernelArgs& args) {
  const ProductThreads threads(plan.threads);
  for (int64_t first = 0; first < plan.tokens; first += kChunk) {
    NPUMESH_RETURN_IF_ERROR(RunChunk(plan, args, first, std::min(kChunk, plan.tokens - first)));
  }
  return Status();
}

}  // namespace npumesh
