// The inner loops of products of int8: a few rows times the columns of one panel, by the vector
// instructions of the processor at hand.
//
// Two neighbouring places of k are a pair. Both operands are widened to int16; the two products of
// a pair are below 2^15 each, also where x is uint8, so their sum is exact, and sums are added
// modulo 2^32. No order changes them.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_INT8_KERNELS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_INT8_KERNELS_H_

#include <cstdint>

namespace npumesh {

// `pairs` pairs of some rows, packed: the first pair of each row side by side, then the second. The
// high half of each is the first place, as int16. `panel`: the first pair of each column side by
// side, then the second.
struct Int8Operands {
  const int32_t* x = nullptr;
  const int8_t* panel = nullptr;
  int64_t pairs = 0;
};

struct Int8Kernels {
  // y[rows, columns] = x panel, added to what is there when `adds`. Rows of y are y_stride apart.
  using Multiply = void (*)(const Int8Operands& operands, bool adds, int32_t* y, int64_t y_stride);

  int64_t columns = 0;                 // of a panel: two vectors of sums
  int64_t most_rows = 0;               // at once
  const Multiply* multiply = nullptr;  // by the number of rows less one: [most_rows]
};

// Those of the best instruction set that this processor has.
const Int8Kernels& ProcessorInt8Kernels();

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_INT8_KERNELS_H_
