// Fills panels (panel_product.h) with a weight, piece by piece, so that of a weight in a file there
// is never more than one piece in memory beside the panels.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_PACKING_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_PACKING_H_

#include <algorithm>
#include <utility>

#include "graph/ir/tensor.h"
#include "graph/ops/toolbox/product/packed_weights.h"
#include "graph/ops/toolbox/product/panel_product.h"
#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {

// T: as wide as an element.
template <typename T>
class PanelPacking {
 public:
  // As PackPanels. Throws std::bad_alloc.
  PanelPacking(const Tensor& weight, int64_t k, int64_t n, bool transposed, int64_t columns)
      : weight_(weight), n_(n), transposed_(transposed) {
    packed_.dtype = weight.dtype();
    packed_.columns = columns;
    packed_.rows = k;
    packed_.panels = CeilDiv(n, columns);
    const auto elements = static_cast<uint64_t>(packed_.panels * k * columns);
    packed_.bytes = AllocatePacked(elements * sizeof(T));
    ClearBorder();
  }

  Panels Run() {
    const int64_t row = transposed_ ? packed_.rows : n_;  // elements
    const auto bytes = static_cast<uint64_t>(row) * sizeof(T);
    const uint64_t rows = std::max<uint64_t>(kPieceBytes / bytes, 1);
    weight_.Stream(rows * bytes, [&](uint64_t offset, uint64_t count) {
      const auto first = static_cast<int64_t>(offset / bytes);
      const auto last = first + static_cast<int64_t>(count / bytes);
      transposed_ ? TakeColumns(first, last) : TakeRows(first, last);
    });
    return std::move(packed_);
  }

 private:
  // Bytes of the stored weight that are worked on at once.
  static constexpr uint64_t kPieceBytes = uint64_t{8} << 20;
  // Rows of panels that are filled together.
  static constexpr int64_t kBlock = 32;

  const T* stored(int64_t element) const {
    return reinterpret_cast<const T*>(weight_.data()) + element;
  }
  T* at(int64_t row, int64_t column) const {
    return reinterpret_cast<T*>(packed_.at(column / packed_.columns, row)) +
           column % packed_.columns;
  }

  // The last panel, when columns are missing there.
  void ClearBorder() const {
    if (n_ % packed_.columns == 0) return;
    std::fill_n(at(0, RoundedDown()), packed_.rows * packed_.columns, T{});
  }
  int64_t RoundedDown() const { return n_ / packed_.columns * packed_.columns; }

  // Rows [first, last) of [k, n], some at a time: what they put into a panel lies together.
  void TakeRows(int64_t first, int64_t last) const {
    for (int64_t top = first; top < last; top += kBlock) {
      const int64_t bottom = std::min(top + kBlock, last);
      for (int64_t column = 0; column < n_; column += packed_.columns) {
        const int64_t count = std::min(packed_.columns, n_ - column);
        for (int64_t row = top; row < bottom; ++row) {
          std::copy_n(stored(row * n_ + column), count, at(row, column));
        }
      }
    }
  }

  // Rows [first, last) of [n, k]: columns of the matrix, in blocks that fit into the nearest cache.
  void TakeColumns(int64_t first, int64_t last) const {
    for (int64_t begin = first; begin < last;) {
      const int64_t end = std::min(last, (begin / packed_.columns + 1) * packed_.columns);
      for (int64_t top = 0; top < packed_.rows; top += kBlock) {
        const int64_t bottom = std::min(top + kBlock, packed_.rows);
        for (int64_t column = begin; column < end; ++column) {
          const T* from = stored(column * packed_.rows);
          T* to = at(0, column);
          for (int64_t row = top; row < bottom; ++row) to[row * packed_.columns] = from[row];
        }
      }
      begin = end;
    }
  }

  const Tensor& weight_;
  const int64_t n_;
  const bool transposed_;
  Panels packed_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_PACKING_H_
