#include "graph/ops/toolbox/product/panel_kernels.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <type_traits>
#include <utility>

#include "graph/ops/toolbox/product/pair_kernels.h"

// Products are what a model's time goes into.
#define NPUMESH_SIMD_SSE4
#include "graph/ops/toolbox/lanes/simd_targets.h"
#include "graph/ops/toolbox/values/unroll.h"

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
// Sums of rows times vectors stay in registers, beside the vectors of the panel and an element of
// x: of 32 registers with AVX-512, of 16 otherwise. With AVX2 four rows times three vectors reach
// 0.99 of the peak and divide 128 rows; six times two reach 0.98, five, of which 128 rows need
// some, 0.94.
constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3;
constexpr int kPanelVectors = HWY_TARGET == HWY_AVX2 ? 3 : 2;
constexpr int kMostRows = kManyRegisters ? 12 : HWY_TARGET == HWY_AVX2 ? 4 : 6;
constexpr int64_t kColumns = kPanelVectors * kLanes;

// Vectors of a panel's elements as floats.
HWY_INLINE Vector Load(const float* from) {
  return hn::LoadU(Floats(), from);
}
HWY_INLINE Vector Load(const hwy::float16_t* from) {
  return WideHalves<hwy::float16_t>(Floats(), reinterpret_cast<const uint16_t*>(from));
}
HWY_INLINE Vector Load(const int8_t* from) {
  const hn::Rebind<int8_t, Floats> narrow;
  const hn::Rebind<int32_t, Floats> wide;
  return hn::ConvertTo(Floats(), hn::PromoteTo(wide, hn::LoadU(narrow, from)));
}

// The places of k that a row of a panel holds.
template <class Element>
constexpr int kPlaces = std::is_same_v<Element, hwy::bfloat16_t> ? 2 : 1;

// Place kPlace of those that lie side by side.
template <int kPlace, class Element>
HWY_INLINE Vector LoadPlace(const Element* from) {
  if constexpr (kPlaces<Element> == 1) {
    return Load(from);
  } else {
    const hn::RebindToUnsigned<Floats> bits;
    const auto both = hn::LoadU(bits, reinterpret_cast<const uint32_t*>(from));
    const auto high = kPlace == 0 ? hn::And(both, hn::Set(bits, 0xffff0000u))  //
                                  : hn::ShiftLeft<16>(both);
    return hn::BitCast(Floats(), high);
  }
}

// The sums of some rows with some vectors of a panel.
template <class Element, int kVectors, int kRows>
struct RowSums {
  Vector sums[kRows][kVectors];
  const float* x;
  float* widened;

  // Adds one place of k.
  template <int kPlace>
  HWY_INLINE void Add(const Element* panel) {
    const Floats d;
    Vector columns[kVectors];
    NPUMESH_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = LoadPlace<kPlace>(panel + v * kLanes * kPlaces<Element>);
    }
    if constexpr (!std::is_same_v<Element, float>) {
      // Between the products these stores take no time.
      if (widened != nullptr) {
        NPUMESH_UNROLL
        for (int v = 0; v < kVectors; ++v) hn::StoreU(columns[v], d, widened + v * kLanes);
        widened += kVectors * kLanes;
      }
    }
    NPUMESH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Vector all = hn::Set(d, x[r]);
      NPUMESH_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(columns[v], all, sums[r][v]);
    }
    x += kRows;
  }
};

template <class Element, int kVectors, int kRows>
void MultiplyRows(const PanelOperands& operands, bool adds, float* y, int64_t y_stride) {
  const Floats d;
  const auto* panel = static_cast<const Element*>(operands.panel);
  RowSums<Element, kVectors, kRows> rows;
  rows.x = static_cast<const float*>(operands.x);
  rows.widened = operands.widened;
  NPUMESH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    NPUMESH_UNROLL
    for (int v = 0; v < kVectors; ++v) rows.sums[r][v] = hn::Zero(d);
    // Rows of y lie far apart, and are wanted last.
    __builtin_prefetch(y + r * y_stride, 1);
    __builtin_prefetch(y + r * y_stride + kVectors * kLanes - 1, 1);
  }
  Asking asking(operands.ahead);
  constexpr int kTogether = kPlaces<Element>;
  const int64_t whole = operands.k / kTogether;  // rows
  for (int64_t i = 0; i < whole; ++i, panel += operands.panel_stride) {
    asking.At(i);
    rows.template Add<0>(panel);
    if constexpr (kTogether == 2) rows.template Add<1>(panel);
  }
  if (whole * kTogether < operands.k) rows.template Add<0>(panel);
  NPUMESH_UNROLL
  for (int r = 0; r < kRows; ++r, y += y_stride) {
    NPUMESH_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* const to = y + v * kLanes;
      hn::StoreU(adds ? hn::Add(Load(to), rows.sums[r][v]) : rows.sums[r][v], d, to);
    }
  }
}

template <class Element, int kVectors, int... kRowsLessOne>
constexpr auto MultiplyTable(std::integer_sequence<int, kRowsLessOne...>) {
  return std::array<PanelKernels::Multiply, sizeof...(kRowsLessOne)>{
      &MultiplyRows<Element, kVectors, kRowsLessOne + 1>...};
}
template <class Element, int kVectors, int kMost>
constexpr auto kMultiply =
    MultiplyTable<Element, kVectors>(std::make_integer_sequence<int, kMost>());
template <class Element, int kVectors>
constexpr auto kMultiplyOne = kMultiply<Element, kVectors, kMostRows>.data();
template <class Element>
constexpr auto kMultiplyTwo = kMultiply<Element, 2 * kPanelVectors, kMostRows / 2>.data();

constexpr PanelKernels::OfType kFloat32 = {
    .rows = {kMultiplyOne<float, 1>, kMultiplyOne<float, 2>, kMultiplyOne<float, kPanelVectors>},
    .parts = true};
// The wider a tile, the fewer elements are widened for its products. With 32 registers six rows of
// four vectors are the best for any number of rows, with 16 registers two panels at once only where
// the few sums of one would wait for each other (`bench_half`).
template <class Element>
constexpr PanelKernels::OfType Narrow() {
  constexpr auto kAll = kMultiplyOne<Element, kPanelVectors>;
  return {.rows = {kAll, kAll, kAll},
          .two = kMultiplyTwo<Element>,
          .two_to = kManyRegisters ? INT64_MAX : kMostRows / 2,
          .widens = !kManyRegisters};
}

// Rows of a stored matrix lie too far apart for a processor to foresee them.
constexpr int64_t kRowsAhead = 16;
HWY_INLINE void AskFor(const float* row, int64_t floats) {
  constexpr int64_t kLine = 16;
  for (int64_t i = 0; i < floats; i += kLine) __builtin_prefetch(row + i);
}

// One row and some panels that lie side by side.
template <int kPanels>
void MultiplyWide(const PanelOperands& operands, bool adds, float* y) {
  constexpr int kAll = kPanels * kPanelVectors;
  const auto* x = static_cast<const float*>(operands.x);
  const auto* panel = static_cast<const float*>(operands.panel);
  Vector sums[kAll];
  NPUMESH_UNROLL
  for (int v = 0; v < kAll; ++v) sums[v] = hn::Zero(Floats());
  for (int64_t i = 0; i < operands.k; ++i, panel += operands.panel_stride) {
    AskFor(panel + kRowsAhead * operands.panel_stride, kPanels * kColumns);
    const Vector all = hn::Set(Floats(), x[i]);
    NPUMESH_UNROLL
    for (int v = 0; v < kAll; ++v) sums[v] = hn::MulAdd(Load(panel + v * kLanes), all, sums[v]);
  }
  NPUMESH_UNROLL
  for (int v = 0; v < kAll; ++v, y += kLanes) {
    hn::StoreU(adds ? hn::Add(Load(y), sums[v]) : sums[v], Floats(), y);
  }
}

constexpr PanelKernels::MultiplyRow kWide[] = {&MultiplyWide<1>, &MultiplyWide<2>, &MultiplyWide<3>,
                                               &MultiplyWide<4>};
static_assert(std::size(kWide) == PanelKernels::kMostWide);

#if HWY_TARGET == HWY_SCALAR

constexpr int64_t kTogether = INT64_MAX;  // no rows
void TransposeFour(const float*, int64_t, float*, int64_t) {}

void MultiplyTurned(const PanelOperands& operands, bool adds, float* y) {
  const auto* x = static_cast<const float*>(operands.x);
  for (int64_t j = 0; j < kColumns; ++j) {
    const float* row = static_cast<const float*>(operands.panel) + j * operands.panel_stride;
    float sum = 0.0f;
    for (int64_t i = 0; i < operands.k; ++i) sum = row[i] * x[i] + sum;
    y[j] = adds ? y[j] + sum : sum;
  }
}

#else

constexpr int64_t kTogether = 4;
using Quad = hn::FixedTag<float, kTogether>;

// Four vectors as the columns of four.
struct Quads {
  hn::Vec<Quad> a, b, c, d;

  HWY_INLINE static Quads Load(const float* from, int64_t stride) {
    return {hn::LoadU(Quad(), from), hn::LoadU(Quad(), from + stride),
            hn::LoadU(Quad(), from + 2 * stride), hn::LoadU(Quad(), from + 3 * stride)};
  }
  HWY_INLINE Quads Transposed() const {
    const Quad q;
    const auto ab = hn::InterleaveLower(q, a, b), ab_high = hn::InterleaveUpper(q, a, b);
    const auto cd = hn::InterleaveLower(q, c, d), cd_high = hn::InterleaveUpper(q, c, d);
    return {hn::ConcatLowerLower(q, cd, ab), hn::ConcatUpperUpper(q, cd, ab),
            hn::ConcatLowerLower(q, cd_high, ab_high), hn::ConcatUpperUpper(q, cd_high, ab_high)};
  }
  HWY_INLINE void Store(float* to, int64_t stride) const {
    hn::StoreU(a, Quad(), to);
    hn::StoreU(b, Quad(), to + stride);
    hn::StoreU(c, Quad(), to + 2 * stride);
    hn::StoreU(d, Quad(), to + 3 * stride);
  }
};

HWY_INLINE void TransposeFour(const float* from, int64_t from_stride, float* to,
                              int64_t to_stride) {
  Quads::Load(from, from_stride).Transposed().Store(to, to_stride);
}

// The sums of some groups of four stored rows, each row a column of the product.
template <int kGroups>
struct TurnedSums {
  hn::Vec<Quad> sum;
  TurnedSums<kGroups - 1> below;

  HWY_INLINE void Clear() {
    sum = hn::Zero(Quad());
    below.Clear();
  }
  // Four places of k.
  HWY_INLINE void AddFour(const float* rows, int64_t stride, const float* x) {
    const Quads places = Quads::Load(rows, stride).Transposed();
    sum = hn::MulAdd(places.a, hn::Set(Quad(), x[0]), sum);
    sum = hn::MulAdd(places.b, hn::Set(Quad(), x[1]), sum);
    sum = hn::MulAdd(places.c, hn::Set(Quad(), x[2]), sum);
    sum = hn::MulAdd(places.d, hn::Set(Quad(), x[3]), sum);
    below.AddFour(rows + kTogether * stride, stride, x);
  }
  HWY_INLINE void AddOne(const float* rows, int64_t stride, float x) {
    const float place[] = {rows[0], rows[stride], rows[2 * stride], rows[3 * stride]};
    sum = hn::MulAdd(hn::LoadU(Quad(), place), hn::Set(Quad(), x), sum);
    below.AddOne(rows + kTogether * stride, stride, x);
  }
  HWY_INLINE void Store(bool adds, float* y) const {
    hn::StoreU(adds ? hn::Add(hn::LoadU(Quad(), y), sum) : sum, Quad(), y);
    below.Store(adds, y + kTogether);
  }
};
template <>
struct TurnedSums<0> {
  HWY_INLINE void Clear() {}
  HWY_INLINE void AddFour(const float*, int64_t, const float*) {}
  HWY_INLINE void AddOne(const float*, int64_t, float) {}
  HWY_INLINE void Store(bool, float*) const {}
};

void MultiplyTurned(const PanelOperands& operands, bool adds, float* y) {
  const auto* x = static_cast<const float*>(operands.x);
  const auto* rows = static_cast<const float*>(operands.panel);
  const int64_t stride = operands.panel_stride;
  TurnedSums<kColumns / kTogether> sums;
  sums.Clear();
  for (int64_t r = kColumns; r < 2 * kColumns; ++r) AskFor(rows + r * stride, operands.k);
  int64_t i = 0;
  for (; i + kTogether <= operands.k; i += kTogether) {
    sums.AddFour(rows + i, stride, x + i);
  }
  for (; i < operands.k; ++i) sums.AddOne(rows + i, stride, x[i]);
  sums.Store(adds, y);
}

#endif  // HWY_TARGET == HWY_SCALAR

// Calls body(i) for 0, kTogether, ..., and at the end for the last that fit, which some have seen
// before.
template <class Body>
HWY_INLINE void EachFour(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kTogether <= count; i += kTogether) body(i);
  if (i < count) body(count - kTogether);
}

// A cache line of columns at a time: rows that are a multiple of 4 KiB apart push each other out of
// the first cache.
void TransposeByFours(const float* from, int64_t from_stride, int64_t rows, int64_t columns,
                      float* to, int64_t to_stride) {
  constexpr int64_t kLine = 16;
  for (int64_t first = 0; first < columns; first += kLine) {
    const int64_t begin = std::min(first, columns - kTogether);
    const int64_t count = std::min(kLine, columns - begin);
    EachFour(rows, [&](int64_t r) HWY_ATTR {
      EachFour(count, [&](int64_t c) HWY_ATTR {
        const int64_t column = begin + c;
        TransposeFour(from + r * from_stride + column, from_stride, to + column * to_stride + r,
                      to_stride);
      });
    });
  }
}

void Transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
               int64_t to_stride) {
  if (rows >= kTogether && columns >= kTogether) {
    return TransposeByFours(from, from_stride, rows, columns, to, to_stride);
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

constexpr PanelKernels kKernels = {kLanes,
                                   kColumns,
                                   kMostRows,
                                   kFloat32,
                                   Narrow<hwy::float16_t>(),
                                   Narrow<hwy::bfloat16_t>(),
                                   Narrow<int8_t>(),
                                   {},
                                   kWide,
                                   &MultiplyTurned,
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
  static const PanelKernels kernels = [] {
    PanelKernels made = *HWY_DYNAMIC_DISPATCH(Kernels)();
    made.pairs = PairKernels(made);
    return made;
  }();
  return kernels;
}

}  // namespace npumesh
#endif  // HWY_ONCE
