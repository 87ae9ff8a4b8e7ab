// Rows of float16, bfloat16 or float32 elements, computed on as float32 and rounded once.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_ROW_IO_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_ROW_IO_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/base/data_type.h"

namespace npumesh {

// Elements [first, first + count) of `data` as floats: in place for float32, else converted into
// `room`.
const float* LoadRow(DataType dtype, const void* data, int64_t first, int64_t count, float* room);

// Rounds `count` floats into elements [first, first + count) of `data`. `row` may be where
// `data` is.
void StoreRow(DataType dtype, const float* row, void* data, int64_t first, int64_t count);

// The sum of f(x[0]), f(x[1]), ... in one fixed order: sixteen float lanes, which compilers turn
// into vectors, are emptied into a double after at most 64 additions each. The error stays near
// that of adding 64 floats, however long the row is.
template <typename F>
double BlockedSum(const float* x, int64_t count, F f) {
  constexpr int64_t kLanes = 16;
  constexpr int64_t kBlock = kLanes * 64;
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = begin + kBlock < count ? begin + kBlock : count;
    std::array<float, kLanes> lanes{};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        lanes[static_cast<size_t>(lane)] += f(x[i + lane]);
      }
    }
    for (int64_t lane = 0; i < end; ++i, ++lane) lanes[static_cast<size_t>(lane)] += f(x[i]);
    for (const float lane : lanes) total += static_cast<double>(lane);
  }
  return total;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_ROW_IO_H_
