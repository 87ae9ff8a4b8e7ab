// LightningIndexer and QuantLightningIndexer: the positions of the keys that matter most to each
// query. And SparseFlashAttention: attention over the positions that an indexer chose.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/ops/attention/family.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/rows/sequence_rows.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// The queries of an operator and the keys that each of them sees.
struct QueryKeys : Planned {
  SequenceRows queries, keys;
  DataType dtype = DataType::kUndefined;
  int64_t heads = 0, width = 0;  // of queries
  bool causal = true;            // a query does not see the keys after it

  // The ports are query and key, of one of the types; the attribute of the keys' layout and the
  // port of their lengths are `layout` and `lengths`.
  void Read(const OpContext& op, TypeSet types, std::string_view layout, std::string_view lengths,
            Check& check) {
    causal = check.Among("sparse_mode", {0, 3}) == 3;
    check.Only("pre_tokens", kAllTokens);
    check.Only("next_tokens", kAllTokens);
    queries = check.Take(
        SequenceRows::Of(op, "query", "layout_query", "actual_seq_lengths_query", "", -1));
    keys = check.Take(SequenceRows::Of(op, "key", layout, lengths, "block_table", queries.batch()));
    check.That(keys.width() == queries.width(), "query is {} and key {}, expected the same width",
               op.in("query"), op.in("key"));
    check.Type("query", types);
    check.SameType("key", "query");
    dtype = op.in("query").dtype;
    heads = queries.heads();
    width = queries.width();
  }

  // The shape of a list of `count` entries for each query and head of keys. REQUIRES: no objection.
  Shape ListsOf(const OpContext& op, int64_t count) const {
    Shape lists = WithLast(op.in("query").shape, count);
    lists[lists.rank() - 2] = keys.heads();
    return lists;
  }

  // Calls f(batch, query, keys seen) for each query, and ends at its first error.
  template <typename F>
  Status ForEach(const KernelArgs& args, F f) const {
    for (int64_t b = 0; b < queries.batch(); ++b) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t last, queries.Length(args, b));
      NPUMESH_ASSIGN_OR_RETURN(const int64_t length, keys.Length(args, b));
      for (int64_t t = 0; t < last; ++t) {
        NPUMESH_RETURN_IF_ERROR(f(b, t, KeysSeen(causal, t, last, length)));
      }
    }
    return Status();
  }
};

// ---- LightningIndexer ----
//
//   score[t, s] = sum over heads h of weights[t, h] * max(0, query[t, h] key[s])
//
// Each query names the positions of its highest scores, highest first, the earlier position first
// among equals; -1 where there are no more. In the quantised form products are multiplied by the
// scales of the query's head and of the key.

struct IndexerPlan : QueryKeys {
  Factors weights;
  Factors query_scale, key_scale;  // of the quantised form
  int64_t count = 0;
  bool gives_values = false;
  Workspace<float> query, weight, key, scores, values;  // query and weight: of all heads
  Workspace<int32_t> order;
};

void ReadQuantised(const OpContext& op, Check& check, IndexerPlan& plan) {
  check.Only("query_quant_mode", 0);
  check.Only("key_quant_mode", 0);
  check.Only("key_stride0", -1);
  check.Only("key_dequant_scale_stride0", -1);
  plan.query_scale = check.Take(Factors::Of(op, "query_dequant_scale"));
  plan.key_scale = check.Take(Factors::Of(op, "key_dequant_scale"));
  check.Elements("query_dequant_scale", {plan.queries.rows() * plan.heads});
  check.Elements("key_dequant_scale", {plan.keys.rows()});
}

template <bool kQuantised>
IndexerPlan PlanIndexer(const OpContext& op, Check& check) {
  IndexerPlan plan;
  plan.count = op.attr_int("sparse_count");
  check.Supported(plan.count > 0, "sparse_count is {}, expected at least 1", plan.count);
  const TypeSet types = kQuantised ? TypeSet(DataType::kInt8) : kFloats;
  plan.Read(op, types, "layout_key", "actual_seq_lengths_key", check);
  check.That(plan.keys.heads() == 1, "key is {}, expected one head of keys", op.in("key"));
  plan.weights = check.Take(Factors::Of(op, "weights"));
  check.Elements("weights", {plan.queries.rows() * plan.heads});
  if constexpr (kQuantised) ReadQuantised(op, check, plan);
  if (!check.ok()) return plan;
  const Shape indices = plan.ListsOf(op, plan.count);
  plan.outputs = {{DataType::kInt32, indices}};
  if constexpr (!kQuantised) {
    plan.gives_values = op.attr_bool("return_values");
    plan.outputs.push_back({plan.dtype, plan.gives_values ? indices : Shape({0})});
  }
  plan.query = plan.scratch.Floats(plan.heads * plan.width);
  plan.weight = plan.scratch.Floats(plan.heads);
  plan.key = plan.scratch.Floats(plan.width);
  plan.scores = plan.scratch.Floats(plan.keys.most());
  plan.values = plan.scratch.Floats(plan.count);
  plan.order = plan.scratch.Take<int32_t>(plan.keys.most());
  return plan;
}

void LoadQuery(const IndexerPlan& plan, const KernelArgs& args, int64_t row) {
  const int64_t heads = plan.heads, width = plan.width;
  float* query = plan.query(args);
  LoadNumbers(plan.dtype, args.in[0], row * heads * width, heads * width, query);
  plan.weights.Load(args, row * heads, heads, plan.weight(args));
  for (int64_t h = 0; plan.query_scale.given() && h < heads; ++h) {
    const float scale = plan.query_scale.At(args, row * heads + h);
    for (int64_t d = 0; d < width; ++d) query[h * width + d] *= scale;
  }
}

// The score of a key. Its scale is above zero and may follow the sum, because ReLU keeps it.
float Score(const IndexerPlan& plan, const KernelArgs& args, int64_t row) {
  float *key = plan.key(args), *weights = plan.weight(args);
  LoadNumbers(plan.dtype, args.in[1], row * plan.width, plan.width, key);
  const float* query = plan.query(args);
  float score = 0;
  for (int64_t h = 0; h < plan.heads; ++h, query += plan.width) {
    const auto product = static_cast<float>(SumOfProducts(query, key, plan.width));
    score += weights[h] * std::max(product, 0.0f);
  }
  return score * plan.key_scale.For(args, row, 1.0f);
}

// Writes the positions, and the values, of the highest of `seen` scores.
void Choose(const IndexerPlan& plan, const KernelArgs& args, int64_t row, int64_t seen) {
  const int64_t count = std::min(plan.count, seen);
  const float* scores = plan.scores(args);
  int32_t* order = plan.order(args);
  std::iota(order, order + seen, 0);
  std::partial_sort(order, order + count, order + seen, [&](int32_t a, int32_t b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  });
  std::copy_n(order, count, static_cast<int32_t*>(args.out[0]) + row * plan.count);
  if (!plan.gives_values) return;
  float* values = plan.values(args);
  for (int64_t i = 0; i < count; ++i) values[i] = scores[order[i]];
  StoreRow(plan.dtype, values, args.out[1], row * plan.count, count);
}

Status RunIndexer(const IndexerPlan& plan, const KernelArgs& args) {
  std::fill_n(static_cast<int32_t*>(args.out[0]), plan.queries.rows() * plan.count, -1);
  if (plan.gives_values) ClearOutput(plan, args, 1);
  return plan.ForEach(args, [&](int64_t b, int64_t t, int64_t seen) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const int64_t row, plan.queries.Row(args, b, t));
    LoadQuery(plan, args, row);
    for (int64_t s = 0; s < seen; ++s) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t key, plan.keys.Row(args, b, s));
      plan.scores(args)[s] = Score(plan, args, key);
    }
    Choose(plan, args, row, seen);
    return Status();
  });
}

// ---- SparseFlashAttention ----
//
//   out = softmax(scale (q k^T + q_rope k_rope^T)) v over the blocks in sparse_indices
//
// Entry i of sparse_indices names positions i * sparse_block_size and on; -1 ends the list. With
// sparse_mode 3 positions after that of the query are left out. A query without positions gives
// zeros.

struct SparsePlan : QueryKeys {
  float scale = 1;
  int64_t block = 1;
  int64_t count = 0;                 // entries of a list
  int64_t positions = 0;             // that it may name
  int64_t key_heads = 0, group = 0;  // each serves a group of query heads
  int64_t rope = 0;                  // width; 0: none
  int query_rope = -1, key_rope = -1;
  bool packed = false, gives_lse = false;
  Workspace<int64_t> chosen;  // the rows of the positions in a list
  Workspace<float> query, key, result, scores;
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

// softmax_max and softmax_sum are [B, Nkv, S, group] or [Nkv, T, group], empty when not asked for.
SparsePlan PlanSparse(const OpContext& op, Check& check) {
  SparsePlan plan;
  plan.block = op.attr_int("sparse_block_size");
  check.Supported(plan.block > 0, "sparse_block_size is {}, expected at least 1", plan.block);
  check.Among("attention_mode", {0, 2});
  check.NotFed({"sinks"});
  plan.Read(op, kFloats, "layout_kv", "actual_seq_lengths_kv", check);
  plan.scale = op.attr_float("scale_value");
  plan.gives_lse = op.attr_bool("return_softmax_lse");
  const TensorType& query = op.in("query");
  check.SameTensor("value", "key");
  plan.key_heads = plan.keys.heads();
  check.That(plan.key_heads > 0 && plan.heads % plan.key_heads == 0,
             "query has {} heads and key {}, expected a multiple", plan.heads, plan.key_heads);
  ReadLists(op, check, plan);
  ReadRope(op, check, plan);
  if (!check.ok()) return plan;
  plan.group = plan.heads / plan.key_heads;
  plan.packed = query.shape.rank() == 3;
  const int64_t lists = plan.key_heads, first = query.shape[0];
  TensorType statistics = {DataType::kFloat, {first, lists, query.shape[1], plan.group}};
  if (plan.packed) statistics.shape = {lists, first, plan.group};
  if (!plan.gives_lse) statistics.shape = {0};
  plan.outputs = {query, statistics, statistics};
  plan.chosen = plan.scratch.Take<int64_t>(plan.positions);
  plan.scratch.Take(plan.width + plan.rope, {&plan.query, &plan.key});
  plan.result = plan.scratch.Floats(plan.width);
  plan.scores = plan.scratch.Floats(plan.positions);
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

struct Statistics {
  float most = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

// The output of one head of a query, from its chosen rows of head `n` of the keys.
Statistics Attend(const SparsePlan& plan, const KernelArgs& args, int64_t head, int64_t n,
                  int64_t chosen) {
  const int64_t width = plan.width;
  const int64_t* rows = plan.chosen(args);
  float *query = plan.query(args), *key = plan.key(args), *scores = plan.scores(args);
  float* result = plan.result(args);
  Statistics statistics;
  Load(plan, args, 0, plan.query_rope, head, query);
  for (int64_t i = 0; i < chosen; ++i) {
    Load(plan, args, 1, plan.key_rope, rows[i] * plan.key_heads + n, key);
    scores[i] = plan.scale * static_cast<float>(SumOfProducts(query, key, width + plan.rope));
    statistics.most = std::max(statistics.most, scores[i]);
  }
  double sum = 0;
  std::fill_n(result, width, 0.0f);
  for (int64_t i = 0; i < chosen; ++i) {
    const float p = std::exp(scores[i] - statistics.most);
    sum += static_cast<double>(p);
    const int64_t row = rows[i] * plan.key_heads + n;
    LoadNumbers(plan.dtype, args.in[2], row * width, width, key);
    for (int64_t d = 0; d < width; ++d) result[d] += p * key[d];
  }
  statistics.sum = static_cast<float>(sum);
  for (int64_t d = 0; d < width; ++d) result[d] /= statistics.sum;
  StoreRow(plan.dtype, result, args.out[0], head * width, width);
  return statistics;
}

Status RunQuery(const SparsePlan& plan, const KernelArgs& args, int64_t b, int64_t t, int64_t n,
                int64_t seen) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t row, plan.queries.Row(args, b, t));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t chosen, ChooseRows(plan, args, b, row, n, seen));
  if (chosen == 0) return Status();
  const int64_t line = plan.packed ? n * plan.queries.rows() + row
                                   : (b * plan.key_heads + n) * plan.queries.most() + t;
  for (int64_t g = 0; g < plan.group; ++g) {
    const int64_t head = row * plan.heads + n * plan.group + g;
    const Statistics statistics = Attend(plan, args, head, n, chosen);
    if (!plan.gives_lse) continue;
    static_cast<float*>(args.out[1])[line * plan.group + g] = statistics.most;
    static_cast<float*>(args.out[2])[line * plan.group + g] = statistics.sum;
  }
  return Status();
}

Status RunSparse(const SparsePlan& plan, const KernelArgs& args) {
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
  registry.Add(Define<PlanIndexer<false>, RunIndexer>(
      "LightningIndexer(query, key, weights, actual_seq_lengths_query?, actual_seq_lengths_key?, "
      "block_table?; layout_query=\"BSND\", layout_key=\"BSND\", sparse_count=2048, "
      "sparse_mode=3, pre_tokens=9223372036854775807, next_tokens=9223372036854775807, "
      "return_values=false) -> sparse_indices, sparse_values"));
  registry.Add(Define<PlanIndexer<true>, RunIndexer>(
      "QuantLightningIndexer(query, key, weights, query_dequant_scale, key_dequant_scale, "
      "actual_seq_lengths_query?, actual_seq_lengths_key?, block_table?; query_quant_mode:int, "
      "key_quant_mode:int, layout_query=\"BSND\", layout_key=\"BSND\", sparse_count=2048, "
      "sparse_mode=3, pre_tokens=9223372036854775807, next_tokens=9223372036854775807, "
      "key_stride0=-1, key_dequant_scale_stride0=-1) -> sparse_indices",
      {.precision = PrecisionClass::kKept}));
  registry.Add(Define<PlanSparse, RunSparse>(
      "SparseFlashAttention(query, key, value, sparse_indices, block_table?, "
      "actual_seq_lengths_query?, actual_seq_lengths_kv?, query_rope?, key_rope?, sinks?; "
      "scale_value:float, sparse_block_size=1, layout_query=\"BSND\", layout_kv=\"BSND\", "
      "sparse_mode=3, pre_tokens=9223372036854775807, next_tokens=9223372036854775807, "
      "attention_mode=0, return_softmax_lse=false) -> attention_out, softmax_max, softmax_sum"));
}

}  // namespace npumesh
