// Products of matrices whose sizes are only known while a kernel runs: tiles of attention, the
// groups of GroupedMatmul, dequantised weights. Plain float32 matrices in memory, computed by
// panels (panel_product.h), whose room the calling thread keeps.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_FLOAT_PRODUCT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_FLOAT_PRODUCT_H_

#include <cstdint>

#include "runtime/base/status.h"

namespace npumesh {

// Sets the number of threads that products and oneDNN use on the calling thread, and puts it back.
// Both take it from OpenMP's setting.
class ThreadCount {
 public:
  explicit ThreadCount(int threads);
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

// A matrix as stored: rows `stride` elements apart. A transposed one stands for its transposition.
struct FloatMatrix {
  const float* data = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};

// y[m, n] = a[m, k] b[k, n], plus y when `adds`. Rows of y are `y_stride` apart. k = 0 gives zeros.
// Error: kOutOfMemory.
Status Multiply(int64_t m, int64_t n, int64_t k, FloatMatrix a, FloatMatrix b, bool adds, float* y,
                int64_t y_stride);

// y[m, n] = a b for integers of at most 8 bits that are stored as floats: exact, modulo 2^32. Rows
// of y are n apart. `room`: m * n floats.
Status MultiplyIntegers(int64_t m, int64_t n, int64_t k, FloatMatrix a, FloatMatrix b, float* room,
                        int32_t* y);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_FLOAT_PRODUCT_H_
