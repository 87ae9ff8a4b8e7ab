// Rows of numbers folded into one number, in one fixed order that vectors can follow. Static
// kernels fold in the same order (toolbox/lanes/rows.lanes.h).
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_FOLD_ROW_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_FOLD_ROW_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>

namespace npumesh {

template <typename T>
bool IsBelowZero(T a) {
  if constexpr (std::is_floating_point_v<T>) return std::signbit(a);
  return false;
}
// NaN wins; of zeros with both signs the positive one is the largest, the negative one the least.
template <typename T>
struct LargerOf {
  T operator()(T a, T b) const { return a > b || a != a || (a == b && !IsBelowZero(a)) ? a : b; }
};
template <typename T>
struct SmallerOf {
  T operator()(T a, T b) const { return a < b || a != a || (a == b && IsBelowZero(a)) ? a : b; }
};

// Elements that are folded by themselves before they join the total.
inline constexpr size_t kFoldBlock = 512;

// Joins a block, of at most kFoldBlock elements, to `total`: the block as sixteen lanes, which are
// joined one after the other. REQUIRES: count > 0.
template <typename Join, typename T>
T JoinBlock(T total, const T* x, size_t count) {
  constexpr size_t kLanes = 16;
  std::array<T, kLanes> lanes{};
  const size_t used = std::min(kLanes, count);
  std::copy_n(x, used, lanes.begin());
  size_t i = used;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) lanes[k] = Join()(lanes[k], x[i + k]);
  }
  for (size_t k = 0; i + k < count; ++k) lanes[k] = Join()(lanes[k], x[i + k]);
  T block = lanes[0];
  for (size_t k = 1; k < used; ++k) block = Join()(block, lanes[k]);
  return Join()(total, block);
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_VALUES_FOLD_ROW_H_
