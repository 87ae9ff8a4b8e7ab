// The inner loops of products of floats: a few rows times the columns of one panel, by the vector
// instructions of the processor at hand.
//
// Each element of the result is a chain of fused multiply-adds (on processors without them:
// products and sums) in the order of k that begins at zero. So its bits hang neither on its row nor
// on its column, and are those of any other processor that has fused multiply-adds. (Instructions
// for pairs of bfloat16 take numbers below 2^-126 for zeros; otherwise they are such a chain.)
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_KERNELS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "runtime/base/data_type.h"

namespace npumesh {

// Memory that is wanted soon. At every `every`-th row of a panel, from the first on, one line of it
// is asked for, into the second cache; 0: nothing is. All rows ask for `bytes`.
struct Ahead {
  static constexpr int64_t kLine = 64;
  const std::byte* data = nullptr;
  int64_t every = 0;
  int64_t bytes = 0;
};

// Asks for it while the rows of a panel are walked through.
class Asking {
 public:
  explicit Asking(const Ahead& ahead)
      : data_(ahead.data), every_(ahead.every), next_(every_ > 0 ? 0 : -1) {}

  // REQUIRES: is called for each row, 0, 1, ...
  [[gnu::always_inline]] void At(int64_t row) {
    if (row != next_) return;
    __builtin_prefetch(data_, 0, 2);
    data_ += Ahead::kLine;
    next_ += every_;
  }

 private:
  const std::byte* data_;
  const int64_t every_;
  int64_t next_;  // the row to ask at; -1: none
};

// `k` elements of some rows, packed, as floats: those of the first place in k side by side, then
// those of the second. `panel`: the elements of the columns, `panel_stride` elements from one place
// in k to the next; of bfloat16, from one pair of places to the next: those of a column lie side by
// side, the first one in the high half of 32 bits. `widened`: where the elements of a panel that is
// not of float32 go as floats, for other rows; null: nowhere.
struct PanelOperands {
  const void* x = nullptr;
  const void* panel = nullptr;
  int64_t panel_stride = 0;
  int64_t k = 0;
  float* widened = nullptr;
  Ahead ahead;
};

struct PanelKernels {
  // y[rows, columns] = x panel, added to what is there when `adds`. Rows of y are y_stride apart.
  using Multiply = void (*)(const PanelOperands& operands, bool adds, float* y, int64_t y_stride);
  // The same for one row and what is stored in float32, asking for what comes after it: up to
  // kMostWide panels that lie side by side, or the columns of a panel that are stored as rows,
  // panel_stride apart.
  static constexpr int64_t kMostWide = 4;
  using MultiplyRow = void (*)(const PanelOperands& operands, bool adds, float* y);
  // to[c * to_stride + r] = from[r * from_stride + c] for all rows r and columns c.
  using Transpose = void (*)(const float* from, int64_t from_stride, int64_t rows, int64_t columns,
                             float* to, int64_t to_stride);

  int64_t lanes = 0;      // of a vector
  int64_t columns = 0;    // of a panel: two or three vectors
  int64_t most_rows = 0;  // at once
  // The loops over the columns of panels of a type.
  struct OfType {
    // The first columns of a panel, by the number of vectors less one and by the number of rows
    // less one: [most_rows].
    static constexpr int64_t kMostVectors = 3;
    const Multiply* rows[kMostVectors] = {};
    // Two panels that lie side by side, by the number of rows less one: [most_rows / 2]. Faster up
    // to so many rows of x. Null: not at all, so panels lie one after the other.
    const Multiply* two = nullptr;
    int64_t two_to = 0;
    bool parts = false;   // only the vectors asked for are computed; otherwise all of a panel
    bool widens = false;  // several tiles are faster when the first one widens for them
  };
  OfType float32, float16, bfloat16, int8;
  // For columns of bfloat16 and an x of bfloat16, too: pairs of places lie in 32 bits as those of
  // the columns do, with a zero where k ends. Nulls: the processor has no instructions for it.
  OfType pairs;
  const MultiplyRow* wide = nullptr;  // [kMostWide], by the number of panels less one
  MultiplyRow turned = nullptr;
  Transpose transpose = nullptr;

  const OfType& of(DataType dtype) const {
    if (dtype == DataType::kFloat) return float32;
    if (dtype == DataType::kInt8) return int8;
    return dtype == DataType::kFloat16 ? float16 : bfloat16;
  }
  // Whether of a panel exactly these columns are computed, and none after them.
  bool whole(const OfType& kernels, int64_t count) const {
    return count == columns || (kernels.parts && count % lanes == 0);
  }
};

// Those of the best instruction set that this processor has.
const PanelKernels& ProcessorPanelKernels();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PANEL_KERNELS_H_
