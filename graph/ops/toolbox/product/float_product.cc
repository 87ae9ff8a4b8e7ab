#include "graph/ops/toolbox/product/float_product.h"

#include <oneapi/dnnl/dnnl.h>

#include <omp.h>

#include <algorithm>

namespace npumesh {
namespace {

// A product of two 8-bit integers is at most 2^14, so sums of this many, and all sums on the way,
// are integers of at most 2^24, which float32 holds exactly. oneDNN's own 8-bit products saturate
// on processors without VNNI instructions.
constexpr int64_t kExactTerms = 1024;

FloatMatrix ColumnsFrom(FloatMatrix matrix, int64_t first) {
  matrix.data += matrix.transposed ? first * matrix.stride : first;
  return matrix;
}

FloatMatrix RowsFrom(FloatMatrix matrix, int64_t first) {
  matrix.data += matrix.transposed ? first : first * matrix.stride;
  return matrix;
}

// What oneDNN takes for the distance of stored rows. Where there is only one row the stride says
// nothing (views give 0 for it), but oneDNN still wants it to be as wide as the row.
int64_t LeadingDimension(const FloatMatrix& matrix, int64_t rows, int64_t columns) {
  if (matrix.transposed) std::swap(rows, columns);
  return rows == 1 ? std::max(matrix.stride, columns) : matrix.stride;
}

}  // namespace

ThreadCount::ThreadCount(int threads) : before_(omp_get_max_threads()) {
  omp_set_num_threads(threads);
}

ThreadCount::~ThreadCount() {
  omp_set_num_threads(before_);
}

Status Multiply(int64_t m, int64_t n, int64_t k, FloatMatrix a, FloatMatrix b, bool adds, float* y,
                int64_t y_stride) {
  if (m == 0 || n == 0) return Status();
  if (k == 0) {
    for (int64_t i = 0; i < m && !adds; ++i) std::fill_n(y + i * y_stride, n, 0.0f);
    return Status();
  }
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data,
                 LeadingDimension(a, m, k), b.data, LeadingDimension(b, k, n), adds ? 1.0f : 0.0f,
                 y, m == 1 ? std::max(y_stride, n) : y_stride);
  if (status == dnnl_success) return Status();
  return Error(Code::kInternal, "oneDNN refuses the product [{},{}] x [{},{}] with status {}", m, k,
               k, n, static_cast<int>(status));
}

Status MultiplyIntegers(int64_t m, int64_t n, int64_t k, FloatMatrix a, FloatMatrix b, float* room,
                        int32_t* y) {
  std::fill_n(y, m * n, 0);
  for (int64_t first = 0; first < k; first += kExactTerms) {
    const int64_t terms = std::min(kExactTerms, k - first);
    NPUMESH_RETURN_IF_ERROR(
        Multiply(m, n, terms, ColumnsFrom(a, first), RowsFrom(b, first), false, room, n));
    for (int64_t i = 0; i < m * n; ++i) {
      const auto part = static_cast<uint32_t>(static_cast<int32_t>(room[i]));
      y[i] = static_cast<int32_t>(static_cast<uint32_t>(y[i]) + part);
    }
  }
  return Status();
}

}  // namespace npumesh
