// Products with a constant matrix of float16 or bfloat16 elements, which stays in 16 bits.
//
// The matrix is kept in panels of kPanelColumns columns; a panel has its rows one after the other.
// That is, for float32, what oneDNN calls BA16a64b: a panel that is widened element by element can
// be given to it as it is.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_HALF_PRODUCT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_HALF_PRODUCT_H_

#include <cstdint>
#include <memory>

#include "graph/ir/tensor.h"
#include "graph/ops/toolbox/product/packed_weights.h"

namespace npumesh {

inline constexpr int64_t kPanelColumns = 64;

// [k, n] in panels. Rows beyond k up to the next multiple of 16 and columns beyond n are zero.
struct HalfPanels {
  int64_t panels = 0;
  int64_t rows = 0;
  std::shared_ptr<std::byte> bytes;  // [panels, rows, kPanelColumns]

  uint16_t* panel(int64_t index) const {
    return reinterpret_cast<uint16_t*>(bytes.get()) + index * rows * kPanelColumns;
  }
};

// The panels of a weight of k * n elements of 16 bits, stored [k, n] or, `transposed`, [n, k].
// Reads a weight in a file piece by piece and gives its pages back. What `shared` (may be null) has
// already is taken from there. REQUIRES: k and n are not 0.
std::shared_ptr<const HalfPanels> PackHalves(const Tensor& weight, int64_t k, int64_t n,
                                             bool transposed, PackedWeights* shared);

// y[m, kPanelColumns] = x[m, k] panel[k, kPanelColumns], added in float32 in the order of k. Rows
// of x are k apart. `dtype` is that of the panel. Meant for few rows: the panel is read once for
// every four of them.
void MultiplyPanel(DataType dtype, const float* x, int64_t m, int64_t k, const uint16_t* panel,
                   float* y);

// `count` elements as floats; `count` is a multiple of kPanelColumns.
void WidenPanel(DataType dtype, const uint16_t* from, int64_t count, float* to);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_HALF_PRODUCT_H_
