// Rotary position embedding of one vector. Ops reference 5.11.
#ifndef NPUMESH_GRAPH_OPS_ROPE_H_
#define NPUMESH_GRAPH_OPS_ROPE_H_

#include <cstdint>

namespace npumesh {

// Which elements form a pair, in the numbering of RotaryPositionEmbedding's `mode`.
enum class RotaryMode : uint8_t {
  kHalf,            // x[i], x[i + D/2]
  kInterleave,      // x[2i], x[2i + 1]
  kQuarter,         // kHalf in both halves
  kInterleaveHalf,  // pairs of kInterleave; the result lies as in kHalf
};

// y = x * cos + rotated(x) * sin for `width` elements; y must not be x. REQUIRES: width is even,
// and divisible by 4 for kQuarter.
void Rotate(RotaryMode mode, const float* x, const float* cos, const float* sin, int64_t width,
            float* y);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_ROPE_H_
