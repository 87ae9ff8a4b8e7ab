// FlashAttentionScore: attention of training, with dropout and the statistics that the backward
// pass needs.
#include <algorithm>

#include "graph/ops/attention/attention.h"
#include "graph/ops/attention/family.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

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

void ReadDropout(const OpContext& op, Check& check, AttentionPlan& plan) {
  plan.keep_prob = op.attr_float("keep_prob");
  const int slot = SlotIfFed(op, "drop_mask");
  if (slot < 0 || plan.keep_prob >= 1 || !check.ok()) return;
  check.Supported(!plan.q.packed, "dropout in layout TND is not supported");
  const TensorType& mask = op.in(slot);
  const int64_t scores = plan.batches * plan.heads * plan.q.rows * plan.k.parts[0].rows;
  check.That(
      plan.keep_prob > 0 && mask.dtype == DataType::kUint8 && mask.shape.elements() * 8 >= scores,
      "drop_mask is {} and keep_prob {}; expected at least {} bits in uint8 and a "
      "probability above 0",
      mask, plan.keep_prob, scores);
  plan.drop_mask = slot;
}

Result<AttentionPlan> PlanScore(const OpContext& op) {
  Check check(op);
  AttentionPlan plan = PlanTraining(op, "real_shift", check);
  if (!check.ok()) return check.status();
  plan.max_port = 0;
  plan.sum_port = 1;
  plan.out.slot = 3;
  const TensorType statistics = StatisticsOf(plan, 8);
  plan.outputs = {statistics, statistics, {plan.out.dtype, {0}}, plan.outputs[0]};
  return plan;
}

}  // namespace

AttentionPlan PlanTraining(const OpContext& op, std::string_view shift, Check& check) {
  AttentionPlan plan;
  check.NotFed({"q_start_idx", "kv_start_idx", "d_scale_q", "d_scale_k", "d_scale_v", "p_scale"});
  const Layouts layouts = LayoutsOf(op, check);
  plan.who = op.Who();
  plan.threads = op.threads();
  plan.heads = op.attr_int("head_num");
  plan.scale = op.attr_float("scale_value");
  // The attribute came with a later interface, whose default is 1; its absence means the formula
  // of the earlier one, which is that of 0.
  plan.scales_pse = check.Among("pse_type", {0, 1}) == 1;
  if (!check.ok()) return plan;
  const HeadTensor query = HeadsOf(op, op.slot("query"), layouts.in, plan.heads, check);
  ReadTensors(op, layouts.in, KeyHeads(op, layouts.in, query.width), false, check, plan);
  plan.q_lengths = ReadLengths(op, "actual_seq_qlen", plan.q.packed, check);
  plan.kv_lengths = ReadLengths(op, "actual_seq_kvlen", plan.q.packed, check);
  plan.batches = SequencesOf(plan);
  plan.pre_tokens = op.attr_int("pre_tockens");
  plan.next_tokens = op.attr_int("next_tockens");
  plan.band_prefix = ReadLengths(op, "prefix", false, check);
  plan.pse = ReadScores(op, shift, plan, check);
  ReadBand(op, op.attr_int("sparse_mode"), check, plan);
  ReadDropout(op, check, plan);
  plan.sink = check.Take(Factors::Of(op, "sink"));
  plan.out.dtype = plan.q.dtype;
  Complete(op, layouts.out, check, plan);
  return plan;
}

}  // namespace npumesh::attention

namespace npumesh {

void RegisterTrainAttentionOps(OpRegistry& registry) {
  registry.Add(Define<attention::PlanScore, attention::RunAttention>(
      "FlashAttentionScore(query, key, value, real_shift?, drop_mask?, padding_mask?, atten_mask?, "
      "prefix?, actual_seq_qlen?, actual_seq_kvlen?, q_start_idx?, kv_start_idx?, d_scale_q?, "
      "d_scale_k?, d_scale_v?, query_rope?, key_rope?, sink?, p_scale?; scale_value=1.0, "
      "keep_prob=1.0, pre_tockens=2147483647, next_tockens=2147483647, head_num:int, "
      "input_layout:string, inner_precise=1, sparse_mode=0, pse_type=0, seed==0, offset==0, "
      "out_dtype==0, softmax_out_layout==\"\") -> softmax_max, softmax_sum, softmax_out, "
      "attention_out"));
}

}  // namespace npumesh
