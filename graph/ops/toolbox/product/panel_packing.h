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

// T: as wide as an element. kTogether: places of k that lie side by side, the first one last.
template <typename T, int64_t kTogether = 1>
class PanelPacking {
 public:
  // Of panels with `columns` columns. REQUIRES: k and n are not 0. Throws std::bad_alloc.
  PanelPacking(const Tensor& weight, int64_t k, int64_t n, bool transposed, int64_t columns)
      : weight_(weight), k_(k), n_(n), transposed_(transposed) {
    packed_.dtype = weight.dtype();
    packed_.columns = columns;
    packed_.rows = CeilDiv(k, kTogether);
    packed_.together = kTogether;
    packed_.panels = CeilDiv(n, columns);
    const auto rows = static_cast<uint64_t>(packed_.panels * packed_.rows);
    packed_.bytes = AllocatePacked(rows * packed_.row_bytes());
    ClearBorder();
  }

  Panels Run() {
    const int64_t row = transposed_ ? k_ : n_;  // elements
    const auto bytes = static_cast<uint64_t>(row) * sizeof(T);
    // No piece but the last ends between rows that lie side by side.
    const uint64_t rows = RoundedUp(std::max<uint64_t>(kPieceBytes / bytes, 1), kTogether);
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
  // Of the row of a panel that holds place `row`, the places beside it at `column`.
  T* at(int64_t row, int64_t column) const {
    return reinterpret_cast<T*>(packed_.at(column / packed_.columns, row / kTogether)) +
           column % packed_.columns * kTogether;
  }
  // Where a place of k lies among those beside it.
  static int64_t Seat(int64_t place) { return kTogether - 1 - place % kTogether; }

  // The last panel, when columns are missing there, and the last rows, when places of k are.
  void ClearBorder() const {
    const int64_t row = packed_.columns * kTogether;
    for (int64_t panel = 0; panel < packed_.panels; ++panel) {
      const bool whole = (panel + 1) * packed_.columns <= n_;
      const int64_t first = whole ? k_ / kTogether : 0;
      std::fill_n(at(first * kTogether, panel * packed_.columns), (packed_.rows - first) * row,
                  T{});
    }
  }

  // Rows [first, last) of [k, n], some at a time: what they put into a panel lies together.
  void TakeRows(int64_t first, int64_t last) const {
    const int64_t row_elements = packed_.columns * kTogether;
    for (int64_t top = first; top < last; top += kBlock) {
      const int64_t bottom = std::min(top + kBlock, last);
      for (int64_t column = 0; column < n_; column += packed_.columns) {
        const int64_t count = std::min(packed_.columns, n_ - column);
        const T* from = stored(top * n_ + column);
        T* to = at(top, column);
        for (int64_t row = top; row < bottom; row += kTogether, to += row_elements) {
          CopyRows(from, count, bottom - row, to);
          from += kTogether * n_;
        }
      }
    }
  }

  // The rows that lie side by side, or the `rows` that are left of them.
  void CopyRows(const T* from, int64_t count, int64_t rows, T* to) const {
    if constexpr (kTogether == 1) {
      std::copy_n(from, count, to);
    } else if (rows >= kTogether) {
      for (int64_t i = 0; i < count; ++i, ++from) {
        for (int64_t row = 0; row < kTogether; ++row) to[Seat(row)] = from[row * n_];
        to += kTogether;
      }
    } else {
      for (int64_t i = 0; i < count; ++i, ++from, to += kTogether) {
        for (int64_t row = 0; row < rows; ++row) to[Seat(row)] = from[row * n_];
      }
    }
  }

  // Rows [first, last) of [n, k]: columns of the matrix, in blocks that fit into the nearest cache.
  void TakeColumns(int64_t first, int64_t last) const {
    for (int64_t begin = first; begin < last;) {
      const int64_t end = std::min(last, (begin / packed_.columns + 1) * packed_.columns);
      for (int64_t top = 0; top < k_; top += kBlock) {
        const int64_t bottom = std::min(top + kBlock, k_);
        for (int64_t column = begin; column < end; ++column) {
          CopyColumn(stored(column * k_), top, bottom, at(0, column));
        }
      }
      begin = end;
    }
  }

  // Places [top, bottom) of a column, from the first of those side by side on. `to`: at(0, column).
  void CopyColumn(const T* from, int64_t top, int64_t bottom, T* to) const {
    const int64_t row_elements = packed_.columns * kTogether;
    to += top / kTogether * row_elements;
    int64_t i = top;
    for (; i + kTogether <= bottom; i += kTogether, to += row_elements) {
      for (int64_t row = 0; row < kTogether; ++row) to[Seat(row)] = from[i + row];
    }
    for (; i < bottom; ++i) to[Seat(i)] = from[i];
  }

  const Tensor& weight_;
  const int64_t k_, n_;
  const bool transposed_;
  Panels packed_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_PACKING_H_
