#include "tests/models/fused_attention.h"

namespace npumesh::models {
namespace {

std::vector<GraphBuilder::Attr> AttrsOf(const FusedAttentionInputs& in) {
  constexpr int64_t kAll = 2147483647;
  return {{"scale_value", AttrValue::Float(static_cast<float>(in.scale))},
          {"keep_prob", AttrValue::Float(1)},
          {"pre_tockens", AttrValue::Int(kAll)},
          {"next_tockens", AttrValue::Int(kAll)},
          {"head_num", AttrValue::Int(in.heads)},
          {"input_layout", AttrValue::String("BSH")},
          {"inner_precise", AttrValue::Int(0)},
          {"sparse_mode", AttrValue::Int(0)}};
}

}  // namespace

Value FusedAttention(AtenGraph& g, const FusedAttentionInputs& in) {
  return g.Op("FlashAttentionScore",
              {{"query", in.q}, {"key", in.k}, {"value", in.v}, {"atten_mask", in.mask}},
              AttrsOf(in));
}

Value FusedAttentionBackward(AtenGraph& g, Value dy, const FusedAttentionInputs& in,
                             Value forward) {
  return g.Op("FlashAttentionScoreGrad",
              {{"query", in.q},
               {"key", in.k},
               {"value", in.v},
               {"dy", dy},
               {"atten_mask", in.mask},
               {"softmax_max", g.Port(forward, 0)},
               {"softmax_sum", g.Port(forward, 1)},
               {"softmax_in", g.Port(forward, 2)},
               {"attention_in", g.Port(forward, 3)}},
              AttrsOf(in), 4);
}

Value CausalMask(AtenGraph& g, int64_t sequence) {
  const Value ones = g.Full({sequence, sequence}, 1, DataType::kInt32);
  const Value above = g.Op("Triu", {{"x", ones}}, {{"diagonal", AttrValue::Int(1)}});
  return g.ToCopy(above, DataType::kBool);
}

}  // namespace npumesh::models
