#include "graph/ops/toolbox/product/panel_kernels.h"

#include <array>
#include <utility>

// Products are what a model's time goes into.
#define NPUMESH_SIMD_SSE4
#include "graph/ops/toolbox/values/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/toolbox/product/panel_kernels.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After Highway.
#include "graph/ops/toolbox/values/half_io-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Floats>;
constexpr int64_t kLanes = hn::MaxLanes(Floats());
constexpr int64_t kColumns = 2 * kLanes;
// Two sums a row stay in registers, beside two vectors of the panel and an element of x: of 32
// registers with AVX-512, of 16 otherwise.
constexpr int kMostRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;

// The sums of some rows. (Named one by one, and by recursion, they stay in registers.)
template <int kRows>
struct Sums {
  Vector left, right;
  Sums<kRows - 1> below;

  HWY_INLINE void Clear() {
    left = right = hn::Zero(Floats());
    below.Clear();
  }
  HWY_INLINE void Add(Vector panel_left, Vector panel_right, const float* x) {
    const Vector all = hn::Set(Floats(), *x);
    left = hn::MulAdd(panel_left, all, left);
    right = hn::MulAdd(panel_right, all, right);
    below.Add(panel_left, panel_right, x + 1);
  }
  HWY_INLINE void AddStored(const float* y, int64_t stride) {
    left = hn::Add(hn::LoadU(Floats(), y), left);
    right = hn::Add(hn::LoadU(Floats(), y + kLanes), right);
    below.AddStored(y + stride, stride);
  }
  HWY_INLINE void Store(float* y, int64_t stride) const {
    hn::StoreU(left, Floats(), y);
    hn::StoreU(right, Floats(), y + kLanes);
    below.Store(y + stride, stride);
  }
};

template <>
struct Sums<0> {
  HWY_INLINE void Clear() {}
  HWY_INLINE void Add(Vector, Vector, const float*) {}
  HWY_INLINE void AddStored(const float*, int64_t) {}
  HWY_INLINE void Store(float*, int64_t) const {}
};

// Vectors of a panel's elements as floats.
HWY_INLINE Vector Load(const float* from) {
  return hn::LoadU(Floats(), from);
}
template <class Half>
HWY_INLINE Vector Load(const Half* from) {
  return WideHalves<Half>(Floats(), reinterpret_cast<const uint16_t*>(from));
}

template <class Element, int kRows>
void MultiplyRows(const PanelOperands& operands, bool adds, float* y, int64_t y_stride) {
  const float* x = operands.x;
  const auto* panel = static_cast<const Element*>(operands.panel);
  Sums<kRows> sums;
  sums.Clear();
  for (int64_t i = 0; i < operands.k; ++i, x += kRows, panel += operands.panel_stride) {
    sums.Add(Load(panel), Load(panel + kLanes), x);
  }
  if (adds) sums.AddStored(y, y_stride);
  sums.Store(y, y_stride);
}

template <class Element, int... kRowsLessOne>
constexpr auto MultiplyTable(std::integer_sequence<int, kRowsLessOne...>) {
  return std::array<PanelKernels::Multiply, sizeof...(kRowsLessOne)>{
      &MultiplyRows<Element, kRowsLessOne + 1>...};
}
template <class Element>
constexpr auto kMultiply = MultiplyTable<Element>(std::make_integer_sequence<int, kMostRows>());

#if HWY_TARGET == HWY_SCALAR
constexpr int64_t kTogether = INT64_MAX;  // no rows
void TransposeFour(const float*, int64_t, float*, int64_t) {}
#else
constexpr int64_t kTogether = 4;
void TransposeFour(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  const hn::FixedTag<float, 4> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
  const auto e = hn::LoadU(d, from + 2 * from_stride), f = hn::LoadU(d, from + 3 * from_stride);
  const auto ab = hn::InterleaveLower(d, a, b), ab_high = hn::InterleaveUpper(d, a, b);
  const auto ef = hn::InterleaveLower(d, e, f), ef_high = hn::InterleaveUpper(d, e, f);
  hn::StoreU(hn::ConcatLowerLower(d, ef, ab), d, to);
  hn::StoreU(hn::ConcatUpperUpper(d, ef, ab), d, to + to_stride);
  hn::StoreU(hn::ConcatLowerLower(d, ef_high, ab_high), d, to + 2 * to_stride);
  hn::StoreU(hn::ConcatUpperUpper(d, ef_high, ab_high), d, to + 3 * to_stride);
}
#endif

void Transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
               int64_t to_stride) {
  const int64_t whole_rows = rows / kTogether * kTogether;
  const int64_t whole_columns = columns / kTogether * kTogether;
  for (int64_t c = 0; c < whole_columns; c += kTogether) {
    for (int64_t r = 0; r < whole_rows; r += kTogether) {
      TransposeFour(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first = r < whole_rows ? whole_columns : 0;
    for (int64_t c = first; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

constexpr PanelKernels kKernels = {kColumns,
                                   kMostRows,
                                   kMultiply<float>.data(),
                                   kMultiply<hwy::float16_t>.data(),
                                   kMultiply<hwy::bfloat16_t>.data(),
                                   &Transpose};

const PanelKernels* Kernels() {
  return &kKernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {
namespace {

HWY_EXPORT(Kernels);

}  // namespace

const PanelKernels& ProcessorPanelKernels() {
  static const PanelKernels& kernels = *HWY_DYNAMIC_DISPATCH(Kernels)();
  return kernels;
}

}  // namespace npumesh
#endif  // HWY_ONCE
