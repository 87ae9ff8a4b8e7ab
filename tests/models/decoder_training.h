// A training step of a small decoder, as AOTAutograd and TorchAir's converters write it: forward,
// backward and optimizer in one graph, parameters and optimizer state as RefData.
//
//   x = wte[tokens] + wpe[position]
//   per layer:  x += dropout(attention(layer_norm(x)) wo + bo)
//               x += dropout(gelu(rms_norm(x) w1 + b1) w2 + b2)
//   loss = cross_entropy(layer_norm(x) wteT, targets)
//
// The embedding is also the output layer, so its gradient has two parts. Attention is decomposed
// (bmm, mask, softmax, dropout, bmm), or one operator forward and one backward.
//
// Data parallel: each rank has its own sequences, gradients are summed over ranks and divided.
// Tensor parallel: each rank has some heads and some columns of the MLP (as
// launch/samples/decoder_model); activations are summed on the way forward, their gradients on the
// way back.
#ifndef NPUMESH_TESTS_MODELS_DECODER_TRAINING_H_
#define NPUMESH_TESTS_MODELS_DECODER_TRAINING_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "tests/models/parameters.h"

namespace npumesh::models {

enum class OptimizerForm {
  kFused,    // ApplyAdamW, as other front ends write it
  kForeach,  // torch.optim.AdamW(capturable=True): _foreach_* and single operators, then copy_
};

struct TrainingConfig {
  int64_t batch = 2;  // sequences of one rank
  int64_t sequence = 4;
  int64_t hidden = 8;
  int64_t heads = 2;
  int64_t ffn = 12;
  int64_t vocabulary = 11;
  int64_t layers = 2;
  double keep = 1;  // of dropout; 1: none
  OptimizerForm form = OptimizerForm::kFused;
  int data_parallel = 1;
  int tensor_parallel = 1;     // one of the two is 1
  bool fully_sharded = false;  // over the data parallel ranks
  bool mixed = false;
  bool fused_attention = false;  // npu_fusion_attention; without dropout only
  AdamW adam;

  int64_t width() const { return hidden / heads; }
  int64_t tokens() const { return batch * sequence; }
  int64_t dropouts() const { return 3 * layers; }
};

// What goes into a step.
struct TrainingBatch {
  std::vector<int64_t> tokens;   // batch * sequence
  std::vector<int64_t> targets;  // the same
  std::vector<int64_t> offsets;  // one for each dropout
};
// Batch number `step` of the global batch, of all ranks together.
TrainingBatch MakeBatch(const TrainingConfig& config, int64_t sequences, int step);

Parameters DecoderParameters(const TrainingConfig& config, uint64_t seed);
// The part of a parameter that `rank` holds: all, a slice, or rows or columns.
Parameter ShardOf(const TrainingConfig& config, const Parameter& parameter, int rank);

// Inputs: "tokens", "targets" int64, "offsets" int64 on the host (with dropout), then RefData: for
// each parameter p "p", "p.m", "p.v", and "beta1_power", "beta2_power" or "steps". Outputs: the
// loss of the rank's own sequences, then the gradient of each parameter in order.
Result<Model> BuildDecoderStep(const TrainingConfig& config, const Parameters& parameters,
                               int rank);

// The seed of all dropouts.
inline constexpr int64_t kDropoutSeed = 20261122;
// Whether the elements of a tensor of `count` stay, for the generator Philox4x32-10.
std::vector<bool> KeptElements(int64_t seed, int64_t offset, double keep, size_t count);

// The loss over `sequences` sequences; dropout as on one rank that has them all.
LossFunction DecoderLoss(const TrainingConfig& config, const TrainingBatch& batch);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_DECODER_TRAINING_H_
