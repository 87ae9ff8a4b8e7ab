// SparseFlashAttention and KvQuantSparseFlashAttention: attention over the positions that an
// indexer chose.
//
//   out = softmax(scale (q k^T + q_rope k_rope^T)) v over the blocks in sparse_indices
//
// Entry i of sparse_indices names positions i * sparse_block_size and on; -1 ends the list. With
// sparse_mode 3 positions after that of the query are left out. A query without positions gives
// zeros.
//
// In the quantised form a row of the keys holds, one after the other, int8 numbers, the rotated
// part in the type of the query, and a float32 scale for each tile of the numbers; a row of the
// query holds both parts. A key is rounded to the type of the query, and its first part is the
// value, too: what "value" holds is not read.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "graph/ops/attention/query_keys.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/float_product.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

struct SparsePlan : QueryKeys {  // width: without the rotated part
  float scale = 1;
  int64_t block = 1;
  int64_t count = 0;                 // entries of a list
  int64_t positions = 0;             // that it may name
  int64_t key_heads = 0, group = 0;  // each serves a group of query heads
  int64_t rope = 0;                  // width; 0: none
  int query_rope = -1, key_rope = -1;
  int64_t tile = 0;  // 0: not quantised
  bool packed = false, gives_lse = false;
  int threads = 1;
  Workspace<int64_t> chosen;                     // the rows of the positions in a list
  Workspace<float> query, result, scores, sums;  // of a group of heads
  Workspace<float> keys_of, values_of;           // of those rows
  Workspace<std::byte> narrow;                   // a key in the type of the query

  int64_t whole() const { return width + rope; }
};

void ReadRope(const OpContext& op, Check& check, SparsePlan& plan) {
  plan.query_rope = SlotIfFed(op, "query_rope");
  plan.key_rope = SlotIfFed(op, "key_rope");
  if (plan.query_rope < 0 && plan.key_rope < 0) return;
  check.That(plan.query_rope >= 0 && plan.key_rope >= 0,
             "\"query_rope\" and \"key_rope\" must be fed both");
  check.RankAtLeast("query_rope", kFloats, 1);
  if (!check.ok()) return;
  plan.rope = op.in(plan.query_rope).shape.dims().back();
  check.TypeAndShape("query_rope", plan.dtype, WithLast(op.in("query").shape, plan.rope));
  check.TypeAndShape("key_rope", plan.dtype, WithLast(op.in("key").shape, plan.rope));
}

void ReadLists(const OpContext& op, Check& check, SparsePlan& plan) {
  check.RankAtLeast("sparse_indices", DataType::kInt32, 1);
  if (!check.ok()) return;
  plan.count = op.in("sparse_indices").shape.dims().back();
  check.That(!__builtin_mul_overflow(plan.count, plan.block, &plan.positions),
             "sparse_block_size {} for {} entries of sparse_indices, expected at most 2^63 - 1 "
             "positions",
             plan.block, plan.count);
  check.Shape("sparse_indices", plan.ListsOf(op, plan.count));
}

void ReadHeadsAndLists(const OpContext& op, Check& check, SparsePlan& plan) {
  plan.scale = op.attr_float("scale_value");
  plan.block = op.attr_int("sparse_block_size");
  check.Supported(plan.block > 0, "sparse_block_size is {}, expected at least 1", plan.block);
  plan.key_heads = plan.keys.heads();
  check.That(plan.key_heads > 0 && plan.heads % plan.key_heads == 0,
             "query has {} heads and key {}, expected a multiple", plan.heads, plan.key_heads);
  ReadLists(op, check, plan);
}

// Room for what a list names, once for all heads of a group.
void TakeRoom(const OpContext& op, SparsePlan& plan) {
  plan.group = plan.heads / plan.key_heads;
  plan.packed = op.in("query").shape.rank() == 3;
  const auto rows_of = [&](int64_t width) {
    int64_t elements = 0;
    const bool fits = !__builtin_mul_overflow(plan.positions, width, &elements);
    return plan.scratch.Floats(fits ? elements : std::numeric_limits<int64_t>::max());
  };
  plan.chosen = plan.scratch.Take<int64_t>(plan.positions);
  plan.scores = rows_of(plan.group);
  plan.keys_of = rows_of(plan.whole());
  plan.values_of = plan.tile > 0 ? plan.keys_of : rows_of(plan.width);
  plan.query = plan.scratch.Floats(plan.group * plan.whole());
  plan.result = plan.scratch.Floats(plan.group * plan.width);
  plan.sums = plan.scratch.Floats(plan.group);
  plan.threads = op.threads();
}

// softmax_max and softmax_sum are [B, Nkv, S, group] or [Nkv, T, group], empty when not asked for.
SparsePlan PlanSparse(const OpContext& op, Check& check) {
  SparsePlan plan;
  check.Among("attention_mode", {0, 2});
  check.NotFed({"sinks"});
  plan.Read(op, kFloats, "layout_kv", "actual_seq_lengths_kv", check);
  plan.gives_lse = op.attr_bool("return_softmax_lse");
  check.SameTensor("value", "key");
  ReadHeadsAndLists(op, check, plan);
  ReadRope(op, check, plan);
  if (!check.ok()) return plan;
  TakeRoom(op, plan);
  const TensorType& query = op.in("query");
  const int64_t lists = plan.key_heads, first = query.shape[0];
  TensorType statistics = {DataType::kFloat, {first, lists, query.shape[1], plan.group}};
  if (plan.packed) statistics.shape = {lists, first, plan.group};
  if (!plan.gives_lse) statistics.shape = {0};
  plan.outputs = {query, statistics, statistics};
  return plan;
}

// Where the parts of a quantised key lie; objects to rows of another width.
void ReadParts(const OpContext& op, Check& check, SparsePlan& plan) {
  check.Type("query", TypeSet{DataType::kFloat16, DataType::kBfloat16});
  check.Type("key", DataType::kInt8);
  check.Type("value", DataType::kInt8);
  plan.rope = op.attr_int("rope_head_dim");
  plan.tile = op.attr_int("tile_size");
  check.Supported(plan.rope >= 0 && plan.rope <= plan.width && plan.tile > 0 && plan.tile % 4 == 0,
                  "rope_head_dim is {} and tile_size {} for a query of width {}, expected part of "
                  "that width and a multiple of 4",
                  plan.rope, plan.tile, plan.width);
  if (!check.ok()) return;
  plan.width -= plan.rope;
  check.That(plan.width % plan.tile == 0,
             "query is {}, expected a width of {} more than a multiple of tile_size {}",
             op.in("query"), plan.rope, plan.tile);
  const int64_t bytes = plan.width + plan.rope * 2 + plan.width / plan.tile * 4;
  check.That(plan.keys.width() == bytes,
             "key is {}, expected rows of {}: {} numbers, {} rotated ones of two bytes, a scale of "
             "four for each {}",
             op.in("key"), bytes, plan.width, plan.rope, plan.tile);
}

SparsePlan PlanQuantisedSparse(const OpContext& op, Check& check) {
  SparsePlan plan;
  check.Only("key_quant_mode", 2);
  check.Only("value_quant_mode", 2);
  check.Only("attention_mode", 2);
  check.Only("quant_scale_repo_mode", 1);
  check.NotFed({"key_dequant_scale", "value_dequant_scale"});
  plan.ReadRows(op, "layout_kv", "actual_seq_lengths_kv", check);
  ReadParts(op, check, plan);
  ReadHeadsAndLists(op, check, plan);
  if (!check.ok()) return plan;
  TakeRoom(op, plan);
  plan.narrow = plan.scratch.Take<std::byte>(plan.width * 2);
  plan.outputs = {{plan.dtype, WithLast(op.in("query").shape, plan.width)}};
  return plan;
}

// The rows of the positions that the list of a query names; returns how many.
Result<int64_t> ChooseRows(const SparsePlan& plan, const KernelArgs& args, int64_t b, int64_t row,
                           int64_t n, int64_t seen) {
  const auto* list =
      static_cast<const int32_t*>(args.in[3]) + (row * plan.key_heads + n) * plan.count;
  int64_t* rows = plan.chosen(args);
  int64_t chosen = 0;
  for (int64_t i = 0; i < plan.count && list[i] >= 0; ++i) {
    if (list[i] >= CeilDiv(seen, plan.block)) continue;
    const int64_t begin = list[i] * plan.block;
    for (int64_t s = begin; s < std::min(begin + plan.block, seen); ++s) {
      NPUMESH_ASSIGN_OR_RETURN(rows[chosen], plan.keys.Row(args, b, s));
      ++chosen;
    }
  }
  return chosen;
}

// A row of a tensor and of the one that holds its rotated part.
void Load(const SparsePlan& plan, const KernelArgs& args, int slot, int rope, int64_t row,
          float* to) {
  LoadNumbers(plan.dtype, args.in[slot], row * plan.width, plan.width, to);
  if (plan.rope == 0) return;
  LoadNumbers(plan.dtype, args.in[rope], row * plan.rope, plan.rope, to + plan.width);
}

void LoadQuantised(const SparsePlan& plan, const KernelArgs& args, int64_t row, float* to) {
  const int64_t width = plan.width;
  const std::byte* from = static_cast<const std::byte*>(args.in[1]) + row * plan.keys.width();
  const std::byte *rotated = from + width, *scales = rotated + plan.rope * 2;
  LoadNumbers(DataType::kInt8, from, 0, width, to);
  for (int64_t begin = 0; begin < width; begin += plan.tile, scales += sizeof(float)) {
    float scale = 0;
    std::memcpy(&scale, scales, sizeof(scale));
    for (int64_t d = begin; d < begin + plan.tile; ++d) to[d] *= scale;
  }
  RoundRow(plan.dtype, to, width, plan.narrow(args), to);
  LoadNumbers(plan.dtype, rotated, 0, plan.rope, to + width);
}

// The rows of a list, of head `n` of the keys, as floats.
void Gather(const SparsePlan& plan, const KernelArgs& args, int64_t n, int64_t chosen) {
  const int64_t* rows = plan.chosen(args);
  float *key = plan.keys_of(args), *value = plan.values_of(args);
  for (int64_t i = 0; i < chosen; ++i, key += plan.whole(), value += plan.width) {
    const int64_t row = rows[i] * plan.key_heads + n;
    if (plan.tile > 0) {
      LoadQuantised(plan, args, row, key);
      continue;
    }
    Load(plan, args, 1, plan.key_rope, row, key);
    LoadNumbers(plan.dtype, args.in[2], row * plan.width, plan.width, value);
  }
}

// The query heads [first, first + group).
void LoadQueries(const SparsePlan& plan, const KernelArgs& args, int64_t first) {
  const int64_t whole = plan.whole();
  float* query = plan.query(args);
  if (plan.tile > 0) {
    LoadNumbers(plan.dtype, args.in[0], first * whole, plan.group * whole, query);
    return;
  }
  for (int64_t g = 0; g < plan.group; ++g) {
    Load(plan, args, 0, plan.query_rope, first + g, query + g * whole);
  }
}

struct Statistics {
  float most = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

// Turns products into exp(scale * product - most).
Statistics Weigh(float scale, int64_t count, float* scores) {
  Statistics statistics;
  for (int64_t i = 0; i < count; ++i) {
    scores[i] *= scale;
    statistics.most = std::max(statistics.most, scores[i]);
  }
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    scores[i] = std::exp(scores[i] - statistics.most);
    sum += static_cast<double>(scores[i]);
  }
  statistics.sum = static_cast<float>(sum);
  return statistics;
}

// A query and head `n` of the keys, from the `chosen` rows that Gather has left; `line`: of the
// statistics.
Status Attend(const SparsePlan& plan, const KernelArgs& args, int64_t row, int64_t n, int64_t line,
              int64_t chosen) {
  const int64_t width = plan.width, whole = plan.whole(), group = plan.group;
  const int64_t first = row * plan.heads + n * group;
  float *query = plan.query(args), *scores = plan.scores(args), *result = plan.result(args);
  float* sums = plan.sums(args);
  LoadQueries(plan, args, first);
  NPUMESH_RETURN_IF_ERROR(Multiply(group, chosen, whole, {query, whole},
                                   {plan.keys_of(args), whole, true}, false, scores, chosen));
  for (int64_t g = 0; g < group; ++g) {
    const Statistics statistics = Weigh(plan.scale, chosen, scores + g * chosen);
    sums[g] = statistics.sum;
    if (!plan.gives_lse) continue;
    static_cast<float*>(args.out[1])[line * group + g] = statistics.most;
    static_cast<float*>(args.out[2])[line * group + g] = statistics.sum;
  }
  const FloatMatrix values = {plan.values_of(args), plan.tile > 0 ? whole : width};
  NPUMESH_RETURN_IF_ERROR(
      Multiply(group, width, chosen, {scores, chosen}, values, false, result, width));
  for (int64_t g = 0; g < group; ++g) {
    for (int64_t d = 0; d < width; ++d) result[g * width + d] /= sums[g];
  }
  StoreRow(plan.dtype, result, args.out[0], first * width, group * width);
  return Status();
}

Status RunQuery(const SparsePlan& plan, const KernelArgs& args, int64_t b, int64_t t, int64_t n,
                int64_t seen) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t row, plan.queries.Row(args, b, t));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t chosen, ChooseRows(plan, args, b, row, n, seen));
  if (chosen == 0) return Status();
  Gather(plan, args, n, chosen);
  const int64_t line = plan.packed ? n * plan.queries.rows() + row
                                   : (b * plan.key_heads + n) * plan.queries.most() + t;
  return Attend(plan, args, row, n, line, chosen);
}

Status RunSparse(const SparsePlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  ClearOutputs(plan, args);
  return plan.ForEach(args, [&](int64_t b, int64_t t, int64_t seen) -> Status {
    for (int64_t n = 0; n < plan.key_heads; ++n) {
      NPUMESH_RETURN_IF_ERROR(RunQuery(plan, args, b, t, n, seen));
    }
    return Status();
  });
}

}  // namespace

void RegisterSparseAttentionOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kWhite);
  registry.Add(Define<PlanSparse, RunSparse>(
      "SparseFlashAttention(query, key, value, sparse_indices, block_table?, "
      "actual_seq_lengths_query?, actual_seq_lengths_kv?, query_rope?, key_rope?, sinks?; "
      "scale_value:float, sparse_block_size=1, layout_query=\"BSND\", layout_kv=\"BSND\", "
      "sparse_mode=3, pre_tokens=9223372036854775807, next_tokens=9223372036854775807, "
      "attention_mode=0, return_softmax_lse=false) -> attention_out, softmax_max, softmax_sum"));
  registry.Add(Define<PlanQuantisedSparse, RunSparse>(
      "KvQuantSparseFlashAttention(query, key, value, sparse_indices, key_dequant_scale?, "
      "value_dequant_scale?, block_table?, actual_seq_lengths_query?, actual_seq_lengths_kv?; "
      "scale_value:float, key_quant_mode:int, value_quant_mode:int, sparse_block_size=1, "
      "layout_query=\"BSND\", layout_kv=\"BSND\", sparse_mode=3, pre_tokens=9223372036854775807, "
      "next_tokens=9223372036854775807, attention_mode=0, quant_scale_repo_mode=1, tile_size=128, "
      "rope_head_dim=64) -> attention_out",
      {.precision = PrecisionClass::kKept}));
}

}  // namespace npumesh
