// Products of matrices of floats, panel by panel (panel_kernels.h), added in float32.
//
// k is cut into blocks of an even size, by k alone; the chains of the blocks are added in their
// order. Rows and columns are cut as caches and threads like it, which changes no bits. So an
// element has the same bits whether the right operand was packed before or is packed on the way, is
// stored transposed or not, has 8 or 16 bits or the same numbers in 32, and whatever rows and
// columns are computed with it, by however many threads.
//
// Thread-safety: a PanelProduct may be run by several threads, each with a separate room.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_PRODUCT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_PRODUCT_H_

#include <cstdint>
#include <memory>

#include "graph/ir/tensor.h"
#include "graph/ops/toolbox/product/float_product.h"
#include "graph/ops/toolbox/product/packed_weights.h"
#include "graph/ops/toolbox/product/panel_kernels.h"
#include "graph/ops/toolbox/product/panel_tiles.h"

namespace npumesh {

// A constant matrix [k, n] of float32, float16, bfloat16 or int8 elements in groups of columns,
// each with its rows one after the other, so that a product reads it from its beginning to its end.
// What is beyond n or k is zero.
struct Panels {
  DataType dtype = DataType::kUndefined;
  int64_t panels = 0;
  int64_t rows = 0;      // k / together
  int64_t columns = 0;   // of a panel: those of one or two of the kernels' panels
  int64_t together = 1;  // neighbouring places of k that lie side by side, the first one last
  std::shared_ptr<std::byte> bytes;  // [panels, rows, columns, together]

  uint64_t row_bytes() const;
  // Row `row` of panel `index`; the first of the places of k there is row * together.
  std::byte* at(int64_t index, int64_t row) const;
};

// The panels, for this processor, of a weight [k, n], stored [n, k] when `transposed`; those of
// bfloat16 have two places of k together. Reads a weight in a file piece by piece and gives its
// pages back. What `shared` (may be null) has already is taken from there. REQUIRES: k and n are
// not 0. Throws std::bad_alloc.
std::shared_ptr<const Panels> PackPanels(const Tensor& weight, int64_t k, int64_t n,
                                         bool transposed, PackedWeights* shared);

class PanelProduct {
 public:
  struct Operands {
    FloatMatrix x;                   // [m, k]
    bool bfloat16 = false;           // its elements are numbers of bfloat16
    const Panels* packed = nullptr;  // w[k, n]; null: `w`
    FloatMatrix w;
    const float* bias = nullptr;  // of n; null: none
    float* y = nullptr;           // [m, n], rows y_stride apart
    int64_t y_stride = 0;
    const float* residual = nullptr;  // [m, n], rows as those of y, added last; null: none
    bool adds = false;                // to what y holds
  };

  PanelProduct() = default;
  // REQUIRES: none of them is 0.
  PanelProduct(int64_t m, int64_t n, int64_t k);

  int64_t room_floats() const;  // of one thread

  // y = (x w + bias) + residual, by `threads` threads. `room`: threads * room_floats(), best at a
  // cache line.
  void Run(const Operands& operands, int threads, float* room) const;

 private:
  // What a thread computes: rows [row, end_row) in panels [panel, end_panel).
  struct Part {
    int64_t row = 0, end_row = 0;
    int64_t panel = 0, end_panel = 0;
  };
  // Rows [row, row + rows) and places [begin, begin + depth) of k.
  struct Block {
    int64_t row = 0, rows = 0;
    int64_t begin = 0, depth = 0;
  };
  // Panels [first, first + count) of the kernels.
  struct Span {
    int64_t first = 0, count = 1;
  };
  // Where the elements of the columns of a panel lie.
  struct PanelView {
    const void* data = nullptr;
    int64_t stride = 0;
  };
  // Where sums go.
  struct Sums {
    float* y = nullptr;
    int64_t stride = 0;
    bool adds = false;  // to what is there
  };

  int64_t Columns(const Span& panels) const;
  // How many of the kernels' panels lie side by side, one or two.
  int64_t SideBySide(const Operands& operands) const;
  // Whether pairs of bfloat16 are multiplied as they are.
  bool TakesPairs(const Operands& operands) const;
  const PanelKernels::OfType& KernelsOf(const Operands& operands) const;
  // Whether two panels are multiplied at once, and the tiles that this or the other needs.
  bool MultipliesTwo(const Operands& operands, const Block& block) const;
  Tiles TilesOf(const Operands& operands, const Block& block) const;
  void PackRows(const Operands& operands, const Block& block, float* to) const;
  // `room`: for the elements of a panel that is packed on the way.
  PanelView ViewPanel(const Operands& operands, const Block& block, const Span& panels,
                      float* room) const;
  // What the first of `tiles` tiles of rows asks for of the block that is multiplied after this
  // one.
  Ahead AheadOf(const Operands& operands, const Block& block, const Span& panels,
                int64_t tiles) const;
  void Multiply(const Operands& operands, const Block& block, const Span& panels, const float* x,
                float* room) const;
  void MultiplyTiles(const Operands& operands, const Block& block, const Span& panels,
                     const float* x, float* room, Sums sums) const;
  // How many panels from `panel` on one row is multiplied with as they are stored; 0: none.
  int64_t StoredPanels(const Operands& operands, int64_t panel, int64_t last) const;
  void MultiplyStored(const Operands& operands, const Block& block, const Span& panels,
                      const float* x) const;
  // `edge`: where the sums of a panel with fewer columns lie; null: in y already.
  void Finish(const Operands& operands, const Block& block, const Span& panels,
              const float* edge) const;
  // Of rows [row, row + rows) in panels [first, last).
  void AddResidual(const Operands& operands, int64_t row, int64_t rows, int64_t first,
                   int64_t last) const;
  void RunPart(const Operands& operands, const Part& part, float* room) const;
  // Into how many parts `threads` threads cut the rows.
  int64_t RowParts(const Operands& operands, int threads) const;

  const PanelKernels* kernels_ = nullptr;
  int64_t m_ = 0, n_ = 0, k_ = 0;
  int64_t panels_ = 0;
  int64_t depth_ = 0;  // of a block along k
  int64_t span_ = 0;   // of k that is packed at once: a block, or all
  int64_t rows_ = 0;   // of a block
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_PRODUCT_H_
