// The exponential of softmax.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_FLOAT_EXP_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_FLOAT_EXP_H_

#include <bit>
#include <cstdint>

namespace npumesh {

// e^x for x <= 0, good to 1 unit in the last place; NaN stays NaN, results below 2^-150 are 0.
// Without branches, so that the loop around it becomes vector code, and without fused operations,
// so that every processor gives the same bits.
//
// x = k ln 2 + r with |r| <= ln(2) / 2; e^r is 1 + r + r^2 times the polynomial of degree 4 whose
// largest relative error is least, 2^-28; 2^k is applied in two factors because k goes down to
// -150, past the exponents of normal numbers.
inline float ExpOfNonPositive(float x) {
  constexpr float kRounder = 0x1.8p23f;    // adding it leaves the integer part in the low bits
  constexpr float kLn2High = 0x1.62ep-1f;  // 12 bits: its product with k is exact
  constexpr float kLn2Low = 0x1.0bfbe8p-15f;
  x = x < -104.0f ? -104.0f : x;
  const float shifted = x * 0x1.715476p+0f + kRounder;
  const float k = shifted - kRounder;
  const float r = (x - k * kLn2High) - k * kLn2Low;
  float p = 0x1.6a23cep-10f;
  p = p * r + 0x1.123a2p-7f;
  p = p * r + 0x1.5558f2p-5f;
  p = p * r + 0x1.555492p-3f;
  p = p * r + 0x1.fffffcp-2f;
  p = p * r * r + r + 1.0f;
  const auto exponent =
      static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRounder));
  const int32_t half = exponent >> 1;
  const float first = std::bit_cast<float>((half + 127) << 23);
  const float second = std::bit_cast<float>((exponent - half + 127) << 23);
  return p * first * second;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_FLOAT_EXP_H_
