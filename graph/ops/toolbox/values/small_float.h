// The 8-bit floats: FLOAT8 E5M2, E4M3FN and E8M0 of OCP, and HIFLOAT8.
//
// They are storage: kernels widen them to float32, which holds every value, and round once.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_SMALL_FLOAT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_SMALL_FLOAT_H_

#include <cstdint>

#include "runtime/base/data_type.h"

namespace npumesh {

// Sign, 5 exponent bits, 2 mantissa bits; infinities.
struct Float8E5m2 {
  uint8_t bits;
};
// Sign, 4 exponent bits, 3 mantissa bits; no infinity, one NaN of each sign.
struct Float8E4m3 {
  uint8_t bits;
};
// Sign, a prefix that says how many exponent bits follow (0 to 4), exponent with a sign,
// 1 to 3 mantissa bits. One zero, one NaN (0x80), infinities 0x6f and 0xef.
struct Hifloat8 {
  uint8_t bits;
};

// The power of two of a block scale: 2^(bits - 127), 255 is NaN.
struct Float8E8m0 {
  uint8_t bits;
};

float ToFloat(Float8E5m2 value);
float ToFloat(Float8E4m3 value);
float ToFloat(Hifloat8 value);
float ToFloat(Float8E8m0 value);

// To nearest; ties go to the even code. What rounds past the largest value becomes infinity, in
// E4M3FN NaN. HIFLOAT8 has no negative zero.
Float8E5m2 ToFloat8E5m2(float value);
Float8E4m3 ToFloat8E4m3(float value);
Hifloat8 ToHifloat8(float value);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_SMALL_FLOAT_H_
