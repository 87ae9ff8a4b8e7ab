#include "graph/ops/toolbox/product/int8_kernels.h"

#include <array>
#include <utility>

// Products are what a model's time goes into.
#define NPUMESH_SIMD_SSE4
#include "graph/ops/toolbox/lanes/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/toolbox/product/int8_kernels.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using PairSums = hn::CappedTag<int32_t, 16>;
constexpr int64_t kSumLanes = hn::MaxLanes(PairSums());
constexpr int64_t kInt8Columns = 2 * kSumLanes;
// Two vectors of sums a row stay in registers, beside two of the panel, a pair of x and a product:
// of 32 registers with AVX-512, of 16 otherwise.
constexpr int kMostInt8Rows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;

#if HWY_TARGET == HWY_SCALAR  // has no pairs

// As many int32 as a vector has.
struct PairSum {
  uint32_t sum;

  void Clear() { sum = 0; }
  void Add(const int8_t* panel, int32_t pair) {
    const int32_t low = static_cast<int16_t>(pair), high = pair >> 16;
    sum += static_cast<uint32_t>(panel[0] * low + panel[1] * high);
  }
  void Store(bool adds, int32_t* y) const {
    *y = static_cast<int32_t>(sum + (adds ? static_cast<uint32_t>(*y) : 0u));
  }
};
using PanelPairs = const int8_t*;
using RowPair = int32_t;

PanelPairs LoadPairs(const int8_t* panel) {
  return panel;
}
RowPair ForColumns(int32_t pair) {
  return pair;
}

#else

using PairElements = hn::Repartition<int16_t, PairSums>;
using PanelPairs = hn::Vec<PairElements>;
using RowPair = hn::Vec<PairElements>;

// The sums of a row with the columns of a vector. Highway may keep those of even and of odd places
// apart, or those of the lower and of the upper columns, until they are stored.
struct PairSum {
  hn::Vec<PairSums> first, second;

  HWY_INLINE void Clear() { first = second = hn::Zero(PairSums()); }
  HWY_INLINE void Add(PanelPairs panel, RowPair x) {
    first = hn::ReorderWidenMulAccumulate(PairSums(), panel, x, first, second);
  }
  HWY_INLINE void Store(bool adds, int32_t* y) const {
    const auto sum = hn::RearrangeToOddPlusEven(first, second);
    hn::StoreU(adds ? hn::Add(sum, hn::LoadU(PairSums(), y)) : sum, PairSums(), y);
  }
};

HWY_INLINE PanelPairs LoadPairs(const int8_t* panel) {
  const hn::Rebind<int8_t, PairElements> narrow;
  return hn::PromoteTo(PairElements(), hn::LoadU(narrow, panel));
}
// The same pair for all columns.
HWY_INLINE RowPair ForColumns(int32_t pair) {
  return hn::BitCast(PairElements(), hn::Set(PairSums(), pair));
}

#endif

// The sums of some rows. (Named one by one, and by recursion, they stay in registers.)
template <int kRows>
struct RowPairSums {
  PairSum left, right;
  RowPairSums<kRows - 1> below;

  HWY_INLINE void Clear() {
    left.Clear();
    right.Clear();
    below.Clear();
  }
  HWY_INLINE void Add(PanelPairs panel_left, PanelPairs panel_right, const int32_t* x) {
    const RowPair pair = ForColumns(*x);
    left.Add(panel_left, pair);
    right.Add(panel_right, pair);
    below.Add(panel_left, panel_right, x + 1);
  }
  HWY_INLINE void Store(bool adds, int32_t* y, int64_t stride) const {
    left.Store(adds, y);
    right.Store(adds, y + kSumLanes);
    below.Store(adds, y + stride, stride);
  }
};

template <>
struct RowPairSums<0> {
  HWY_INLINE void Clear() {}
  HWY_INLINE void Add(PanelPairs, PanelPairs, const int32_t*) {}
  HWY_INLINE void Store(bool, int32_t*, int64_t) const {}
};

template <int kRows>
void MultiplyInt8Rows(const Int8Operands& operands, bool adds, int32_t* y, int64_t y_stride) {
  const int32_t* x = operands.x;
  const int8_t* panel = operands.panel;
  RowPairSums<kRows> sums;
  sums.Clear();
  for (int64_t i = 0; i < operands.pairs; ++i, x += kRows, panel += 2 * kInt8Columns) {
    sums.Add(LoadPairs(panel), LoadPairs(panel + kInt8Columns), x);
  }
  sums.Store(adds, y, y_stride);
}

template <int... kRowsLessOne>
constexpr auto Int8Table(std::integer_sequence<int, kRowsLessOne...>) {
  return std::array<Int8Kernels::Multiply, sizeof...(kRowsLessOne)>{
      &MultiplyInt8Rows<kRowsLessOne + 1>...};
}
constexpr auto kMultiplyInt8 = Int8Table(std::make_integer_sequence<int, kMostInt8Rows>());

constexpr Int8Kernels kInt8Kernels = {kInt8Columns, kMostInt8Rows, kMultiplyInt8.data()};

const Int8Kernels* KernelsOfInt8() {
  return &kInt8Kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {
namespace {

HWY_EXPORT(KernelsOfInt8);

}  // namespace

const Int8Kernels& ProcessorInt8Kernels() {
  return *HWY_DYNAMIC_DISPATCH(KernelsOfInt8)();
}

}  // namespace npumesh
#endif  // HWY_ONCE
