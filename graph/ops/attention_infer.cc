// FusedInferAttentionScore, PromptFlashAttention and IncreFlashAttention. Ops reference 5.11.
//
// Their interfaces are subsets of the first one's, so one function reads all three and asks for
// what the operator at hand has.
#include <algorithm>

#include "graph/ops/attention.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh::attention {
namespace {

bool HasPort(const OpContext& op, std::string_view port) {
  const std::vector<PortSpec>& inputs = op.schema().inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const PortSpec& spec) { return spec.name == port; });
}

bool HasAttr(const OpContext& op, std::string_view name) {
  const std::vector<AttrSpec>& attrs = op.schema().attrs;
  return std::any_of(attrs.begin(), attrs.end(),
                     [&](const AttrSpec& spec) { return spec.name == name; });
}

// `port` if the operator has it; otherwise nothing, which reads as an input that is not fed.
std::string_view Port(const OpContext& op, std::string_view port) {
  return HasPort(op, port) ? port : std::string_view();
}

int64_t AttrOr(const OpContext& op, std::string_view name, int64_t otherwise) {
  return HasAttr(op, name) ? op.attr_int(name) : otherwise;
}

Status RefuseUnsupported(const OpContext& op) {
  for (const std::string_view port :
       {"dequant_scale_query", "key_rope_antiquant_scale", "q_start_idx", "kv_start_idx"}) {
    if (SlotIfFed(op, Port(op, port)) >= 0) {
      return Error(Code::kUnsupported, "{}: the input \"{}\" is not supported", op.Who(), port);
    }
  }
  for (const std::string_view attr : {"query_quant_mode", "pse_type"}) {
    if (AttrOr(op, attr, 0) != 0) {
      return Error(Code::kUnsupported, "{}: {} {} is not supported, expected 0", op.Who(), attr,
                   op.attr_int(attr));
    }
  }
  return Status();
}

// Where the factor of an element lies: antiquant modes of ops reference 5.11. `first` and `count`
// cut K's or V's part out of a tensor that holds both.
Status SetAntiquant(const OpContext& op, int64_t mode, const Factors& scale, const Factors& offset,
                    int64_t first, int64_t count, const AttentionPlan& plan, KeyValue& to) {
  Antiquant& antiquant = to.antiquant;
  antiquant.scale = scale;
  antiquant.offset = offset;
  antiquant.first = first;
  const int64_t rows = to.parts[0].rows;
  const int64_t pages = to.blocks * rows;
  int64_t expected = 0;
  switch (mode) {
    case 0:
      expected = count == 1 ? 1 : to.heads * to.width;
      antiquant.by_head = count == 1 ? 0 : to.width;
      antiquant.group = count == 1 ? 0 : 1;
      break;
    case 1:
      antiquant.by_batch = count / plan.batches;
      antiquant.by_position = 1;
      expected = std::max(count / plan.batches, rows) * plan.batches;
      break;
    case 2:
      antiquant.by_head = 1;
      expected = to.heads;
      break;
    case 3:
      antiquant.by_head = count / (plan.batches * to.heads);
      antiquant.by_batch = antiquant.by_head * to.heads;
      antiquant.by_position = 1;
      expected = plan.batches * to.heads * std::max(antiquant.by_head, rows);
      break;
    case 4:
      antiquant.by_block = rows;
      antiquant.by_row = 1;
      expected = pages;
      break;
    case 5:
      antiquant.by_block = rows * to.heads;
      antiquant.by_head = rows;
      antiquant.by_row = 1;
      expected = pages * to.heads;
      break;
    case 6:
      antiquant.group = 32;
      antiquant.by_position = (to.width + 31) / 32;
      antiquant.by_head = rows * antiquant.by_position;
      antiquant.by_batch = antiquant.by_head * to.heads;
      expected = plan.batches * antiquant.by_batch;
      break;
    default:
      break;
  }
  const bool paged_mode = mode == 4 || mode == 5;
  const bool offset_fits = !offset.given() || offset.count() == scale.count();
  if (expected == count && offset_fits && (!paged_mode || plan.block_table >= 0)) return Status();
  return Error(
      Code::kInvalidArgument,
      "{}: antiquant mode {} with {} scales and {} offsets for K or V of {} heads, {} rows "
      "and head size {}",
      op.Who(), mode, count, offset.count(), to.heads, rows, to.width);
}

Status ReadAntiquant(const OpContext& op, AttentionPlan& plan) {
  NPUMESH_ASSIGN_OR_RETURN(const Factors both, Factors::Of(op, Port(op, "antiquant_scale")));
  NPUMESH_ASSIGN_OR_RETURN(const Factors offsets, Factors::Of(op, Port(op, "antiquant_offset")));
  if (both.given()) {
    const int64_t half = both.count() / 2;
    const int64_t mode = AttrOr(op, "antiquant_mode", 0);
    NPUMESH_RETURN_IF_ERROR(SetAntiquant(op, mode, both, offsets, 0, half, plan, plan.k));
    NPUMESH_RETURN_IF_ERROR(SetAntiquant(op, mode, both, offsets, half, half, plan, plan.v));
  }
  for (const auto& [name, to] : {std::pair<std::string, KeyValue*>{"key", &plan.k},
                                 std::pair<std::string, KeyValue*>{"value", &plan.v}}) {
    NPUMESH_ASSIGN_OR_RETURN(const Factors scale,
                             Factors::Of(op, Port(op, name + "_antiquant_scale")));
    NPUMESH_ASSIGN_OR_RETURN(const Factors offset,
                             Factors::Of(op, Port(op, name + "_antiquant_offset")));
    if (!scale.given()) continue;
    NPUMESH_RETURN_IF_ERROR(SetAntiquant(op, AttrOr(op, name + "_antiquant_mode", 0), scale, offset,
                                         0, scale.count(), plan, *to));
  }
  const bool integers = plan.k.dtype == DataType::kInt8 || plan.k.dtype == DataType::kInt4;
  if (!integers || plan.quantised || plan.k.antiquant.scale.given()) return Status();
  return Error(Code::kInvalidArgument, "{}: key is {} and query {}; the scales of key are missing",
               op.Who(), Name(plan.k.dtype), Name(plan.q.dtype));
}

// Scales of the path where query, key and value are int8, and those of an int8 output.
Status ReadQuantisation(const OpContext& op, AttentionPlan& plan) {
  const auto either = [&](std::string_view a, std::string_view b) {
    return Factors::Of(op, HasPort(op, a) ? a : b);
  };
  NPUMESH_ASSIGN_OR_RETURN(plan.out_scale, Factors::Of(op, "quant_scale2"));
  NPUMESH_ASSIGN_OR_RETURN(plan.out_offset, Factors::Of(op, "quant_offset2"));
  plan.quantised = plan.q.dtype == DataType::kInt8;
  plan.out.dtype = plan.out_scale.given() ? DataType::kInt8
                   : plan.quantised       ? DataType::kFloat16
                                          : plan.q.dtype;
  if (!plan.quantised) return Status();
  NPUMESH_ASSIGN_OR_RETURN(plan.score_scale, either("deq_scale1", "dequant_scale1"));
  NPUMESH_ASSIGN_OR_RETURN(plan.probability_scale, Factors::Of(op, "quant_scale1"));
  NPUMESH_ASSIGN_OR_RETURN(plan.sum_scale, either("deq_scale2", "dequant_scale2"));
  const bool eight_bits = plan.k.dtype == DataType::kInt8 && plan.v.dtype == DataType::kInt8;
  if (eight_bits && plan.score_scale.given() && plan.probability_scale.given() &&
      plan.sum_scale.given()) {
    return Status();
  }
  return Error(Code::kInvalidArgument,
               "{}: query is int8; then key and value must be int8 (seen {}, {}), and the two "
               "dequantisation scales and quant_scale1 must be given",
               op.Who(), Name(plan.k.dtype), Name(plan.v.dtype));
}

Status CheckOutputScale(const OpContext& op, const AttentionPlan& plan) {
  const int64_t channels = plan.heads * plan.v.width;
  for (const Factors* factors : {&plan.out_scale, &plan.out_offset}) {
    if (!factors->given() || factors->count() == 1 || factors->count() == channels) continue;
    return Error(Code::kInvalidArgument,
                 "{}: quant_scale2 and quant_offset2 need one element or {}, seen {}", op.Who(),
                 channels, factors->count());
  }
  return Status();
}

Status ReadCaches(const OpContext& op, std::string_view letters, int64_t heads,
                  AttentionPlan& plan) {
  plan.block_table = SlotIfFed(op, Port(op, "block_table"));
  const bool paged = plan.block_table >= 0;
  const auto read = [&](std::string_view port) {
    return paged ? ReadPages(op, port, heads) : ReadKeyValue(op, port, letters, heads);
  };
  NPUMESH_ASSIGN_OR_RETURN(plan.k, read("key"));
  NPUMESH_ASSIGN_OR_RETURN(plan.v, read("value"));
  if (SlotIfFed(op, Port(op, "key_rope")) >= 0) {
    NPUMESH_ASSIGN_OR_RETURN(plan.k_rope, read("key_rope"));
  }
  if (SlotIfFed(op, Port(op, "key_shared_prefix")) >= 0) {
    NPUMESH_ASSIGN_OR_RETURN(plan.k_prefix, ReadKeyValue(op, "key_shared_prefix", letters, heads));
    NPUMESH_ASSIGN_OR_RETURN(plan.v_prefix,
                             ReadKeyValue(op, "value_shared_prefix", letters, heads));
    NPUMESH_ASSIGN_OR_RETURN(plan.prefix_length,
                             ReadLengths(op, "actual_shared_prefix_len", false));
  }
  return Status();
}

Status CheckCaches(const OpContext& op, const AttentionPlan& plan) {
  if (plan.block_table >= 0) {
    const TensorType& table = op.in(plan.block_table);
    const bool fits = table.dtype == DataType::kInt32 && table.shape.rank() == 2 &&
                      table.shape[0] == plan.batches && plan.kv_lengths.slot >= 0;
    if (!fits) {
      return Error(Code::kInvalidArgument,
                   "{}: block_table is {}, expected int32[{},blocks] and key lengths beside it",
                   op.Who(), table.ToString(), plan.batches);
    }
  }
  const bool prefix_fits =
      !plan.k_prefix.given() ||
      (!plan.k_rope.given() && !plan.k.packed && plan.k_prefix.width == plan.k.width &&
       plan.v_prefix.width == plan.v.width && plan.k_prefix.heads == plan.k.heads &&
       plan.k_prefix.parts[0].rows == plan.v_prefix.parts[0].rows && plan.k_prefix.blocks == 1);
  const bool rope_fits =
      plan.k_rope.given() == (plan.q_rope.slot >= 0) &&
      (!plan.k_rope.given() ||
       (plan.k_rope.width == plan.q_rope.width && plan.k_rope.blocks == plan.k.blocks &&
        plan.k_rope.parts[0].rows == plan.k.parts[0].rows));
  if (prefix_fits && rope_fits) return Status();
  return Error(Code::kInvalidArgument, "{}: the {} does not fit query and key", op.Who(),
               prefix_fits ? "rotary part (query_rope, key_rope)" : "shared prefix");
}

Status ReadAllLengths(const OpContext& op, AttentionPlan& plan) {
  const bool decode_only = op.schema().type == "IncreFlashAttention";
  if (!decode_only) {
    NPUMESH_ASSIGN_OR_RETURN(plan.q_lengths, ReadLengths(op, "actual_seq_lengths", plan.q.packed));
  }
  const std::string_view keys = decode_only ? "actual_seq_lengths" : "actual_seq_lengths_kv";
  NPUMESH_ASSIGN_OR_RETURN(plan.kv_lengths,
                           ReadLengths(op, keys, plan.q.packed && plan.block_table < 0));
  NPUMESH_ASSIGN_OR_RETURN(plan.q_padding, ReadLengths(op, Port(op, "query_padding_size"), false));
  NPUMESH_ASSIGN_OR_RETURN(plan.kv_padding, ReadLengths(op, Port(op, "kv_padding_size"), false));
  plan.batches = plan.q.packed ? std::max<int64_t>(plan.q_lengths.count, 1) : plan.q.batches;
  return Status();
}

Status ReadBand(const OpContext& op, AttentionPlan& plan) {
  plan.pre_tokens = AttrOr(op, "pre_tokens", INT32_MAX);
  plan.next_tokens = AttrOr(op, "next_tokens", INT32_MAX);
  const int64_t mode = AttrOr(op, "sparse_mode", 0);
  const bool one_row = plan.q.rows == 1 && !plan.q.packed;
  NPUMESH_ASSIGN_OR_RETURN(plan.pse, ReadScores(op, "pse_shift", plan));
  if (one_row && mode > 1) return Status();
  if (mode <= 1) {
    NPUMESH_ASSIGN_OR_RETURN(plan.mask, ReadScores(op, "atten_mask", plan));
  }
  NPUMESH_RETURN_IF_ERROR(SetBand(op, mode, plan));
  if (one_row) plan.band = Band::kAll;
  return Status();
}

struct Planned {
  AttentionPlan plan;
  Shape out;
};

Result<Planned> PlanOf(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(RefuseUnsupported(op));
  Planned planned;
  AttentionPlan& plan = planned.plan;
  const std::string name = op.attr_string("input_layout");
  NPUMESH_ASSIGN_OR_RETURN(const Layouts layouts, LayoutsOf(op, name));
  plan.who = op.Who();
  plan.threads = op.threads();
  plan.heads = op.attr_int("num_heads");
  plan.scale = op.attr_float(HasAttr(op, "scale") ? "scale" : "scale_value");
  NPUMESH_ASSIGN_OR_RETURN(plan.q, HeadsOf(op, op.slot("query"), layouts.in, plan.heads));
  if (const int slot = SlotIfFed(op, Port(op, "query_rope")); slot >= 0) {
    NPUMESH_ASSIGN_OR_RETURN(plan.q_rope, HeadsOf(op, slot, layouts.in, plan.heads));
  }
  const int64_t key_heads = op.attr_int("num_key_value_heads");
  NPUMESH_RETURN_IF_ERROR(
      ReadCaches(op, layouts.in, key_heads == 0 ? plan.heads : key_heads, plan));
  NPUMESH_RETURN_IF_ERROR(ReadAllLengths(op, plan));
  if (plan.block_table >= 0) plan.table_width = op.in(plan.block_table).shape.dims().back();
  NPUMESH_RETURN_IF_ERROR(ReadBand(op, plan));
  NPUMESH_RETURN_IF_ERROR(ReadQuantisation(op, plan));
  NPUMESH_RETURN_IF_ERROR(ReadAntiquant(op, plan));
  NPUMESH_RETURN_IF_ERROR(CheckCaches(op, plan));
  NPUMESH_RETURN_IF_ERROR(CheckOutputScale(op, plan));
  NPUMESH_ASSIGN_OR_RETURN(plan.sink, Factors::Of(op, Port(op, "learnable_sink")));
  NPUMESH_ASSIGN_OR_RETURN(planned.out, Complete(op, layouts.out, plan));
  if (HasAttr(op, "softmax_lse_flag")) {
    (op.attr_bool("softmax_lse_flag") ? plan.lse_port : plan.zero_port) = 1;
  }
  return planned;
}

Status InferAttention(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Planned planned, PlanOf(op));
  const AttentionPlan& plan = planned.plan;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.out.dtype, planned.out));
  if (plan.zero_port >= 0) return SetOutput(op, 1, DataType::kFloat, {1});
  if (plan.lse_port < 0) return Status();
  return SetOutput(op, 1, DataType::kFloat,
                   plan.q.packed ? Shape{plan.q.rows, plan.heads, 1}
                                 : Shape{plan.batches, plan.heads, plan.q.rows, 1});
}

Result<std::unique_ptr<Kernel>> MakeAttention(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Planned planned, PlanOf(op));
  return MakeAttentionKernel(planned.plan);
}

std::vector<PortSpec> Ports(std::vector<PortSpec> first,
                            std::initializer_list<std::string_view> optional) {
  for (const std::string_view name : optional) first.push_back({name, PortKind::kOptional});
  return first;
}

void RegisterFused(OpRegistry& registry) {
  const auto integer = [](std::string_view name, int64_t value) {
    return AttrSpec{name, AttrValue::Int(value)};
  };
  registry.Add(
      {.schema = {"FusedInferAttentionScore",
                  Ports({{"query"}, {"key", PortKind::kDynamic}, {"value", PortKind::kDynamic}},
                        {"pse_shift",
                         "atten_mask",
                         "actual_seq_lengths",
                         "actual_seq_lengths_kv",
                         "dequant_scale1",
                         "quant_scale1",
                         "dequant_scale2",
                         "quant_scale2",
                         "quant_offset2",
                         "antiquant_scale",
                         "antiquant_offset",
                         "block_table",
                         "query_padding_size",
                         "kv_padding_size",
                         "key_antiquant_scale",
                         "key_antiquant_offset",
                         "value_antiquant_scale",
                         "value_antiquant_offset",
                         "key_shared_prefix",
                         "value_shared_prefix",
                         "actual_shared_prefix_len",
                         "query_rope",
                         "key_rope",
                         "key_rope_antiquant_scale",
                         "dequant_scale_query",
                         "learnable_sink",
                         "q_start_idx",
                         "kv_start_idx"}),
                  {{"attention_out"}, {"softmax_lse"}},
                  {{"num_heads", Required::kInt},
                   {"scale", AttrValue::Float(1.0f)},
                   integer("pre_tokens", INT32_MAX),
                   integer("next_tokens", INT32_MAX),
                   {"input_layout", AttrValue::String("BSH")},
                   integer("num_key_value_heads", 0),
                   integer("sparse_mode", 0),
                   integer("inner_precise", 0),
                   integer("block_size", 0),
                   integer("antiquant_mode", 0),
                   {"softmax_lse_flag", AttrValue::Bool(false)},
                   integer("key_antiquant_mode", 0),
                   integer("value_antiquant_mode", 0),
                   integer("query_quant_mode", 0),
                   integer("pse_type", 0),
                   integer("out_dtype", 0)}},
       .infer = InferAttention,
       .make_kernel = MakeAttention});
}

void RegisterAll(OpRegistry& registry) {
  const AttrSpec heads = {"num_heads", Required::kInt};
  const AttrSpec scale = {"scale_value", AttrValue::Float(1.0f)};
  const AttrSpec layout = {"input_layout", AttrValue::String("BSH")};
  const AttrSpec key_heads = {"num_key_value_heads", AttrValue::Int(1)};
  const AttrSpec precise = {"inner_precise", AttrValue::Int(1)};
  RegisterFused(registry);
  registry.Add({.schema = {"PromptFlashAttention",
                           Ports({{"query"}, {"key"}, {"value"}},
                                 {"pse_shift", "atten_mask", "actual_seq_lengths",
                                  "actual_seq_lengths_kv", "deq_scale1", "quant_scale1",
                                  "deq_scale2", "quant_scale2", "quant_offset2"}),
                           {{"attention_out"}},
                           {heads,
                            scale,
                            {"pre_tokens", AttrValue::Int(214748647)},
                            {"next_tokens", AttrValue::Int(0)},
                            layout,
                            key_heads,
                            {"sparse_mode", AttrValue::Int(0)},
                            precise}},
                .infer = InferAttention,
                .make_kernel = MakeAttention});
  registry.Add(
      {.schema = {"IncreFlashAttention",
                  Ports({{"query"}, {"key", PortKind::kDynamic}, {"value", PortKind::kDynamic}},
                        {"pse_shift", "atten_mask", "actual_seq_lengths", "dequant_scale1",
                         "quant_scale1", "dequant_scale2", "quant_scale2", "quant_offset2",
                         "antiquant_scale", "antiquant_offset", "block_table", "kv_padding_size"}),
                  {{"attention_out"}},
                  {heads, scale, layout, key_heads, {"block_size", AttrValue::Int(0)}, precise}},
       .infer = InferAttention,
       .make_kernel = MakeAttention});
}

}  // namespace
}  // namespace npumesh::attention

namespace npumesh {

void RegisterAttentionOps(OpRegistry& registry) {
  RegisterInferAttentionOps(registry);
  RegisterTrainAttentionOps(registry);
  RegisterAttentionUpdateOps(registry);
  RegisterRopeOps(registry);
  RegisterCacheScatterOps(registry);
  RegisterNormRopeCacheOps(registry);
}

void RegisterInferAttentionOps(OpRegistry& registry) {
  attention::RegisterAll(registry);
}

}  // namespace npumesh
