// LightningIndexer and QuantLightningIndexer: the positions of the keys that matter most to each
// query.
//
//   score[t, s] = sum over heads h of weights[t, h] * max(0, query[t, h] key[s])
//
// Each query names the positions of its highest scores, highest first, the earlier position first
// among equals; -1 where there are no more. In the quantised form products are multiplied by the
// scales of the query's head and of the key.
#include <algorithm>
#include <numeric>

#include "graph/ops/attention/query_keys.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/product/float_product.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// Keys that are multiplied at once.
constexpr int64_t kKeys = 256;

struct IndexerPlan : QueryKeys {
  Factors weights;
  Factors query_scale, key_scale;  // of the quantised form
  int64_t count = 0;
  bool gives_values = false;
  int threads = 1;
  Workspace<float> query, weight;      // of all heads
  Workspace<float> keys_of, products;  // of a block of keys: [keys, width], [heads, keys]
  Workspace<float> scores, values;
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
  plan.keys_of = plan.scratch.Floats(kKeys * plan.width);
  plan.products = plan.scratch.Floats(plan.heads * kKeys);
  plan.threads = op.threads();
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

// The scores of the keys [first, first + count) of a sequence. A key's scale is above zero and may
// follow the sum, because ReLU keeps it.
Status Score(const IndexerPlan& plan, const KernelArgs& args, int64_t b, int64_t first,
             int64_t count) {
  const int64_t width = plan.width;
  float *keys = plan.keys_of(args), *products = plan.products(args);
  float* scores = plan.scores(args) + first;
  for (int64_t s = 0; s < count; ++s) {
    NPUMESH_ASSIGN_OR_RETURN(const int64_t row, plan.keys.Row(args, b, first + s));
    LoadNumbers(plan.dtype, args.in[1], row * width, width, keys + s * width);
    scores[s] = plan.key_scale.For(args, row, 1.0f);
  }
  NPUMESH_RETURN_IF_ERROR(Multiply(plan.heads, count, width, {plan.query(args), width},
                                   {keys, width, true}, false, products, count));
  const float* weights = plan.weight(args);
  for (int64_t s = 0; s < count; ++s) {
    float score = 0;
    for (int64_t h = 0; h < plan.heads; ++h) {
      score += weights[h] * std::max(products[h * count + s], 0.0f);
    }
    scores[s] *= score;
  }
  return Status();
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
  const ThreadCount threads(plan.threads);
  std::fill_n(static_cast<int32_t*>(args.out[0]), plan.queries.rows() * plan.count, -1);
  if (plan.gives_values) ClearOutput(plan, args, 1);
  return plan.ForEach(args, [&](int64_t b, int64_t t, int64_t seen) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const int64_t row, plan.queries.Row(args, b, t));
    LoadQuery(plan, args, row);
    for (int64_t first = 0; first < seen; first += kKeys) {
      NPUMESH_RETURN_IF_ERROR(Score(plan, args, b, first, std::min(kKeys, seen - first)));
    }
    Choose(plan, args, row, seen);
    return Status();
  });
}

}  // namespace

void RegisterLightningIndexerOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kWhite);
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
}

}  // namespace npumesh
