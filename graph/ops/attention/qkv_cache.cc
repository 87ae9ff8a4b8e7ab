// The joint projection of a token, cut into the heads of query, key and value: query and key are
// rotated, key and value go into caches, quantised where these are int8.
//
//   DequantRopeQuantKvcache  dequantises an int32 projection first: (x + bias) * weight_scale *
//                            activation_scale, or with a bias of floats after the factors
//   QkvRmsNormRopeCache      normalises the heads of query and key before it rotates them
//
// What goes into an int8 cache is round(vector / scale + offset). Everything is computed in
// float32: an output is rounded once, and caches take what was not rounded. A slot below 0 is
// skipped; one past the cache is a run-time error.
#include <algorithm>
#include <array>

#include "graph/ops/attention/cache_tiles.h"
#include "graph/ops/attention/rope.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/blocked_product.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/rms_row.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// A cache of vectors, which may be cut into tiles: the same one of all rows of a block lies
// together. Otherwise a vector is one tile, and a block one row.
struct VectorCache {
  int output = -1;  // -1: none
  DataType dtype = DataType::kUndefined;
  int64_t tile = 0, block_size = 1;
  Factors scale, offset;  // one for each element, or those of one head for all
};

// Query, key or value: some heads of the projection, side by side.
struct HeadPart {
  int64_t first = 0, width = 0;  // elements of the projection
  int output = -1, copy = -1;    // where they go unquantised; -1: nowhere
  bool rotated = false;
  Factors gamma;  // of the norm of each head
  VectorCache cache;
};

struct ProjectionPlan : Planned {
  DataType from = DataType::kUndefined, to = DataType::kUndefined;
  int64_t batch = 0, rows = 0, width = 0;  // of the projection, sequence by sequence
  int64_t head_width = 0;
  double epsilon = 0;
  Integers slots;
  bool by_row = true;       // a slot for each row; otherwise the first one for each sequence
  int64_t cache_rows = -1;  // slots in all, or of a sequence
  Dequant dequant;
  RotaryTables tables;
  std::array<HeadPart, 3> parts;
  Workspace<float> x, row, factors;

  int64_t tokens() const { return batch * rows; }
  HeadPart& query() { return parts[0]; }
  HeadPart& key() { return parts[1]; }
  HeadPart& value() { return parts[2]; }
};

// ---- planning ----

// Cuts the projection; key and value are of one width.
void CutParts(Check& check, std::string_view attribute, const std::vector<int64_t>& widths,
              ProjectionPlan& plan) {
  const bool fits =
      widths.size() == 3 && std::all_of(widths.begin(), widths.end(), [&](int64_t width) {
        return width >= 0 && width <= plan.width && width % plan.head_width == 0;
      });
  check.That(fits && widths[0] + widths[1] + widths[2] == plan.width && widths[1] == widths[2],
             "{} gives query, key and value {} of {} elements; expected {} in all, in heads of {}, "
             "as many for key and value",
             attribute, Shape(widths), plan.width, plan.width, plan.head_width);
  if (!check.ok()) return;
  for (size_t i = 0, first = 0; i < widths.size(); first += static_cast<size_t>(widths[i++])) {
    plan.parts[i].first = static_cast<int64_t>(first);
    plan.parts[i].width = widths[i];
  }
  plan.query().rotated = plan.key().rotated = true;
}

void ReadFactors(const OpContext& op, Check& check, std::string_view scale, std::string_view offset,
                 int64_t head_width, HeadPart& part) {
  part.cache.scale = FactorsOf(check, op, scale, {part.width, head_width});
  part.cache.offset = FactorsOf(check, op, offset, {part.width, head_width});
  const bool quantised = part.cache.dtype == DataType::kInt8;
  check.That(quantised ? part.cache.scale.given() || part.width == 0
                       : !part.cache.scale.given() && !part.cache.offset.given(),
             "a cache of {} {}", Name(part.cache.dtype),
             quantised ? fmt::format("needs {}", scale)
                       : fmt::format("takes neither {} nor {}", scale, offset));
}

void TakeWorkspaces(const OpContext& op, ProjectionPlan& plan) {
  plan.tables = RotaryTables::Of(op, "cos", "sin", RotaryMode::kHalf, plan.scratch);
  plan.scratch.Take(plan.width, {&plan.x, &plan.row, &plan.factors});
}

// x is [B, S, H] with cos and sin [B, S, 1, D], or [B, H] with [B, D].
void ReadProjection(const OpContext& op, Check& check, ProjectionPlan& plan) {
  check.RankBetween("x", kFloats | DataType::kInt32, 2, 3);
  check.RankAtLeast("cos", kFloats, 2);
  check.SameTensor("sin", "cos");
  if (!check.ok()) return;
  const TensorType &x = op.in("x"), &cos = op.in("cos");
  const bool sequences = x.shape.rank() == 3;
  plan.from = x.dtype;
  plan.to = cos.dtype;
  plan.batch = x.shape[0];
  plan.rows = sequences ? x.shape[1] : 1;
  plan.width = x.shape.dims().back();
  plan.head_width = cos.shape.dims().back();
  const Shape table = sequences ? Shape({plan.batch, plan.rows, 1, plan.head_width})
                                : Shape({plan.batch, plan.head_width});
  check.That(cos.shape == table && plan.head_width > 0 && plan.head_width % 2 == 0,
             "cos is {}, which does not fit x {}; expected [B,S,1,D] beside [B,S,H], or [B,D] "
             "beside [B,H], with an even D",
             cos, x);
  check.That(plan.from == DataType::kInt32 || plan.from == plan.to,
             "x is {} and cos {}, expected one type", x, cos);
}

void ReadDequant(const OpContext& op, Check& check, ProjectionPlan& plan) {
  if (!check.ok() || plan.from != DataType::kInt32) return;
  plan.dequant.scale = FactorsOf(check, op, "weight_scale", {plan.width});
  check.That(plan.dequant.scale.given(), "x is int32, which needs weight_scale");
  plan.dequant.row_scale = FactorsOf(check, op, "activation_scale", {plan.tokens()});
  ReadBias(check, op, plan.dequant, {plan.width});
}

// A cache [C1, C2, N, D] of rows; contiguous: one of C2 rows for each sequence.
void ReadRowCache(const OpContext& op, Check& check, std::string_view port, int output,
                  ProjectionPlan& plan, HeadPart& part) {
  check.Rank(port, DataType::kInt8, 4);
  if (!check.ok()) return;
  const Shape& cache = op.in(port).shape;
  const int64_t heads = part.width / plan.head_width;
  check.That(
      cache[2] == heads && cache[3] == plan.head_width && (plan.by_row || cache[0] >= plan.batch),
      "{} is {}, which does not fit {} sequences of {} heads with {} elements", port, op.in(port),
      plan.batch, heads, plan.head_width);
  part.cache = {.output = output, .dtype = DataType::kInt8, .tile = part.width};
  plan.cache_rows = plan.by_row ? cache[0] * cache[1] : cache[1];
}

ProjectionPlan PlanQkvRopeQuant(const OpContext& op, Check& check) {
  ProjectionPlan plan;
  check.Supported(op.attr_string("quant_mode") == "static" && op.attr_string("layout") == "BSND",
                  "quant_mode is \"{}\" and layout \"{}\", expected static and BSND",
                  op.attr_string("quant_mode"), op.attr_string("layout"));
  plan.by_row = check.Meaning<bool>("cache_mode", {{"contiguous", false}, {"page", true}});
  ReadProjection(op, check, plan);
  ReadDequant(op, check, plan);
  if (check.ok()) CutParts(check, "size_splits", op.attr_ints("size_splits"), plan);
  check.Type("indices", kIndices);
  check.SameTensor("v_cache", "k_cache");
  check.Elements("indices", {plan.by_row ? plan.tokens() : plan.batch});
  ReadRowCache(op, check, "k_cache", 3, plan, plan.key());
  ReadRowCache(op, check, "v_cache", 4, plan, plan.value());
  ReadFactors(op, check, "scale_k", "offset_k", plan.head_width, plan.key());
  ReadFactors(op, check, "scale_v", "offset_v", plan.head_width, plan.value());
  if (!check.ok()) return plan;
  plan.slots = Integers::OfSlot(op, op.slot("indices"));
  for (HeadPart& part : plan.parts) {
    part.output = static_cast<int>(plan.outputs.size());
    const int last = op.in("x").shape.rank() - 1;
    const std::vector<int64_t> heads = {part.width / plan.head_width, plan.head_width};
    plan.outputs.push_back({plan.to, Spliced(op.in("x").shape, last, last + 1, heads)});
  }
  plan.outputs.push_back(op.in("k_cache"));
  plan.outputs.push_back(op.in("v_cache"));
  TakeWorkspaces(op, plan);
  return plan;
}

// qkv is [B * S, N * D] by the attributes qkv_size, [B, S, N, D], and head_nums; cos and sin are
// [B * S, D].
void ReadHeads(const OpContext& op, Check& check, ProjectionPlan& plan) {
  const std::vector<int64_t> size = op.attr_ints("qkv_size"), heads = op.attr_ints("head_nums");
  check.Rank("qkv", kFloats, 2);
  check.That(
      size.size() == 4 && heads.size() == 3 &&
          std::all_of(size.begin(), size.end(), [](int64_t extent) { return extent >= 0; }) &&
          Shape(size).Check().ok(),
      "qkv_size is {} and head_nums {}, expected [B,S,N,D] and the heads of query, key and "
      "value",
      Shape(size), Shape(heads));
  if (!check.ok()) return;
  const TensorType& qkv = op.in("qkv");
  plan.from = plan.to = qkv.dtype;
  plan.batch = qkv.shape[0];
  plan.rows = 1;
  plan.width = qkv.shape[1];
  plan.head_width = size[3];
  check.That(size[0] * size[1] == plan.batch && size[2] * size[3] == plan.width &&
                 plan.head_width > 0 && plan.head_width % 2 == 0,
             "qkv is {}, which does not fit qkv_size {} with an even D", qkv, Shape(size));
  for (const std::string_view port : {"cos", "sin"}) {
    check.TypeAndShape(port, qkv.dtype, {plan.batch, plan.head_width});
  }
  if (!check.ok()) return;
  const int64_t most = plan.width / plan.head_width;
  std::vector<int64_t> widths;
  for (const int64_t count : heads) {
    widths.push_back(std::clamp<int64_t>(count, -1, most + 1) * plan.head_width);
  }
  CutParts(check, "head_nums", widths, plan);
}

// A cache [blocks, N * D / e, block_size, e].
void ReadTiledCache(const OpContext& op, Check& check, std::string_view port, int output,
                    ProjectionPlan& plan, HeadPart& part) {
  check.Rank(port, TypeSet(plan.to) | DataType::kInt8, 4);
  if (!check.ok()) return;
  const Shape& cache = op.in(port).shape;
  const int64_t tile = cache[3], slots = cache[0] * cache[2];
  check.That(tile > 0 && plan.head_width % tile == 0 && cache[1] == part.width / tile &&
                 (plan.cache_rows < 0 || plan.cache_rows == slots),
             "{} is {}, expected [blocks,{}/e,block_size,e] with as many slots as the other cache",
             port, op.in(port), part.width);
  part.cache = {.output = output, .dtype = op.in(port).dtype, .tile = tile, .block_size = cache[2]};
  plan.cache_rows = slots;
}

ProjectionPlan PlanQkvNormRope(const OpContext& op, Check& check) {
  ProjectionPlan plan;
  check.Supported(op.attr_string("cache_mode") == "PA_NZ", "cache_mode is \"{}\", expected PA_NZ",
                  op.attr_string("cache_mode"));
  ReadHeads(op, check, plan);
  if (check.ok()) check.TypeAndShape("q_out", plan.to, {plan.batch, plan.query().width});
  check.Type("index", kIndices);
  check.Elements("index", {plan.batch});
  ReadTiledCache(op, check, "k_cache", 1, plan, plan.key());
  ReadTiledCache(op, check, "v_cache", 2, plan, plan.value());
  ReadFactors(op, check, "k_scale", "k_offset", plan.head_width, plan.key());
  ReadFactors(op, check, "v_scale", "v_offset", plan.head_width, plan.value());
  plan.query().gamma = FactorsOf(check, op, "q_gamma", {plan.head_width});
  plan.key().gamma = FactorsOf(check, op, "k_gamma", {plan.head_width});
  if (!check.ok()) return plan;
  check.That(plan.query().gamma.given() && plan.key().gamma.given(),
             "q_gamma or k_gamma has no elements");
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  plan.slots = Integers::OfSlot(op, op.slot("index"));
  plan.outputs = {op.in("q_out"), op.in("k_cache"), op.in("v_cache")};
  plan.query().copy = 0;
  for (HeadPart& part : plan.parts) {
    part.output = static_cast<int>(plan.outputs.size());
    plan.outputs.push_back({plan.to, {plan.batch, part.width}});
  }
  TakeWorkspaces(op, plan);
  return plan;
}

// ---- running ----

// The slot of a token; negative: none.
Result<int64_t> SlotOf(const ProjectionPlan& plan, const KernelArgs& args, int64_t token) {
  const int64_t sequence = token / plan.rows;
  int64_t slot = plan.slots.At(args, plan.by_row ? token : sequence);
  if (slot < 0) return slot;
  if (!plan.by_row) slot += token % plan.rows;
  NPUMESH_RETURN_IF_ERROR(CheckSlot(plan.who, token, slot, plan.cache_rows));
  return plan.by_row ? slot : sequence * plan.cache_rows + slot;
}

void LoadProjection(const ProjectionPlan& plan, const KernelArgs& args, int64_t token, float* x) {
  const int64_t first = token * plan.width;
  if (plan.from != DataType::kInt32)
    return LoadNumbers(plan.from, args.in[0], first, plan.width, x);
  const auto* sums = static_cast<const int32_t*>(args.in[0]) + first;
  plan.dequant.Apply(args, {token, 0, plan.width, sums, nullptr}, plan.factors(args), x);
}

// Factors of all elements of a part.
void LoadFactors(const Factors& factors, const KernelArgs& args, const HeadPart& part,
                 int64_t head_width, float* to) {
  const bool by_element = factors.count() == part.width;
  for (int64_t at = 0; at < part.width; at += head_width) {
    factors.Load(args, by_element ? at : 0, head_width, to + at);
  }
}

// Changes the vector.
void WriteToCache(const ProjectionPlan& plan, const KernelArgs& args, const HeadPart& part,
                  int64_t slot, float* vector) {
  const VectorCache& cache = part.cache;
  float* const factors = plan.factors(args);
  if (cache.scale.given()) {
    LoadFactors(cache.scale, args, part, plan.head_width, factors);
    for (int64_t i = 0; i < part.width; ++i) vector[i] /= factors[i];
  }
  if (cache.offset.given()) {
    LoadFactors(cache.offset, args, part, plan.head_width, factors);
    AddRow(vector, factors, part.width, vector);
  }
  const int64_t tiles = part.width / cache.tile;
  for (int64_t i = 0; i < tiles; ++i) {
    StoreNumbers(cache.dtype, vector + i * cache.tile, args.out[cache.output],
                 TileOfSlot(slot, i, tiles, cache.block_size) * cache.tile, cache.tile);
  }
}

void RunPart(const ProjectionPlan& plan, const KernelArgs& args, const HeadPart& part,
             int64_t token, int64_t slot) {
  if (part.width == 0) return;
  const int64_t width = plan.head_width;
  float *const x = plan.x(args) + part.first, *const row = plan.row(args);
  float* const gamma = plan.factors(args);
  if (part.gamma.given()) part.gamma.Load(args, 0, width, gamma);
  for (int64_t at = 0; at < part.width; at += width) {
    if (part.gamma.given()) RmsNormalise(x + at, gamma, plan.epsilon, width);
    if (part.rotated) {
      plan.tables.Rotate(args, token * width, x + at, row + at);
    } else {
      std::copy_n(x + at, width, row + at);
    }
  }
  for (const int output : {part.output, part.copy}) {
    if (output >= 0) StoreRow(plan.to, row, args.out[output], token * part.width, part.width);
  }
  if (part.cache.output >= 0 && slot >= 0) WriteToCache(plan, args, part, slot, row);
}

Status RunProjection(const ProjectionPlan& plan, const KernelArgs& args) {
  for (int64_t token = 0; token < plan.tokens(); ++token) {
    NPUMESH_ASSIGN_OR_RETURN(const int64_t slot, SlotOf(plan, args, token));
    LoadProjection(plan, args, token, plan.x(args));
    for (const HeadPart& part : plan.parts) RunPart(plan, args, part, token, slot);
  }
  return Status();
}

}  // namespace

void RegisterQkvCacheOps(OpRegistry& registry) {
  registry.Add(Define<PlanQkvRopeQuant, RunProjection>(
      "DequantRopeQuantKvcache(x, cos, sin, k_cache, v_cache, indices, scale_k, scale_v, "
      "offset_k?, offset_v?, weight_scale?, activation_scale?, bias?; size_splits:ints, "
      "quant_mode=\"static\", layout=\"BSND\", kv_output=false, cache_mode=\"contiguous\") -> "
      "q, k, v, k_cache, v_cache",
      {.in_place = {{3, 3}, {4, 4}}}));
  registry.Add(Define<PlanQkvNormRope, RunProjection>(
      "QkvRmsNormRopeCache(qkv, q_gamma, k_gamma, cos, sin, index, q_out, k_cache, v_cache, "
      "k_scale?, v_scale?, k_offset?, v_offset?; qkv_size:ints, head_nums:ints, epsilon=1e-06, "
      "cache_mode=\"PA_NZ\", is_output_qkv=false) -> q_out, k_cache, v_cache, "
      "q_out_before_quant, k_out_before_quant, v_out_before_quant",
      {.in_place = {{0, 6}, {1, 7}, {2, 8}}}));
}

}  // namespace npumesh
