// SparseFlashAttention: attention over the positions that an indexer chose.
//
//   out = softmax(scale (q k^T + q_rope k_rope^T)) v over the blocks in sparse_indices
//
// Entry i of sparse_indices names positions i * sparse_block_size and on; -1 ends the list. With
// sparse_mode 3 positions after that of the query are left out. A query without positions gives
// zeros.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ops/attention/family.h"
#include "graph/ops/attention/query_keys.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

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
Shape StatisticsShape(const Shape& query, const SparsePlan& plan) {
  if (!plan.gives_lse) return {0};
  if (plan.packed) return {plan.key_heads, query[0], plan.group};
  return {query[0], plan.key_heads, query[1], plan.group};
}

Result<SparsePlan> PlanSparse(const OpContext& op) {
  Check check(op);
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
  if (!check.ok()) return check.status();
  plan.group = plan.heads / plan.key_heads;
  plan.packed = query.shape.rank() == 3;
  const TensorType statistics = {DataType::kFloat, StatisticsShape(query.shape, plan)};
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
  const int64_t width = plan.width, both = width + plan.rope;
  const int64_t* rows = plan.chosen(args);
  float *query = plan.query(args), *key = plan.key(args), *scores = plan.scores(args);
  float* result = plan.result(args);
  Statistics statistics;
  Load(plan, args, 0, plan.query_rope, head, query);
  for (int64_t i = 0; i < chosen; ++i) {
    Load(plan, args, 1, plan.key_rope, rows[i] * plan.key_heads + n, key);
    double product = 0;
    for (int64_t d = 0; d < both; ++d) product += static_cast<double>(query[d] * key[d]);
    scores[i] = plan.scale * static_cast<float>(product);
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
  for (const int port : {0, 1, 2}) ClearOutput(plan, args, port);
  return plan.ForEach(args, [&](int64_t b, int64_t t, int64_t seen) -> Status {
    for (int64_t n = 0; n < plan.key_heads; ++n) {
      NPUMESH_RETURN_IF_ERROR(RunQuery(plan, args, b, t, n, seen));
    }
    return Status();
  });
}

}  // namespace

void RegisterSparseAttentionOps(OpRegistry& registry) {
  registry.Add(Define<PlanSparse, RunSparse>(
      "SparseFlashAttention(query, key, value, sparse_indices, block_table?, "
      "actual_seq_lengths_query?, actual_seq_lengths_kv?, query_rope?, key_rope?, sinks?; "
      "scale_value:float, sparse_block_size=1, layout_query=\"BSND\", layout_kv=\"BSND\", "
      "sparse_mode=3, pre_tokens=9223372036854775807, next_tokens=9223372036854775807, "
      "attention_mode=0, return_softmax_lse=false) -> attention_out, softmax_max, softmax_sum"));
}

}  // namespace npumesh
