// A block whose products are of int8: activations quantised as they come (W8A8).
//
//   q0 = quantise(x, static scale and offset)              npu_quantize
//   h  = x + (q0 w0T + bias) * scale                       npu_quant_matmul, packed scale
//   q1, s1 = dynamic_quantise(h)                           npu_dynamic_quant
//   a  = q1 w1                                             npu_quant_matmul to int32
//   q2, s2 = dynamic_quantise(swiglu(a * scale * s1))      npu_dequant_swiglu_quant
//   y  = h + (q2 w2) * scale * s2                          npu_quant_matmul, pertoken_scale
//
// Weights are small integers and scales of weights powers of two, so that every float of the
// reference is known to the bit but for the exponential in swiglu.
#ifndef NPUMESH_TESTS_MODELS_W8A8_BLOCK_H_
#define NPUMESH_TESTS_MODELS_W8A8_BLOCK_H_

#include <cstdint>
#include <vector>

#include "graph/ir/graph.h"
#include "runtime/base/float16.h"

namespace npumesh::models {

inline constexpr int64_t kBlockWidth = 16;
inline constexpr int64_t kBlockInner = 12;

struct QuantWeights {
  std::vector<int8_t> w0;     // [width, width], transposed
  std::vector<int32_t> bias;  // [width]
  std::vector<float> scale0;  // [width]
  std::vector<int8_t> w1;     // [width, 2 inner]
  std::vector<float> scale1;  // [2 inner]
  std::vector<int8_t> w2;     // [inner, width]
  std::vector<float> scale2;  // [width]
  float static_scale = 16;    // q = round(x * 16 + 3)
  float static_offset = 3;
};
QuantWeights MakeQuantWeights();
std::vector<Float16> BlockInput(int64_t tokens);

// Input "x" float16 [-1, width]; outputs y, then q0, q1, s1, a, q2, s2.
Result<Model> BuildW8a8Block(const QuantWeights& weights);

struct BlockResult {
  std::vector<Float16> y;
  std::vector<int8_t> q0, q1, q2;
  std::vector<float> s1, s2;
  std::vector<int32_t> a;
  // How near what was rounded to q2 came to the middle between two integers.
  double nearest_tie = 1;
};
BlockResult BlockReference(const QuantWeights& weights, const std::vector<Float16>& x);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_W8A8_BLOCK_H_
