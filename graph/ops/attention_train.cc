// FlashAttentionScore: attention of training, with dropout and the statistics that the backward
// pass needs. Ops reference 5.11.
#include <algorithm>

#include "graph/ops/attention_train.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh::attention {
namespace {

// Key heads: of the layout, or, where H hides them, as many as vectors of query's size fit.
int64_t KeyHeads(const OpContext& op, std::string_view layout, int64_t width) {
  const Shape& key = op.in("key").shape;
  const size_t at = layout.find('N');
  if (key.rank() != static_cast<int>(layout.size())) return 0;
  if (at != std::string_view::npos) return key[static_cast<int>(at)];
  return width > 0 ? key[key.rank() - 1] / width : 0;
}

Status ReadDropout(const OpContext& op, AttentionPlan& plan) {
  plan.keep_prob = op.attr_float("keep_prob");
  const int slot = SlotIfFed(op, "drop_mask");
  if (slot < 0 || plan.keep_prob >= 1) return Status();
  if (plan.q.packed) {
    return Error(Code::kUnsupported, "{}: dropout in layout TND is not supported", op.Who());
  }
  const TensorType& mask = op.in(slot);
  const int64_t scores = plan.batches * plan.heads * plan.q.rows * plan.k.parts[0].rows;
  if (plan.keep_prob > 0 && mask.dtype == DataType::kUint8 && mask.shape.elements() * 8 >= scores) {
    plan.drop_mask = slot;
    return Status();
  }
  return Error(Code::kInvalidArgument,
               "{}: drop_mask is {} and keep_prob {}; expected at least {} bits in uint8 and a "
               "probability above 0",
               op.Who(), mask.ToString(), plan.keep_prob, scores);
}

Status ReadBand(const OpContext& op, std::string_view shift, AttentionPlan& plan) {
  plan.pre_tokens = op.attr_int("pre_tockens");
  plan.next_tokens = op.attr_int("next_tockens");
  NPUMESH_ASSIGN_OR_RETURN(plan.band_prefix, ReadLengths(op, "prefix", false));
  NPUMESH_ASSIGN_OR_RETURN(plan.pse, ReadScores(op, shift, plan));
  // The attribute came with a later interface, whose default is 1; its absence means the formula
  // of the earlier one, which is that of 0.
  const int64_t pse_type = op.attr_int("pse_type");
  if (pse_type != 0 && pse_type != 1) {
    return Error(Code::kUnsupported, "{}: pse_type {} is not supported, expected 0 or 1", op.Who(),
                 pse_type);
  }
  plan.scales_pse = pse_type == 1;
  const int64_t mode = op.attr_int("sparse_mode");
  if (mode <= 1) {
    NPUMESH_ASSIGN_OR_RETURN(plan.mask, ReadScores(op, "atten_mask", plan));
  }
  return SetBand(op, mode, plan);
}

Status RefuseUnsupported(const OpContext& op) {
  for (const std::string_view port :
       {"q_start_idx", "kv_start_idx", "d_scale_q", "d_scale_k", "d_scale_v", "p_scale"}) {
    if (SlotIfFed(op, port) >= 0) {
      return Error(Code::kUnsupported, "{}: the input \"{}\" is not supported", op.Who(), port);
    }
  }
  return Status();
}

Status ReadTensors(const OpContext& op, std::string_view letters, AttentionPlan& plan) {
  NPUMESH_ASSIGN_OR_RETURN(plan.q, HeadsOf(op, op.slot("query"), letters, plan.heads));
  const int64_t key_heads = KeyHeads(op, letters, plan.q.width);
  NPUMESH_ASSIGN_OR_RETURN(plan.k, ReadKeyValue(op, "key", letters, key_heads));
  NPUMESH_ASSIGN_OR_RETURN(plan.v, ReadKeyValue(op, "value", letters, key_heads));
  const int q_rope = SlotIfFed(op, "query_rope");
  if ((q_rope >= 0) != (SlotIfFed(op, "key_rope") >= 0)) {
    return Error(Code::kInvalidArgument, "{}: query_rope and key_rope go together", op.Who());
  }
  if (q_rope < 0) return Status();
  NPUMESH_ASSIGN_OR_RETURN(plan.q_rope, HeadsOf(op, q_rope, letters, plan.heads));
  NPUMESH_ASSIGN_OR_RETURN(plan.k_rope, ReadKeyValue(op, "key_rope", letters, key_heads));
  if (plan.q_rope.width == plan.k_rope.width && plan.q_rope.rows == plan.q.rows &&
      plan.k_rope.parts[0].rows == plan.k.parts[0].rows && plan.k_rope.blocks == plan.k.blocks) {
    return Status();
  }
  return Error(Code::kInvalidArgument, "{}: query_rope {} and key_rope {} do not fit query and key",
               op.Who(), op.in("query_rope").ToString(), op.in("key_rope").ToString());
}

constexpr std::string_view kShift = "real_shift";

Status InferTraining(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const TrainingPlan planned, PlanTraining(op, kShift));
  const AttentionPlan& plan = planned.plan;
  const Shape statistics = plan.q.packed ? Shape{plan.q.rows, plan.heads, 8}
                                         : Shape{plan.batches, plan.heads, plan.q.rows, 8};
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, DataType::kFloat, statistics));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kFloat, statistics));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 2, plan.out.dtype, {0}));
  return SetOutput(op, 3, plan.out.dtype, planned.out);
}

Result<std::unique_ptr<Kernel>> MakeTraining(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(TrainingPlan planned, PlanTraining(op, kShift));
  planned.plan.max_port = 0;
  planned.plan.sum_port = 1;
  planned.plan.out.slot = 3;
  return MakeAttentionKernel(planned.plan);
}

void RegisterAll(OpRegistry& registry) {
  std::vector<PortSpec> inputs = {{"query"}, {"key"}, {"value"}};
  for (const std::string_view port :
       {"real_shift", "drop_mask", "padding_mask", "atten_mask", "prefix", "actual_seq_qlen",
        "actual_seq_kvlen", "q_start_idx", "kv_start_idx", "d_scale_q", "d_scale_k", "d_scale_v",
        "query_rope", "key_rope", "sink", "p_scale"}) {
    inputs.push_back({port, PortKind::kOptional});
  }
  registry.Add({.schema = {"FlashAttentionScore",
                           std::move(inputs),
                           {{"softmax_max"}, {"softmax_sum"}, {"softmax_out"}, {"attention_out"}},
                           {{"scale_value", AttrValue::Float(1.0f)},
                            {"keep_prob", AttrValue::Float(1.0f)},
                            {"pre_tockens", AttrValue::Int(INT32_MAX)},
                            {"next_tockens", AttrValue::Int(INT32_MAX)},
                            {"head_num", Required::kInt},
                            {"input_layout", Required::kString},
                            {"inner_precise", AttrValue::Int(1)},
                            {"sparse_mode", AttrValue::Int(0)},
                            {"pse_type", AttrValue::Int(0)},
                            AttrSpec::Only("seed", AttrValue::Int(0)),
                            AttrSpec::Only("offset", AttrValue::Int(0)),
                            AttrSpec::Only("out_dtype", AttrValue::Int(0)),
                            AttrSpec::Only("softmax_out_layout", AttrValue::String(""))}},
                .infer = InferTraining,
                .make_kernel = MakeTraining});
}

}  // namespace

Result<TrainingPlan> PlanTraining(const OpContext& op, std::string_view shift) {
  NPUMESH_RETURN_IF_ERROR(RefuseUnsupported(op));
  TrainingPlan planned;
  AttentionPlan& plan = planned.plan;
  const std::string name = op.attr_string("input_layout");
  NPUMESH_ASSIGN_OR_RETURN(const Layouts layouts, LayoutsOf(op, name));
  plan.who = op.Who();
  plan.threads = op.threads();
  plan.heads = op.attr_int("head_num");
  plan.scale = op.attr_float("scale_value");
  NPUMESH_RETURN_IF_ERROR(ReadTensors(op, layouts.in, plan));
  NPUMESH_ASSIGN_OR_RETURN(plan.q_lengths, ReadLengths(op, "actual_seq_qlen", plan.q.packed));
  NPUMESH_ASSIGN_OR_RETURN(plan.kv_lengths, ReadLengths(op, "actual_seq_kvlen", plan.q.packed));
  plan.batches = plan.q.packed ? std::max<int64_t>(plan.q_lengths.count, 1) : plan.q.batches;
  NPUMESH_RETURN_IF_ERROR(ReadBand(op, shift, plan));
  NPUMESH_RETURN_IF_ERROR(ReadDropout(op, plan));
  NPUMESH_ASSIGN_OR_RETURN(plan.sink, Factors::Of(op, "sink"));
  plan.out.dtype = plan.q.dtype;
  NPUMESH_ASSIGN_OR_RETURN(planned.out, Complete(op, layouts.out, plan));
  return planned;
}

}  // namespace npumesh::attention

namespace npumesh {

void RegisterTrainAttentionOps(OpRegistry& registry) {
  attention::RegisterAll(registry);
}

}  // namespace npumesh
