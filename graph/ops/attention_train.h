// The plan of FlashAttentionScore, which its gradient follows too.
#ifndef NPUMESH_GRAPH_OPS_ATTENTION_TRAIN_H_
#define NPUMESH_GRAPH_OPS_ATTENTION_TRAIN_H_

#include <string_view>

#include "graph/ops/attention.h"

namespace npumesh::attention {

struct TrainingPlan {
  AttentionPlan plan;  // without ports of outputs
  Shape out;           // of the attention
};

// From the inputs and attributes that both operators have. `shift` is the port of the position
// shift. Objects to what does not fit.
TrainingPlan PlanTraining(const OpContext& op, std::string_view shift, Check& check);

}  // namespace npumesh::attention

#endif  // NPUMESH_GRAPH_OPS_ATTENTION_TRAIN_H_
