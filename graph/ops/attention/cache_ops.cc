// Keys and values that are written into caches: ScatterPaKvCache copies rows of them, and
// KvRmsNormRopeCache takes those of latent attention, which it normalises and rotates. And
// GatherPaKvCache, which copies rows of a cache in pages out again.
//
// A slot below 0 is skipped; one past the cache is a run-time error.
#include <algorithm>
#include <cstring>
#include <string>

#include "graph/ops/attention/cache_tiles.h"
#include "graph/ops/attention/rope.h"
#include "graph/ops/core/op_registry.h"
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

// ---- GatherPaKvCache ----

struct GatherPlan : Planned {
  Integers tables;   // [sequences, pages]
  Integers lengths;  // of sequences, or where each begins and the last ends
  Integers offsets;  // first token of each sequence, by sequence; absent: 0
  bool sums = false;
  int64_t sequences = 0, pages = 0, tokens = 0;
  CacheCopy copies[2];  // `from` is the slot of the cache

  // Tokens of a sequence.
  int64_t LengthOf(const KernelArgs& args, int64_t sequence) const {
    if (!sums) return lengths.At(args, sequence);
    return lengths.At(args, sequence + 1) - lengths.At(args, sequence);
  }
};

GatherPlan PlanGather(const OpContext& op, Check& check) {
  GatherPlan plan;
  check.OneOf("cache_mode", {"Norm", "PA_NZ"});
  check.Rank("block_tables", kIndices, 2);
  check.Rank("seq_lens", kIndices, 1);
  check.Type("seq_offset", kIndices);
  for (const std::string_view port : {"key", "value"}) {
    check.RankAtLeast(port, kNumbers | kSmallFloats, 2);
  }
  if (!check.ok()) return plan;
  plan.sequences = op.in("block_tables").shape[0];
  plan.pages = op.in("block_tables").shape[1];
  plan.sums = op.attr_bool("is_seq_lens_cumsum");
  check.Elements("seq_lens", {plan.sequences + (plan.sums ? 1 : 0)});
  check.Elements("seq_offset", {plan.sequences});
  plan.tables = Integers::OfSlot(op, op.slot("block_tables"));
  plan.lengths = Integers::OfSlot(op, op.slot("seq_lens"));
  plan.offsets = Integers::Of(op, "seq_offset");
  plan.tokens = op.in("key").shape[0];
  check.That(op.in("value").shape[0] == plan.tokens, "value is {}, expected {} tokens as key has",
             op.in("value"), plan.tokens);
  plan.copies[0] = PlanCopy(op, "key", "key_cache", plan.tokens, check);
  plan.copies[1] = PlanCopy(op, "value", "value_cache", plan.tokens, check);
  for (const CacheCopy& copy : plan.copies) {
    check.That(copy.block_size > 0 || plan.tokens == 0, "the caches have pages without rows");
  }
  plan.copies[0].from = op.slot("key_cache");
  plan.copies[1].from = op.slot("value_cache");
  plan.outputs = {op.in("key"), op.in("value")};
  return plan;
}

// Row `token` of the output from the slot of a cache; zeros for a slot below 0.
void TakeFromCache(const CacheCopy& copy, const KernelArgs& args, int64_t token, int64_t slot) {
  const auto* cache = static_cast<const std::byte*>(args.in[copy.from]);
  auto* row = static_cast<std::byte*>(args.out[copy.output]) + token * copy.chunks * copy.chunk;
  for (int64_t c = 0; c < copy.chunks; ++c, row += copy.chunk) {
    const auto bytes = static_cast<size_t>(copy.chunk);
    if (slot < 0) {
      std::memset(row, 0, bytes);
    } else {
      std::memcpy(row, cache + TileOfSlot(slot, c, copy.chunks, copy.block_size) * copy.chunk,
                  bytes);
    }
  }
}

// Where a token of a sequence lies in a cache: below 0 past the table, and where that names no
// page.
int64_t SlotInPages(const GatherPlan& plan, const CacheCopy& copy, const KernelArgs& args,
                    int64_t sequence, int64_t token) {
  const int64_t first = plan.offsets.given() ? plan.offsets.At(args, sequence) : 0;
  const int64_t page = first / copy.block_size + token / copy.block_size;
  if (page < 0 || page >= plan.pages) return -1;
  const int64_t block = plan.tables.At(args, sequence * plan.pages + page);
  if (block < 0 || block >= copy.blocks) return -1;
  return block * copy.block_size + token % copy.block_size;
}

// Rows past the last sequence stay; sequences past the last row are cut.
Status RunGather(const GatherPlan& plan, const KernelArgs& args) {
  int64_t row = 0;
  for (int64_t sequence = 0; sequence < plan.sequences; ++sequence) {
    const int64_t length = plan.LengthOf(args, sequence);
    if (length < 0) {
      return Error(Code::kInvalidArgument, "{}: sequence {} has {} tokens", plan.who, sequence,
                   length);
    }
    for (int64_t token = 0; token < length && row < plan.tokens; ++token, ++row) {
      for (const CacheCopy& copy : plan.copies) {
        TakeFromCache(copy, args, row, SlotInPages(plan, copy, args, sequence, token));
      }
    }
  }
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
       .axes = "key_cache[p@slot_mapping ..!] -> key_cache[p ..]",
       .rows = RowsTrait{.rows = {"key", "value"},
                         .caches = {"key_cache", "value_cache"},
                         .positions = "slot_mapping",
                         .axis = RowAxis}}));
  registry.Add(Define<PlanGather, RunGather>(
      "GatherPaKvCache(key_cache, value_cache, block_tables, seq_lens, key, value, seq_offset?; "
      "cache_mode=\"Norm\", is_seq_lens_cumsum=true) -> key, value",
      {.in_place = {{0, 4}, {1, 5}}}));
  registry.Add(Define<PlanNormRope, RunNormRope>(
      "KvRmsNormRopeCache(kv, gamma, cos, sin, index, k_cache, ckv_cache, k_rope_scale?, "
      "c_kv_scale?, k_rope_offset?, c_kv_offset?, v?; epsilon=1e-05, cache_mode=\"Norm\", "
      "is_output_kv=false) -> k_cache, ckv_cache, k_rope, c_kv",
      {.in_place = {{0, 5}, {1, 6}}}));
}

}  // namespace npumesh
