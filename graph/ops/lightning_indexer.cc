// LightningIndexer and QuantLightningIndexer: the positions of the keys that matter most to each
// query. Ops reference 5.19.
//
//   score[t, s] = sum over heads h of weights[t, h] * max(0, query[t, h] key[s])
//
// Each query names the positions of its highest scores, highest first, the earlier position first
// among equals; -1 where there are no more. In the quantised form products are multiplied by the
// scales of the query's head and of the key.
#include <algorithm>
#include <numeric>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"
#include "graph/ops/sequence_rows.h"

namespace npumesh {
namespace {

struct IndexerPlan {
  SequenceRows queries;
  SequenceRows keys;
  DataType dtype = DataType::kUndefined;
  Factors weights;
  Factors query_scale;  // of the quantised form
  Factors key_scale;
  int64_t count = 0;
  bool causal = true;
  bool gives_values = false;
};

bool IsQuantised(const OpContext& op) {
  return op.schema().type == "QuantLightningIndexer";
}

Status ReadAttributes(const OpContext& op, IndexerPlan& plan) {
  plan.count = op.attr_int("sparse_count");
  const int64_t mode = op.attr_int("sparse_mode");
  if (plan.count < 1 || (mode != 0 && mode != 3) || op.attr_int("pre_tokens") != kAllTokens ||
      op.attr_int("next_tokens") != kAllTokens) {
    return Error(Code::kUnsupported,
                 "{}: sparse_count {}, sparse_mode {}, pre_tokens {} and next_tokens {}; expected "
                 "at least 1, mode 0 or 3, and no band of tokens",
                 op.Who(), plan.count, mode, op.attr_int("pre_tokens"), op.attr_int("next_tokens"));
  }
  plan.causal = mode == 3;
  if (!IsQuantised(op)) {
    plan.gives_values = op.attr_bool("return_values");
    return Status();
  }
  for (const std::string_view attr :
       {"query_quant_mode", "key_quant_mode", "key_stride0", "key_dequant_scale_stride0"}) {
    const int64_t plain = attr.ends_with("stride0") ? -1 : 0;
    if (op.attr_int(attr) == plain) continue;
    return Error(Code::kUnsupported, "{}: {} is {}, expected {}", op.Who(), attr, op.attr_int(attr),
                 plain);
  }
  return Status();
}

Result<IndexerPlan> PlanIndexer(const OpContext& op) {
  IndexerPlan plan;
  NPUMESH_RETURN_IF_ERROR(ReadAttributes(op, plan));
  NPUMESH_ASSIGN_OR_RETURN(plan.queries, SequenceRows::Of(op, "query", "layout_query",
                                                          "actual_seq_lengths_query", "", -1));
  NPUMESH_ASSIGN_OR_RETURN(
      plan.keys, SequenceRows::Of(op, "key", "layout_key", "actual_seq_lengths_key", "block_table",
                                  plan.queries.batch()));
  plan.dtype = op.in("query").dtype;
  NPUMESH_ASSIGN_OR_RETURN(plan.weights, Factors::Of(op, "weights"));
  const int64_t heads = plan.queries.rows() * plan.queries.heads();
  const bool typed = IsQuantised(op) ? plan.dtype == DataType::kInt8 : IsRowType(plan.dtype);
  bool fits = typed && op.in("key").dtype == plan.dtype && plan.keys.heads() == 1 &&
              plan.keys.width() == plan.queries.width() && plan.weights.count() == heads;
  if (fits && IsQuantised(op)) {
    NPUMESH_ASSIGN_OR_RETURN(plan.query_scale, Factors::Of(op, "query_dequant_scale"));
    NPUMESH_ASSIGN_OR_RETURN(plan.key_scale, Factors::Of(op, "key_dequant_scale"));
    fits = plan.query_scale.count() == heads && plan.key_scale.count() == plan.keys.rows();
  }
  if (fits) return plan;
  return Error(Code::kInvalidArgument,
               "{}: query is {}, key {} and weights {}{}; expected one type and width, one head of "
               "keys and a weight for each head of every query{}",
               op.Who(), op.in("query").ToString(), op.in("key").ToString(),
               op.in("weights").ToString(), IsQuantised(op) ? ", with dequant scales" : "",
               IsQuantised(op) ? ", int8, and as many scales" : "");
}

Status InferIndexer(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const IndexerPlan plan, PlanIndexer(op));
  Shape indices = op.in("query").shape;
  indices[indices.rank() - 2] = 1;
  indices[indices.rank() - 1] = plan.count;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, DataType::kInt32, indices));
  if (IsQuantised(op)) return Status();
  return SetOutput(op, 1, plan.dtype, plan.gives_values ? indices : Shape({0}));
}

class IndexerKernel final : public Kernel {
 public:
  explicit IndexerKernel(IndexerPlan plan) : plan_(std::move(plan)) {}

  // Queries and weights of a token, a key, scores and their order, values.
  uint64_t scratch_bytes() const override {
    const int64_t floats = plan_.queries.heads() * (plan_.queries.width() + 1) +
                           plan_.keys.width() + plan_.keys.most() + plan_.count;
    return static_cast<uint64_t>(floats) * sizeof(float) +
           static_cast<uint64_t>(plan_.keys.most()) * sizeof(int32_t);
  }

  Status Run(const KernelArgs& args) override {
    std::fill_n(static_cast<int32_t*>(args.out[0]), plan_.queries.rows() * plan_.count, -1);
    if (plan_.gives_values) ClearValues(args);
    for (int64_t b = 0; b < plan_.queries.batch(); ++b) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t queries, plan_.queries.Length(args, b));
      NPUMESH_ASSIGN_OR_RETURN(const int64_t keys, plan_.keys.Length(args, b));
      for (int64_t t = 0; t < queries; ++t) {
        const int64_t seen = KeysSeen(plan_.causal, t, queries, keys);
        NPUMESH_RETURN_IF_ERROR(RunToken(args, b, t, seen));
      }
    }
    return Status();
  }

 private:
  struct Room {
    float* queries;
    float* weights;
    float* key;
    float* scores;
    float* values;
    int32_t* order;
  };

  Room RoomIn(const KernelArgs& args) const {
    auto* queries = static_cast<float*>(args.scratch);
    float* weights = queries + plan_.queries.heads() * plan_.queries.width();
    float* key = weights + plan_.queries.heads();
    float* scores = key + plan_.keys.width();
    float* values = scores + plan_.keys.most();
    return {queries, weights, key,
            scores,  values,  reinterpret_cast<int32_t*>(values + plan_.count)};
  }

  void ClearValues(const KernelArgs& args) const {
    const auto bytes =
        static_cast<size_t>(plan_.queries.rows() * plan_.count * BitsOf(plan_.dtype) / 8);
    std::fill_n(static_cast<std::byte*>(args.out[1]), bytes, std::byte{0});
  }

  Status RunToken(const KernelArgs& args, int64_t b, int64_t t, int64_t seen) const {
    const Room room = RoomIn(args);
    const int64_t heads = plan_.queries.heads(), width = plan_.queries.width();
    NPUMESH_ASSIGN_OR_RETURN(const int64_t row, plan_.queries.Row(args, b, t));
    LoadNumbers(plan_.dtype, args.in[0], row * heads * width, heads * width, room.queries);
    plan_.weights.Load(args, row * heads, heads, room.weights);
    if (plan_.query_scale.given()) {
      for (int64_t h = 0; h < heads; ++h) {
        const float scale = plan_.query_scale.At(args, row * heads + h);
        for (int64_t d = 0; d < width; ++d) room.queries[h * width + d] *= scale;
      }
    }
    for (int64_t s = 0; s < seen; ++s) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t key, plan_.keys.Row(args, b, s));
      LoadNumbers(plan_.dtype, args.in[1], key * width, width, room.key);
      const float scale = plan_.key_scale.given() ? plan_.key_scale.At(args, key) : 1.0f;
      room.scores[s] = Score(room) * scale;
    }
    Choose(args, row, seen, room);
    return Status();
  }

  // A scale of the key above zero may follow the sum; ReLU does not mind.
  float Score(const Room& room) const {
    const int64_t heads = plan_.queries.heads(), width = plan_.queries.width();
    float score = 0;
    for (int64_t h = 0; h < heads; ++h) {
      const float* query = room.queries + h * width;
      double product = 0;
      for (int64_t d = 0; d < width; ++d) product += static_cast<double>(query[d] * room.key[d]);
      score += room.weights[h] * std::max(static_cast<float>(product), 0.0f);
    }
    return score;
  }

  void Choose(const KernelArgs& args, int64_t row, int64_t seen, const Room& room) const {
    const int64_t count = std::min(plan_.count, seen);
    std::iota(room.order, room.order + seen, 0);
    std::partial_sort(room.order, room.order + count, room.order + seen, [&](int32_t a, int32_t b) {
      const float x = room.scores[a], y = room.scores[b];
      return x > y || (x == y && a < b);
    });
    std::copy_n(room.order, count, static_cast<int32_t*>(args.out[0]) + row * plan_.count);
    if (!plan_.gives_values) return;
    for (int64_t i = 0; i < count; ++i) room.values[i] = room.scores[room.order[i]];
    StoreRow(plan_.dtype, room.values, args.out[1], row * plan_.count, count);
  }

  IndexerPlan plan_;
};

Result<std::unique_ptr<Kernel>> MakeIndexer(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(IndexerPlan plan, PlanIndexer(op));
  return std::unique_ptr<Kernel>(std::make_unique<IndexerKernel>(std::move(plan)));
}

}  // namespace

void RegisterLightningIndexerOps(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  const std::vector<AttrSpec> common = {
      {"layout_query", AttrValue::String("BSND")}, {"layout_key", AttrValue::String("BSND")},
      {"sparse_count", AttrValue::Int(2048)},      {"sparse_mode", AttrValue::Int(3)},
      {"pre_tokens", AttrValue::Int(kAllTokens)},  {"next_tokens", AttrValue::Int(kAllTokens)}};
  OpSchema plain = {"LightningIndexer",
                    {{"query"}, {"key"}, {"weights"}},
                    {{"sparse_indices"}, {"sparse_values"}},
                    common};
  plain.attrs.push_back({"return_values", AttrValue::Bool(false)});
  OpSchema quantised = {
      "QuantLightningIndexer",
      {{"query"}, {"key"}, {"weights"}, {"query_dequant_scale"}, {"key_dequant_scale"}},
      {{"sparse_indices"}},
      {{"query_quant_mode", Required::kInt}, {"key_quant_mode", Required::kInt}}};
  quantised.attrs.insert(quantised.attrs.end(), common.begin(), common.end());
  quantised.attrs.push_back({"key_stride0", AttrValue::Int(-1)});
  quantised.attrs.push_back({"key_dequant_scale_stride0", AttrValue::Int(-1)});
  for (OpSchema* schema : {&plain, &quantised}) {
    for (const std::string_view port :
         {"actual_seq_lengths_query", "actual_seq_lengths_key", "block_table"}) {
      schema->inputs.push_back(optional(port));
    }
    registry.Add({.schema = std::move(*schema), .infer = InferIndexer, .make_kernel = MakeIndexer});
  }
}

}  // namespace npumesh
