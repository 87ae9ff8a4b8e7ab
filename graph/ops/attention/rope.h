// Rotary position embedding: vectors rotated by tables of cos and sin.
#ifndef NPUMESH_GRAPH_OPS_ATTENTION_ROPE_H_
#define NPUMESH_GRAPH_OPS_ATTENTION_ROPE_H_

#include <cstdint>
#include <string_view>

#include "graph/ops/core/scratch.h"

namespace npumesh {

// Which elements form a pair, in the numbering of RotaryPositionEmbedding's `mode`.
enum class RotaryMode : uint8_t {
  kHalf,            // x[i], x[i + D/2]
  kInterleave,      // x[2i], x[2i + 1]
  kQuarter,         // kHalf in both halves
  kInterleaveHalf,  // pairs of kInterleave; the result lies as in kHalf
};

// The tables of a node, and room for a row of each.
struct RotaryTables {
  int cos = -1;  // slots
  int sin = -1;
  DataType dtype = DataType::kUndefined;
  RotaryMode mode = RotaryMode::kHalf;
  int64_t width = 0;
  Workspace<float> cos_row, sin_row;

  static RotaryTables Of(const OpContext& op, std::string_view cos, std::string_view sin,
                         RotaryMode mode, Scratch& scratch);

  // y = x * cos + rotated(x) * sin with the rows of the tables that begin at element `first`; y
  // must not be x. REQUIRES: the width is even, and divisible by 4 for kQuarter.
  void Rotate(const KernelArgs& args, int64_t first, const float* x, float* y) const;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_ATTENTION_ROPE_H_
