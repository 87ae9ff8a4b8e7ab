// FusedInferAttentionScore, PromptFlashAttention and IncreFlashAttention. And AttentionUpdate,
// which joins what ranks that share a sequence have computed of the same attention.
//
// The interfaces of the first three are subsets of the first one's, so one function reads them all
// and asks for what the operator at hand has.
#include <algorithm>
#include <cmath>

#include "graph/ops/attention/attention.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh::attention {
namespace {

bool HasPort(const OpContext& op, std::string_view port) {
  return !PortOf(op, port).empty();
}

bool HasAttr(const OpContext& op, std::string_view name) {
  const std::vector<AttrSpec>& attrs = op.schema().attrs;
  return std::any_of(attrs.begin(), attrs.end(),
                     [&](const AttrSpec& spec) { return spec.name == name; });
}

int64_t AttrOr(const OpContext& op, std::string_view name, int64_t otherwise) {
  return HasAttr(op, name) ? op.attr_int(name) : otherwise;
}

// Only the first interface has these. Its key_rope_antiquant_scale is reserved: it has no effect,
// on a device either.
void RefuseUnsupported(const OpContext& op, Check& check) {
  if (!HasPort(op, "dequant_scale_query")) return;
  check.NotFed({"dequant_scale_query"});
  check.Only("query_quant_mode", 0);
  check.Only("pse_type", 0);  // only types 2 and 3 read q_start_idx and kv_start_idx
}

// Where the factor of an element lies. `first` and `count` cut K's or V's part out of a tensor that
// holds both. The modes: 0 one for each element of a row, 1 by batch and position, 2 by head, 3 by
// batch, head and position, 4 by block and row, 5 by block, head and row, 6 by batch, head,
// position and group of 32 elements. In modes 0 to 5 a single factor is for all.
void SetAntiquant(int64_t mode, const Factors& scale, const Factors& offset, int64_t first,
                  int64_t count, const AttentionPlan& plan, Check& check, KeyValue& to) {
  const int64_t rows = to.rows, heads = std::max<int64_t>(to.heads, 1);
  const int64_t batches = std::max<int64_t>(plan.batches, 1);
  const int64_t by_batch = count / batches, by_head = by_batch / heads;
  const int64_t groups = (to.width + 31) / 32;
  const bool by_page = mode == 4 || mode == 5;
  const auto set = [&](int64_t expected, const Antiquant& places) {
    to.antiquant = places;
    to.antiquant.scale = scale;
    to.antiquant.offset = offset;
    to.antiquant.first = first;
    check.That(expected == count && (!offset.given() || offset.count() == scale.count()) &&
                   (!by_page || plan.paged()),
               "antiquant mode {} with {} scales and {} offsets for K or V of {} heads, {} rows "
               "and head size {}",
               mode, count, offset.count(), to.heads, rows, to.width);
  };
  if (count == 1 && mode >= 0 && mode <= 5) return set(1, {});
  switch (mode) {
    case 0:
      return set(to.heads * to.width, {.by_head = to.width, .group = 1});
    case 1:
      return set(batches * std::max(by_batch, rows), {.by_batch = by_batch, .by_position = 1});
    case 2:
      return set(to.heads, {.by_head = 1});
    case 3:
      return set(batches * heads * std::max(by_head, rows),
                 {.by_batch = by_head * heads, .by_head = by_head, .by_position = 1});
    case 4:
      return set(to.batches * rows, {.by_block = rows, .by_row = 1});
    case 5:
      return set(to.batches * rows * to.heads,
                 {.by_head = rows, .by_block = rows * heads, .by_row = 1});
    case 6:
      return set(batches * rows * groups * heads, {.by_batch = rows * groups * heads,
                                                   .by_head = rows * groups,
                                                   .by_position = groups,
                                                   .group = 32});
    default:
      return set(0, {});
  }
}

void ReadAntiquant(const OpContext& op, Check& check, AttentionPlan& plan) {
  const auto factors = [&](const std::string& port) {
    return check.Take(Factors::Of(op, PortOf(op, port)));
  };
  const Factors both = factors("antiquant_scale"), offsets = factors("antiquant_offset");
  if (both.given()) {
    const int64_t half = both.count() / 2, mode = AttrOr(op, "antiquant_mode", 0);
    SetAntiquant(mode, both, offsets, 0, half, plan, check, plan.k);
    SetAntiquant(mode, both, offsets, half, half, plan, check, plan.v);
  }
  for (const auto& [name, to] : {std::pair<std::string, KeyValue*>{"key", &plan.k},
                                 std::pair<std::string, KeyValue*>{"value", &plan.v}}) {
    const Factors scale = factors(name + "_antiquant_scale");
    const Factors offset = factors(name + "_antiquant_offset");
    if (!scale.given()) continue;
    SetAntiquant(AttrOr(op, name + "_antiquant_mode", 0), scale, offset, 0, scale.count(), plan,
                 check, *to);
  }
  check.That(!kQuantised.Contains(plan.k.dtype) || plan.quantised || plan.k.antiquant.scale.given(),
             "key is {} and query {}; the scales of key are missing", Name(plan.k.dtype),
             Name(plan.q.dtype));
}

// Scales of the path where query, key and value are int8, and those of an int8 output.
void ReadQuantisation(const OpContext& op, Check& check, AttentionPlan& plan) {
  const auto factors = [&](std::string_view port, std::string_view other = {}) {
    return check.Take(Factors::Of(op, HasPort(op, port) ? port : other));
  };
  plan.out_scale = factors("quant_scale2");
  plan.out_offset = factors("quant_offset2");
  const int64_t channels = plan.heads * plan.v.width;
  for (const Factors* scale : {&plan.out_scale, &plan.out_offset}) {
    check.That(!scale->given() || scale->count() == 1 || scale->count() == channels,
               "quant_scale2 and quant_offset2 need one element or {}, seen {}", channels,
               scale->count());
  }
  plan.quantised = plan.q.dtype == DataType::kInt8;
  plan.out.dtype = plan.out_scale.given() ? DataType::kInt8
                   : plan.quantised       ? DataType::kFloat16
                                          : plan.q.dtype;
  if (!plan.quantised) return;
  plan.score_scale = factors("deq_scale1", "dequant_scale1");
  plan.probability_scale = factors("quant_scale1");
  plan.sum_scale = factors("deq_scale2", "dequant_scale2");
  check.That(plan.k.dtype == DataType::kInt8 && plan.v.dtype == DataType::kInt8 &&
                 plan.score_scale.given() && plan.probability_scale.given() &&
                 plan.sum_scale.given(),
             "query is int8; then key and value must be int8 (seen {}, {}), and the two "
             "dequantisation scales and quant_scale1 must be given",
             Name(plan.k.dtype), Name(plan.v.dtype));
}

void ReadInferTensors(const OpContext& op, std::string_view letters, Check& check,
                      AttentionPlan& plan) {
  const int64_t given = op.attr_int("num_key_value_heads");
  const int64_t heads = given == 0 ? plan.heads : given;
  plan.block_table = SlotIfFed(op, PortOf(op, "block_table"));
  ReadTensors(op, letters, heads, plan.paged(), check, plan);
  if (SlotIfFed(op, PortOf(op, "key_shared_prefix")) < 0) return;
  plan.k_prefix = ReadKeyValue(op, "key_shared_prefix", letters, heads, check);
  plan.v_prefix = ReadKeyValue(op, "value_shared_prefix", letters, heads, check);
  plan.prefix_length = ReadLengths(op, "actual_shared_prefix_len", false, check);
}

void ReadAllLengths(const OpContext& op, Check& check, AttentionPlan& plan) {
  const bool packed = plan.q.packed, decode_only = !HasPort(op, "actual_seq_lengths_kv");
  if (!decode_only) {
    plan.q_lengths =
        ReadLengths(op, "actual_seq_lengths", packed, check, PortOf(op, "query_padding_size"));
  }
  plan.kv_lengths = ReadLengths(op, decode_only ? "actual_seq_lengths" : "actual_seq_lengths_kv",
                                packed && !plan.paged(), check, PortOf(op, "kv_padding_size"));
  plan.batches = SequencesOf(plan);
}

void CheckCaches(const OpContext& op, Check& check, AttentionPlan& plan) {
  if (plan.paged()) {
    check.Rank("block_table", DataType::kInt32, 2);
    const Shape& table = op.in(plan.block_table).shape;
    check.That(plan.kv_lengths.given(), "block_table needs key lengths beside it");
    check.That(table.rank() == 2 && table[0] == plan.batches,
               "block_table is {}, expected a line for each of {} sequences", table, plan.batches);
    if (table.rank() == 2) plan.table_width = table[1];
  }
  if (!plan.k_prefix.given()) return;
  const KeyValue &keys = plan.k_prefix, &values = plan.v_prefix;
  check.That(!plan.k_rope.given() && !plan.k.packed && keys.width == plan.k.width &&
                 values.width == plan.v.width && keys.heads == plan.k.heads &&
                 keys.rows == values.rows && keys.batches == 1,
             "the shared prefix does not fit query and key");
}

// The position shift, and which columns a row sees. A single row sees all that its mask shows it.
void ReadScoreRules(const OpContext& op, Check& check, AttentionPlan& plan) {
  const int64_t mode = AttrOr(op, "sparse_mode", 0);
  const bool one_row = plan.q.rows == 1 && !plan.q.packed;
  plan.pre_tokens = AttrOr(op, "pre_tokens", INT32_MAX);
  plan.next_tokens = AttrOr(op, "next_tokens", INT32_MAX);
  plan.pse = ReadScores(op, "pse_shift", plan, check);
  if (!one_row || mode <= 1) ReadBand(op, mode, check, plan);
  if (one_row) plan.band = Band::kAll;
}

AttentionPlan PlanInference(const OpContext& op, Check& check) {
  AttentionPlan plan;
  RefuseUnsupported(op, check);
  const Layouts layouts = LayoutsOf(op, check);
  if (!check.ok()) return plan;
  plan.threads = op.threads();
  plan.heads = op.attr_int("num_heads");
  plan.scale = op.attr_float(HasAttr(op, "scale") ? "scale" : "scale_value");
  ReadInferTensors(op, layouts.in, check, plan);
  ReadAllLengths(op, check, plan);
  if (!check.ok()) return plan;
  CheckCaches(op, check, plan);
  ReadScoreRules(op, check, plan);
  ReadQuantisation(op, check, plan);
  ReadAntiquant(op, check, plan);
  plan.sink = check.Take(Factors::Of(op, PortOf(op, "learnable_sink")));
  Complete(op, layouts.out, check, plan);
  if (HasAttr(op, "softmax_lse_flag")) {
    if (op.attr_bool("softmax_lse_flag")) plan.lse_port = 1;
    plan.outputs.push_back(plan.lse_port < 0 ? TensorType{DataType::kFloat, {1}}
                                             : StatisticsOf(plan, 1));
  }
  return plan;
}

// ---- AttentionUpdate ----

// The lse of a part that has seen no key.
constexpr double kNothing = -std::numeric_limits<double>::infinity();

struct UpdatePlan : Planned {
  int parts = 0;
  int lse = 0;   // slot of the first
  InputRows go;  // the first
  Workspace<float> sum, row;
};

// Each lse is [rows], each go [rows, D]; the attribute sp counts both.
UpdatePlan PlanUpdate(const OpContext& op, Check& check) {
  UpdatePlan plan;
  plan.parts = op.count("lse");
  check.That(plan.parts > 0 && op.count("go") == plan.parts && op.attr_int("sp") == plan.parts,
             "{} tensors lse and {} go with sp {}, expected as many of each", plan.parts,
             op.count("go"), op.attr_int("sp"));
  if (!check.ok()) return plan;
  const TensorType &lse = op.in("lse"), &go = op.in("go");
  check.Type("lse", DataType::kFloat);
  check.RankAtLeast("go", kFloats, 1);
  plan.lse = op.slot("lse");
  plan.go = InputRows::Of(check, op, "go");
  bool fits = plan.go.count == lse.shape.elements();
  for (int i = 1; i < plan.parts; ++i) {
    fits = fits && op.in(plan.lse + i) == lse && op.in(op.slot("go") + i) == go;
  }
  check.That(fits,
             "the first lse is {} and the first go {}, expected [rows], [rows,D] and the same"
             " types in all parts",
             lse, go);
  plan.outputs = {go, lse};
  plan.scratch.Take(plan.go.width, {&plan.sum, &plan.row});
  return plan;
}

double LseAt(const UpdatePlan& plan, const KernelArgs& args, int part, int64_t r) {
  return static_cast<double>(static_cast<const float*>(args.in[plan.lse + part])[r]);
}

double JoinedLse(const UpdatePlan& plan, const KernelArgs& args, int64_t r) {
  double most = kNothing;
  for (int i = 0; i < plan.parts; ++i) most = std::max(most, LseAt(plan, args, i, r));
  if (most == kNothing) return kNothing;
  double sum = 0;
  for (int i = 0; i < plan.parts; ++i) sum += std::exp(LseAt(plan, args, i, r) - most);
  return most + std::log(sum);
}

Status RunUpdate(const UpdatePlan& plan, const KernelArgs& args) {
  const auto& [first, dtype, rows, width] = plan.go;
  float *sum = plan.sum(args), *row = plan.row(args);
  for (int64_t r = 0; r < rows; ++r) {
    const double joined = JoinedLse(plan, args, r);
    std::fill_n(sum, width, 0.0f);
    for (int i = 0; i < plan.parts; ++i) {
      const double lse = LseAt(plan, args, i, r);
      if (lse == kNothing) continue;
      const auto weight = static_cast<float>(std::exp(lse - joined));
      LoadNumbers(dtype, args.in[first + i], r * width, width, row);
      for (int64_t d = 0; d < width; ++d) sum[d] += weight * row[d];
    }
    StoreRow(dtype, sum, args.out[0], r * width, width);
    static_cast<float*>(args.out[1])[r] = static_cast<float>(joined);
  }
  return Status();
}

}  // namespace
}  // namespace npumesh::attention

namespace npumesh {

void RegisterInferAttentionOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kWhite);
  for (const std::string_view signature :
       {"FusedInferAttentionScore(query, key..., value..., pse_shift?, atten_mask?, "
        "actual_seq_lengths?, actual_seq_lengths_kv?, dequant_scale1?, quant_scale1?, "
        "dequant_scale2?, quant_scale2?, quant_offset2?, antiquant_scale?, antiquant_offset?, "
        "block_table?, query_padding_size?, kv_padding_size?, key_antiquant_scale?, "
        "key_antiquant_offset?, value_antiquant_scale?, value_antiquant_offset?, "
        "key_shared_prefix?, value_shared_prefix?, actual_shared_prefix_len?, query_rope?, "
        "key_rope?, key_rope_antiquant_scale?, dequant_scale_query?, learnable_sink?, "
        "q_start_idx?, kv_start_idx?; num_heads:int, scale=1.0, pre_tokens=2147483647, "
        "next_tokens=2147483647, input_layout=\"BSH\", num_key_value_heads=0, sparse_mode=0, "
        "inner_precise=0, block_size=0, antiquant_mode=0, softmax_lse_flag=false, "
        "key_antiquant_mode=0, value_antiquant_mode=0, query_quant_mode=0, pse_type=0, "
        "out_dtype=0) -> attention_out, softmax_lse",
        "PromptFlashAttention(query, key, value, pse_shift?, atten_mask?, actual_seq_lengths?, "
        "actual_seq_lengths_kv?, deq_scale1?, quant_scale1?, deq_scale2?, quant_scale2?, "
        "quant_offset2?; num_heads:int, scale_value=1.0, pre_tokens=214748647, next_tokens=0, "
        "input_layout=\"BSH\", num_key_value_heads=1, sparse_mode=0, inner_precise=1) "
        "-> attention_out",
        "IncreFlashAttention(query, key..., value..., pse_shift?, atten_mask?, "
        "actual_seq_lengths?, dequant_scale1?, quant_scale1?, dequant_scale2?, quant_scale2?, "
        "quant_offset2?, antiquant_scale?, antiquant_offset?, block_table?, kv_padding_size?; "
        "num_heads:int, scale_value=1.0, input_layout=\"BSH\", num_key_value_heads=1, "
        "block_size=0, inner_precise=1) -> attention_out"}) {
    registry.Add(Define<attention::PlanInference, attention::RunAttention>(
        signature,
        {.heads = HeadsTrait{
             .heads = "num_heads",
             .shared_heads = "num_key_value_heads",
             .by_head = {"pse_shift"},
             .of_all = {"atten_mask", "actual_seq_lengths", "actual_seq_lengths_kv", "block_table",
                        "query_padding_size", "kv_padding_size", "q_start_idx", "kv_start_idx"},
             .pages = "block_table"}}));
  }
  registry.Add(Define<attention::PlanUpdate, attention::RunUpdate>(
      "AttentionUpdate(lse..., go...; update_type:int, sp:int) -> output, lse_m"));
}

}  // namespace npumesh
