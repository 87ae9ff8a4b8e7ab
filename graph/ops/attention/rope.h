// Rotary position embedding: vectors rotated by tables of cos and sin.
#ifndef NPUMESH_GRAPH_OPS_ATTENTION_ROPE_H_
#define NPUMESH_GRAPH_OPS_ATTENTION_ROPE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/ops/core/check.h"
#include "graph/ops/core/scratch.h"

namespace npumesh {

// Which elements form a pair, in the numbering of RotaryPositionEmbedding's `mode`.
enum class RotaryMode : uint8_t {
  kHalf,            // x[i], x[i + D/2]
  kInterleave,      // x[2i], x[2i + 1]
  kQuarter,         // kHalf in both halves
  kInterleaveHalf,  // pairs of kInterleave; the result lies as in kHalf
};

// The attribute `mode`; objects when it names no mode.
inline RotaryMode RotaryModeOf(Check& check) {
  return static_cast<RotaryMode>(check.Between("mode", 0, 3));
}

// Objects unless a table broadcasts to `x` with the same last dimension, which the mode can rotate.
void CheckRotation(const OpContext& op, std::string_view x, std::string_view table, RotaryMode mode,
                   Check& check);

// Where each vector of a tensor finds its vector of a table that broadcasts to it.
class TableRows {
 public:
  TableRows() = default;
  TableRows(const Shape& x, const Shape& table);

  int64_t rows() const { return rows_; }  // vectors of the tensor
  int64_t width() const { return width_; }
  // First element in the table.
  int64_t Element(int64_t row) const;

 private:
  int64_t width_ = 0, rows_ = 1;
  std::vector<int64_t> extents_;
  std::vector<int64_t> strides_;  // of the table along the leading dimensions of the tensor
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
