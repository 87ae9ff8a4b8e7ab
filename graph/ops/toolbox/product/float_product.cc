#include "graph/ops/toolbox/product/float_product.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "graph/ops/toolbox/product/panel_product.h"

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

// Room of the calling thread, which grows to what its largest product needs.
float* RoomOfThread(int64_t floats) {
  struct Free {
    void operator()(float* room) const { std::free(room); }
  };
  static thread_local std::unique_ptr<float, Free> room;
  static thread_local int64_t size = 0;
  if (floats > size) {
    constexpr size_t kLine = 64;
    const size_t bytes = static_cast<size_t>(floats) * sizeof(float);
    room.reset(static_cast<float*>(std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine)));
    size = room != nullptr ? floats : 0;
  }
  return room.get();
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
  const PanelProduct product(m, n, k);
  const int threads = omp_get_max_threads();
  float* const room = RoomOfThread(product.room_floats() * threads);
  if (room == nullptr) {
    return Error(Code::kOutOfMemory, "no memory for the product [{},{}] x [{},{}]", m, k, k, n);
  }
  product.Run({.x = a, .w = b, .y = y, .y_stride = y_stride, .adds = adds}, threads, room);
  return Status();
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
