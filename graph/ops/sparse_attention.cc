// SparseFlashAttention: attention over the positions that an indexer chose. Ops reference 5.19.
//
//   out = softmax(scale (q k^T + q_rope k_rope^T)) v over the blocks in sparse_indices
//
// Entry i of sparse_indices names positions i * sparse_block_size and on; -1 ends the list. With
// sparse_mode 3 positions behind the query's own are left out. A query without positions gives
// zeros.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"
#include "graph/ops/sequence_rows.h"

namespace npumesh {
namespace {

struct SparsePlan {
  SequenceRows queries;
  SequenceRows keys;
  DataType dtype = DataType::kUndefined;
  float scale = 1;
  bool causal = true;
  int64_t block = 1;
  int64_t count = 0;  // entries of a list
  int64_t rope = 0;   // width; 0: none
  int query_rope = -1;
  int key_rope = -1;
  bool gives_lse = false;

  int64_t group() const { return queries.heads() / keys.heads(); }
};

Status ReadAttributes(const OpContext& op, SparsePlan& plan) {
  const int64_t mode = op.attr_int("sparse_mode"), attention = op.attr_int("attention_mode");
  plan.scale = op.attr_float("scale_value");
  plan.block = op.attr_int("sparse_block_size");
  plan.causal = mode == 3;
  plan.gives_lse = op.attr_bool("return_softmax_lse");
  if ((mode != 0 && mode != 3) || plan.block < 1 || (attention != 0 && attention != 2) ||
      op.attr_int("pre_tokens") != kAllTokens || op.attr_int("next_tokens") != kAllTokens) {
    return Error(Code::kUnsupported,
                 "{}: sparse_mode {}, sparse_block_size {}, attention_mode {}, pre_tokens {} and "
                 "next_tokens {}; expected mode 0 or 3, attention 0 or 2, and no band of tokens",
                 op.Who(), mode, plan.block, attention, op.attr_int("pre_tokens"),
                 op.attr_int("next_tokens"));
  }
  if (SlotIfFed(op, "sinks") < 0) return Status();
  return Error(Code::kUnsupported, "{}: \"sinks\" is fed, which is not supported", op.Who());
}

Status ReadRope(const OpContext& op, SparsePlan& plan) {
  plan.query_rope = SlotIfFed(op, "query_rope");
  plan.key_rope = SlotIfFed(op, "key_rope");
  if (plan.query_rope < 0 && plan.key_rope < 0) return Status();
  bool fits = plan.query_rope >= 0 && plan.key_rope >= 0 && op.in(plan.query_rope).shape.rank() > 0;
  if (fits) {
    Shape query = op.in("query").shape, key = op.in("key").shape;
    plan.rope = op.in(plan.query_rope).shape.dims().back();
    query.mutable_dims().back() = key.mutable_dims().back() = plan.rope;
    fits = op.in(plan.query_rope) == TensorType{plan.dtype, query} &&
           op.in(plan.key_rope) == TensorType{plan.dtype, key};
  }
  if (fits) return Status();
  return Error(Code::kInvalidArgument,
               "{}: \"query_rope\" and \"key_rope\" must be fed both, like query {} and key {} but "
               "for their width",
               op.Who(), op.in("query").ToString(), op.in("key").ToString());
}

Result<SparsePlan> PlanSparse(const OpContext& op) {
  SparsePlan plan;
  NPUMESH_RETURN_IF_ERROR(ReadAttributes(op, plan));
  NPUMESH_ASSIGN_OR_RETURN(plan.queries, SequenceRows::Of(op, "query", "layout_query",
                                                          "actual_seq_lengths_query", "", -1));
  NPUMESH_ASSIGN_OR_RETURN(
      plan.keys, SequenceRows::Of(op, "key", "layout_kv", "actual_seq_lengths_kv", "block_table",
                                  plan.queries.batch()));
  const TensorType &q = op.in("query"), &k = op.in("key"), &indices = op.in("sparse_indices");
  plan.dtype = q.dtype;
  bool fits = IsRowType(q.dtype) && k.dtype == q.dtype && op.in("value") == k &&
              plan.keys.width() == plan.queries.width() && plan.keys.heads() > 0 &&
              plan.queries.heads() % plan.keys.heads() == 0 && indices.dtype == DataType::kInt32 &&
              indices.shape.rank() == q.shape.rank();
  if (fits) {
    plan.count = indices.shape.dims().back();
    Shape wanted = q.shape;
    wanted[q.shape.rank() - 2] = plan.keys.heads();
    wanted[q.shape.rank() - 1] = plan.count;
    fits = indices.shape == wanted;
  }
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: query is {}, key {}, value {} and sparse_indices {}; expected one float type "
                 "and width, value like key, and int32 lists for each query and head of keys",
                 op.Who(), q.ToString(), k.ToString(), op.in("value").ToString(),
                 indices.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(ReadRope(op, plan));
  return plan;
}

// softmax_max and softmax_sum are [B, Nkv, S, group] or [Nkv, T, group], empty when not asked for.
Shape StatisticsShape(const OpContext& op, const SparsePlan& plan) {
  if (!plan.gives_lse) return Shape({0});
  const Shape& q = op.in("query").shape;
  if (q.rank() == 3) return Shape({plan.keys.heads(), q[0], plan.group()});
  return Shape({q[0], plan.keys.heads(), q[1], plan.group()});
}

Status InferSparse(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const SparsePlan plan, PlanSparse(op));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.dtype, op.in("query").shape));
  for (const int port : {1, 2}) {
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, port, DataType::kFloat, StatisticsShape(op, plan)));
  }
  return Status();
}

class SparseKernel final : public Kernel {
 public:
  SparseKernel(const OpContext& op, SparsePlan plan)
      : plan_(std::move(plan)),
        indices_(op.slot("sparse_indices")),
        packed_(op.in("query").shape.rank() == 3),
        out_bytes_(op.out(0).bytes()),
        statistics_(op.out(1).shape.elements()) {}

  // A query and a key with their rotated parts, the result, and scores of all chosen positions
  // with their rows.
  uint64_t scratch_bytes() const override {
    const int64_t width = plan_.queries.width();
    const int64_t floats = 2 * (width + plan_.rope) + width + Positions();
    return static_cast<uint64_t>(floats) * sizeof(float) + 8 +
           static_cast<uint64_t>(Positions()) * sizeof(int64_t);
  }

  Status Run(const KernelArgs& args) override {
    std::fill_n(static_cast<std::byte*>(args.out[0]), out_bytes_, std::byte{0});
    for (const int port : {1, 2})
      std::fill_n(static_cast<float*>(args.out[port]), statistics_, 0.0f);
    for (int64_t b = 0; b < plan_.queries.batch(); ++b) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t queries, plan_.queries.Length(args, b));
      NPUMESH_ASSIGN_OR_RETURN(const int64_t keys, plan_.keys.Length(args, b));
      for (int64_t t = 0; t < queries; ++t) {
        const int64_t seen = KeysSeen(plan_.causal, t, queries, keys);
        for (int64_t n = 0; n < plan_.keys.heads(); ++n) {
          NPUMESH_RETURN_IF_ERROR(RunQuery(args, b, t, n, seen));
        }
      }
    }
    return Status();
  }

 private:
  int64_t Positions() const { return plan_.count * plan_.block; }

  struct Room {
    int64_t* rows;
    float* query;
    float* key;
    float* result;
    float* scores;
  };
  Room RoomIn(const KernelArgs& args) const {
    auto* rows = static_cast<int64_t*>(args.scratch);
    auto* query = reinterpret_cast<float*>(rows + Positions());
    float* key = query + plan_.queries.width() + plan_.rope;
    float* result = key + plan_.queries.width() + plan_.rope;
    return {rows, query, key, result, result + plan_.queries.width()};
  }

  // A row of a tensor and of the one that holds its rotated part.
  void Load(const KernelArgs& args, int slot, int rope, int64_t row, float* to) const {
    const int64_t width = plan_.queries.width();
    LoadNumbers(plan_.dtype, args.in[slot], row * width, width, to);
    if (plan_.rope == 0) return;
    LoadNumbers(plan_.dtype, args.in[rope], row * plan_.rope, plan_.rope, to + width);
  }

  Status RunQuery(const KernelArgs& args, int64_t b, int64_t t, int64_t n, int64_t seen) const {
    const Room room = RoomIn(args);
    NPUMESH_ASSIGN_OR_RETURN(const int64_t row, plan_.queries.Row(args, b, t));
    NPUMESH_ASSIGN_OR_RETURN(const int64_t chosen, ChooseRows(args, b, row, n, seen, room.rows));
    if (chosen == 0) return Status();
    for (int64_t g = 0; g < plan_.group(); ++g) {
      const int64_t head = row * plan_.queries.heads() + n * plan_.group() + g;
      Attend(args, head, n, chosen, room);
      StoreStatistics(args, b, t, row, n, g, room);
    }
    return Status();
  }

  // The rows of the positions that the list of a query names.
  Result<int64_t> ChooseRows(const KernelArgs& args, int64_t b, int64_t row, int64_t n,
                             int64_t seen, int64_t* rows) const {
    const auto* list = static_cast<const int32_t*>(args.in[indices_]) +
                       (row * plan_.keys.heads() + n) * plan_.count;
    int64_t chosen = 0;
    for (int64_t i = 0; i < plan_.count && list[i] >= 0; ++i) {
      const int64_t begin = list[i] * plan_.block;
      for (int64_t s = begin; s < std::min(begin + plan_.block, seen); ++s) {
        NPUMESH_ASSIGN_OR_RETURN(rows[chosen], plan_.keys.Row(args, b, s));
        ++chosen;
      }
    }
    return chosen;
  }

  void Attend(const KernelArgs& args, int64_t head, int64_t n, int64_t chosen,
              const Room& room) const {
    const int64_t width = plan_.queries.width(), both = width + plan_.rope;
    Load(args, 0, plan_.query_rope, head, room.query);
    float most = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < chosen; ++i) {
      Load(args, 1, plan_.key_rope, room.rows[i] * plan_.keys.heads() + n, room.key);
      double product = 0;
      for (int64_t d = 0; d < both; ++d) {
        product += static_cast<double>(room.query[d] * room.key[d]);
      }
      room.scores[i] = plan_.scale * static_cast<float>(product);
      most = std::max(most, room.scores[i]);
    }
    double sum = 0;
    std::fill_n(room.result, width, 0.0f);
    for (int64_t i = 0; i < chosen; ++i) {
      const float p = std::exp(room.scores[i] - most);
      sum += static_cast<double>(p);
      const int64_t row = room.rows[i] * plan_.keys.heads() + n;
      LoadNumbers(plan_.dtype, args.in[2], row * width, width, room.key);
      for (int64_t d = 0; d < width; ++d) room.result[d] += p * room.key[d];
    }
    const auto total = static_cast<float>(sum);
    for (int64_t d = 0; d < width; ++d) room.result[d] /= total;
    StoreRow(plan_.dtype, room.result, args.out[0], head * width, width);
    room.scores[0] = most;
    room.key[0] = total;
  }

  // What Attend left of its maximum and sum.
  void StoreStatistics(const KernelArgs& args, int64_t b, int64_t t, int64_t row, int64_t n,
                       int64_t g, const Room& room) const {
    if (!plan_.gives_lse) return;
    const int64_t line = packed_ ? n * plan_.queries.rows() + row
                                 : (b * plan_.keys.heads() + n) * plan_.queries.most() + t;
    const int64_t at = line * plan_.group() + g;
    static_cast<float*>(args.out[1])[at] = room.scores[0];
    static_cast<float*>(args.out[2])[at] = room.key[0];
  }

  SparsePlan plan_;
  int indices_;
  bool packed_;
  uint64_t out_bytes_;
  int64_t statistics_;
};

Result<std::unique_ptr<Kernel>> MakeSparse(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(SparsePlan plan, PlanSparse(op));
  return std::unique_ptr<Kernel>(std::make_unique<SparseKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterSparseAttentionOps(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  registry.Add({.schema = {"SparseFlashAttention",
                           {{"query"},
                            {"key"},
                            {"value"},
                            {"sparse_indices"},
                            optional("block_table"),
                            optional("actual_seq_lengths_query"),
                            optional("actual_seq_lengths_kv"),
                            optional("query_rope"),
                            optional("key_rope"),
                            optional("sinks")},
                           {{"attention_out"}, {"softmax_max"}, {"softmax_sum"}},
                           {{"scale_value", Required::kFloat},
                            {"sparse_block_size", AttrValue::Int(1)},
                            {"layout_query", AttrValue::String("BSND")},
                            {"layout_kv", AttrValue::String("BSND")},
                            {"sparse_mode", AttrValue::Int(3)},
                            {"pre_tokens", AttrValue::Int(kAllTokens)},
                            {"next_tokens", AttrValue::Int(kAllTokens)},
                            {"attention_mode", AttrValue::Int(0)},
                            {"return_softmax_lse", AttrValue::Bool(false)}}},
                .infer = InferSparse,
                .make_kernel = MakeSparse});
}

}  // namespace npumesh
