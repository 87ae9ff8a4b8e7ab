// A small Llama-style decoder, whole or split over ranks.
//
//   per layer:  x += allreduce(attention(rms_norm(x)) * Wo)
//               x += allreduce(swiglu(rms_norm(x) * [Wgate|Wup]) * Wdown)
//
// Tensor parallelism (Shoeybi et al., Megatron-LM, 2019): Wq, Wk, Wv, Wgate and Wup are split by
// columns, so each rank owns whole heads; Wo and Wdown are split by rows, so each rank holds a
// partial sum, which HcomAllReduce completes. Everything else is the same on every rank.
#ifndef NPUMESH_LAUNCH_SAMPLES_DECODER_MODEL_H_
#define NPUMESH_LAUNCH_SAMPLES_DECODER_MODEL_H_

#include <cstdint>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"

namespace npumesh {

struct DecoderConfig {
  int layers = 2;
  int hidden = 256;
  int heads = 8;  // each hidden / heads wide, which must be even
  int ffn = 512;  // width of the MLP
  int sequence = 32;
  DataType dtype = DataType::kFloat;  // float32, float16 or bfloat16
  uint64_t seed = 1;                  // of the weights and the input
};

// The graph of `rank` of `ranks`; with one rank it has no collectives. Input 0: hidden states
// [sequence, hidden]; output 0: the same shape. Weights are the same numbers however they are
// split.
// Errors (kInvalidArgument): heads or ffn cannot be divided by `ranks`, hidden not by twice the
// heads, a dtype other than those three.
Result<Model> BuildDecoder(const DecoderConfig& config, int rank, int ranks);

// Hidden states to start from.
Tensor DecoderInput(const DecoderConfig& config);

// A tensor of a floating dtype as floats, and back (rounded once).
std::vector<float> ToFloats(const Tensor& tensor);
Tensor FromFloats(const TensorType& type, const std::vector<float>& values);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_SAMPLES_DECODER_MODEL_H_
