// Keys and values that are written into caches: ScatterPaKvCache copies rows of them, and
// KvRmsNormRopeCache takes those of latent attention, which it normalises and rotates.
//
// A slot below 0 is skipped; one past the cache is a run-time error.
#include <algorithm>
#include <cstring>
#include <string>

#include "graph/ops/attention/cache_tiles.h"
#include "graph/ops/attention/family.h"
#include "graph/ops/attention/rope.h"
#include "graph/ops/toolbox/product/blocked_product.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/rms_row.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// ---- ScatterPaKvCache ----

// Copies the rows of one tensor into its cache. A row is `chunks` pieces of `chunk` bytes; in tiled
// caches [blocks, chunks, block_size, e] they are a block's rows apart.
struct CacheCopy {
  int from = 0;  // slot
  int output = 0;
  int64_t blocks = 0, block_size = 0, chunks = 1, chunk = 0;
};

struct ScatterPlan : Planned {
  Integers slots;  // by token
  std::vector<CacheCopy> copies;
};

CacheCopy PlanCopy(const OpContext& op, std::string_view port, std::string_view cache_port,
                   int64_t tokens, Check& check) {
  const TensorType &rows = op.in(port), &cache = op.in(cache_port);
  const auto element = static_cast<int64_t>(check.Take(ElementBytes(op, rows.dtype)));
  const int rank = cache.shape.rank();
  const int64_t row = tokens == 0 ? 0 : rows.shape.elements() / tokens;
  CacheCopy copy;
  copy.from = op.slot(port);
  copy.output = port == "key" ? 0 : 1;
  bool fits = rows.dtype == cache.dtype && row * tokens == rows.shape.elements() && rank >= 3;
  if (fits) {
    const bool tiled = op.attr_string("cache_mode") == "PA_NZ";
    const int64_t tile = cache.shape[rank - 1];
    copy.blocks = cache.shape[0];
    copy.block_size = cache.shape[tiled ? rank - 2 : 1];
    copy.chunks = tiled ? ElementsBetween(cache.shape, 1, rank - 2) : 1;
    copy.chunk = (tiled ? tile : row) * element;
    fits =
        tokens == 0 || row == (tiled ? copy.chunks * tile : ElementsBetween(cache.shape, 2, rank));
  }
  check.That(fits, "{} is {} for {} slots, which does not fit {} {} in cache_mode {}", port, rows,
             tokens, cache_port, cache, op.attr_string("cache_mode"));
  return copy;
}

ScatterPlan PlanScatter(const OpContext& op, Check& check) {
  ScatterPlan plan;
  const std::string cache = op.attr_string("cache_mode"), scatter = op.attr_string("scatter_mode");
  check.Supported(cache == "Norm" || cache == "PA_NZ",
                  "cache_mode is \"{}\", expected Norm or PA_NZ", cache);
  check.Supported(scatter == "None", "scatter_mode is \"{}\", expected None", scatter);
  check.Type("slot_mapping", kIndices);
  if (!check.ok()) return plan;
  plan.slots = Integers::OfSlot(op, op.slot("slot_mapping"));
  plan.copies.push_back(PlanCopy(op, "key", "key_cache", plan.slots.count(), check));
  if (SlotIfFed(op, "value") >= 0 && SlotIfFed(op, "value_cache") >= 0) {
    plan.copies.push_back(PlanCopy(op, "value", "value_cache", plan.slots.count(), check));
  }
  plan.outputs = {op.in("key_cache"), op.in("value_cache")};
  plan.outputs.resize(std::min(plan.outputs.size(), static_cast<size_t>(op.outputs())));
  return plan;
}

// Tokens come before the elements of a row, but for the tiles of a block.
int RowAxis(const OpContext& op) {
  return op.attr_string("cache_mode") == "PA_NZ" ? 1 : 2;
}

Status Copy(const ScatterPlan& plan, const CacheCopy& copy, const KernelArgs& args) {
  const auto* row = static_cast<const std::byte*>(args.in[copy.from]);
  auto* cache = static_cast<std::byte*>(args.out[copy.output]);
  for (int64_t t = 0; t < plan.slots.count(); ++t) {
    const int64_t slot = plan.slots.At(args, t);
    NPUMESH_RETURN_IF_ERROR(CheckSlot(plan.who, t, slot, copy.blocks * copy.block_size));
    for (int64_t c = 0; c < copy.chunks; ++c, row += copy.chunk) {
      if (slot < 0) continue;
      std::memcpy(cache + TileOfSlot(slot, c, copy.chunks, copy.block_size) * copy.chunk, row,
                  static_cast<size_t>(copy.chunk));
    }
  }
  return Status();
}

Status RunScatter(const ScatterPlan& plan, const KernelArgs& args) {
  for (const CacheCopy& copy : plan.copies) NPUMESH_RETURN_IF_ERROR(Copy(plan, copy, args));
  return Status();
}

// ---- KvRmsNormRopeCache ----

// Writes vectors into one cache, and unchanged into the output two ports after it.
struct CacheWriter {
  int output = 0;
  DataType dtype = DataType::kUndefined;
  bool by_batch = false;   // Norm: [B, N, Smax, D], otherwise [blocks, block_size, N, D]
  bool by_block = false;   // one slot for each block of S
  bool tiled = false;      // each block is stored [N, D / tile, block_size, tile]
  int64_t block_size = 0;  // Smax for Norm
  int64_t slots = 0;       // that an index may name
  int64_t heads = 1, width = 0;
  int64_t tile = 0;  // elements that lie side by side
  Factors scale, offset;
  Workspace<float> row;

  // Entries of the index for `rows` tokens of a sequence.
  int64_t Entries(int64_t rows) const { return by_block ? CeilDiv(rows, block_size) : rows; }
  // First element of (batch, head, slot).
  int64_t Element(int64_t batch, int64_t head, int64_t slot) const {
    if (by_batch) return ((batch * heads + head) * block_size + slot) * width;
    if (!tiled) return (slot * heads + head) * width;
    return (slot / block_size * heads + head) * width * block_size + slot % block_size * tile;
  }
};

struct NormRopePlan : Planned {
  DataType dtype = DataType::kUndefined, gamma_dtype = DataType::kUndefined;
  Integers index;
  int v = -1;  // slot; -1: the values are the first elements of kv, the keys the others
  int64_t batch = 0, heads = 0, rows = 0, width = 0;  // of kv
  int64_t normed = 0;                                 // elements of gamma
  int64_t table_rows = 0;
  double epsilon = 0;
  RotaryTables tables;
  CacheWriter keys, values;
  Workspace<float> x, gamma, factors;
};

CacheWriter WriterOf(const OpContext& op, std::string_view port, int64_t width,
                     std::string_view scale, std::string_view offset, Check& check) {
  const std::string mode = op.attr_string("cache_mode");
  const TensorType& type = op.in(port);
  const Shape &cache = type.shape, &kv = op.in("kv").shape;
  CacheWriter writer;
  writer.output = port == "k_cache" ? 0 : 1;
  writer.dtype = type.dtype;
  writer.by_batch = mode == "Norm";
  writer.by_block = mode == "PA_BLK_BNSD" || mode == "PA_BLK_NZ";
  writer.tiled = mode == "PA_NZ" || mode == "PA_BLK_NZ";
  writer.heads = kv[1];
  writer.width = width;
  writer.tile =
      writer.tiled ? std::min<int64_t>(width, type.dtype == DataType::kInt8 ? 32 : 16) : width;
  check.Rank(port, kFloats | DataType::kInt8, 4);
  if (!check.ok()) return writer;
  const bool placed =
      writer.by_batch ? cache[0] == kv[0] && cache[1] == kv[1] : cache[2] == kv[1] && cache[1] > 0;
  check.That(placed && cache[3] == width && (width == 0 || width % writer.tile == 0),
             "{} is {}, which does not fit vectors of {} elements of kv {} in mode {}", port, type,
             width, op.in("kv"), mode);
  writer.block_size = cache[writer.by_batch ? 2 : 1];
  writer.slots = writer.by_batch ? cache[2] : cache[0] * cache[1];
  writer.scale = check.Take(Factors::Of(op, scale));
  writer.offset = check.Take(Factors::Of(op, offset));
  check.Keep(CheckFactors(op, writer.scale, scale, width));
  check.Keep(CheckFactors(op, writer.offset, offset, width));
  return writer;
}

// kv is [B, N, S, Dv + Dk], gamma [Dv], cos and sin [B, 1, S or 1, Dk]; with v, kv is [B, N, S, D]
// and gamma [D].
void ReadShapes(const OpContext& op, Check& check, NormRopePlan& plan) {
  check.Rank("kv", kFloats, 4);
  check.Rank("gamma", kFloats, 1);
  check.Rank("cos", kFloats, 4);
  check.SameTensor("sin", "cos");
  if (!check.ok()) return;
  const TensorType &kv = op.in("kv"), &cos = op.in("cos"), &gamma = op.in("gamma");
  plan.dtype = kv.dtype;
  plan.gamma_dtype = gamma.dtype;
  plan.index = Integers::OfSlot(op, op.slot("index"));
  plan.v = SlotIfFed(op, "v");
  plan.batch = kv.shape[0];
  plan.heads = kv.shape[1];
  plan.rows = kv.shape[2];
  plan.width = kv.shape[3];
  plan.normed = gamma.shape[0];
  plan.table_rows = cos.shape[2];
  const int64_t rotated = cos.shape[3];
  check.That(cos.shape[0] == plan.batch && cos.shape[1] == 1 && rotated % 2 == 0 &&
                 (plan.table_rows == 1 || plan.table_rows == plan.rows),
             "cos is {}, expected [{},1,{},Dk] with an even Dk", cos, plan.batch, plan.rows);
  check.That(plan.v >= 0 ? plan.normed == plan.width && rotated <= plan.width
                         : plan.normed + rotated == plan.width,
             "gamma is {} and cos {}, which do not fit kv {}", gamma, cos, kv);
  if (plan.v < 0) return;
  check.Rank("v", kv.dtype, 4);
  if (check.ok()) check.Shape("v", WithLast(kv.shape, op.in("v").shape[3]));
}

NormRopePlan PlanNormRope(const OpContext& op, Check& check) {
  NormRopePlan plan;
  check.OneOf("cache_mode", {"Norm", "PA", "PA_BNSD", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ"});
  ReadShapes(op, check, plan);
  check.Type("index", kIndices);
  if (!check.ok()) return plan;
  const TensorType& kv = op.in("kv");
  const int64_t rotated = op.in("cos").shape[3];
  const int64_t key_width = plan.v < 0 ? rotated : plan.width;
  const int64_t value_width = plan.v < 0 ? plan.normed : op.in(plan.v).shape[3];
  plan.keys = WriterOf(op, "k_cache", key_width, "k_rope_scale", "k_rope_offset", check);
  plan.values = WriterOf(op, "ckv_cache", value_width, "c_kv_scale", "c_kv_offset", check);
  if (!check.ok()) return plan;
  check.That(!plan.keys.by_block || plan.keys.block_size == plan.values.block_size,
             "k_cache is {} and ckv_cache {}, expected blocks of one size", op.in("k_cache"),
             op.in("ckv_cache"));
  check.Elements("index", {plan.batch * plan.keys.Entries(plan.rows)});
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  plan.outputs = {op.in("k_cache"),
                  op.in("ckv_cache"),
                  {kv.dtype, WithLast(kv.shape, key_width)},
                  {kv.dtype, WithLast(kv.shape, value_width)}};
  plan.tables = RotaryTables::Of(op, "cos", "sin", RotaryMode::kInterleaveHalf, plan.scratch);
  plan.x = plan.scratch.Floats(plan.width);
  plan.gamma = plan.scratch.Floats(plan.normed);
  plan.factors = plan.scratch.Floats(std::max(key_width, value_width));
  plan.keys.row = plan.scratch.Floats(key_width);
  plan.values.row = plan.scratch.Floats(value_width);
  return plan;
}

// The writer's row as it is into an output, and quantised into the cache.
Status Write(const NormRopePlan& plan, const KernelArgs& args, const CacheWriter& writer, int64_t b,
             int64_t h, int64_t s) {
  const int64_t token = (b * plan.heads + h) * plan.rows + s;
  const int64_t width = writer.width, tile = writer.tile;
  float* row = writer.row(args);
  StoreRow(plan.dtype, row, args.out[writer.output + 2], token * width, width);
  const int64_t entry =
      b * writer.Entries(plan.rows) + (writer.by_block ? s / writer.block_size : s);
  int64_t slot = plan.index.At(args, entry);
  if (slot < 0) return Status();
  if (writer.by_block) slot += s % writer.block_size;
  NPUMESH_RETURN_IF_ERROR(CheckSlot(plan.who, b * plan.rows + s, slot, writer.slots));
  ScaleColumns(args, writer.scale, writer.offset, 0, width, plan.factors(args), row);
  int64_t element = writer.Element(b, h, slot);
  for (int64_t d = 0; d < width; d += tile, element += tile * writer.block_size) {
    StoreNumbers(writer.dtype, row + d, args.out[writer.output], element, tile);
  }
  return Status();
}

Status RunToken(const NormRopePlan& plan, const KernelArgs& args, int64_t token) {
  const int64_t b = token / plan.rows / plan.heads, h = token / plan.rows % plan.heads;
  const int64_t s = token % plan.rows;
  float *x = plan.x(args), *key = plan.keys.row(args), *value = plan.values.row(args);
  const int64_t turn = (b * plan.table_rows + (plan.table_rows == 1 ? 0 : s)) * plan.tables.width;
  const float* gamma = LoadRow(plan.gamma_dtype, args.in[1], 0, plan.normed, plan.gamma(args));
  LoadNumbers(plan.dtype, args.in[0], token * plan.width, plan.width, x);
  if (plan.v < 0) plan.tables.Rotate(args, turn, x + plan.normed, key);
  RmsNormalise(x, gamma, plan.epsilon, plan.normed);
  if (plan.v < 0) {
    std::copy_n(x, plan.normed, value);
  } else {
    std::copy_n(x, plan.width, key);
    plan.tables.Rotate(args, turn, x, key);
    const int64_t width = plan.values.width;
    LoadNumbers(plan.dtype, args.in[plan.v], token * width, width, value);
  }
  NPUMESH_RETURN_IF_ERROR(Write(plan, args, plan.keys, b, h, s));
  return Write(plan, args, plan.values, b, h, s);
}

Status RunNormRope(const NormRopePlan& plan, const KernelArgs& args) {
  for (int64_t token = 0; token < plan.batch * plan.heads * plan.rows; ++token) {
    NPUMESH_RETURN_IF_ERROR(RunToken(plan, args, token));
  }
  return Status();
}

}  // namespace

void RegisterCacheOps(OpRegistry& registry) {
  registry.Add(Define<PlanScatter, RunScatter>(
      "ScatterPaKvCache(key, key_cache, slot_mapping, value, value_cache, compress_lens?, "
      "compress_seq_offset?, seq_lens?; cache_mode=\"Norm\", scatter_mode=\"None\", "
      "strides=[1,1], offsets=[0,0]) -> key_cache, value_cache",
      {.in_place = {{0, 1}, {1, 4}},
       .split = SplitTrait{.form = SplitForm::kRows,
                           .data = "key value",
                           .caches = "key_cache value_cache",
                           .row_axis = RowAxis,
                           .positions = "slot_mapping"}}));
  registry.Add(Define<PlanNormRope, RunNormRope>(
      "KvRmsNormRopeCache(kv, gamma, cos, sin, index, k_cache, ckv_cache, k_rope_scale?, "
      "c_kv_scale?, k_rope_offset?, c_kv_offset?, v?; epsilon=1e-05, cache_mode=\"Norm\", "
      "is_output_kv=false) -> k_cache, ckv_cache, k_rope, c_kv",
      {.in_place = {{0, 5}, {1, 6}}}));
}

}  // namespace npumesh
