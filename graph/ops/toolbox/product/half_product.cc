#include "graph/ops/toolbox/product/half_product.h"

#include <algorithm>
#include <type_traits>

#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/toolbox/product/half_product.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
constexpr size_t kVectors = 4;  // of columns at once: Four

template <class Half>
hn::Vec<Floats> Wide(const uint16_t* from) {
  const hn::Rebind<Half, Floats> dh;
  const auto wide = hn::PromoteTo(Floats(), hn::LoadU(dh, reinterpret_cast<const Half*>(from)));
  // Without F16C Highway takes infinity and NaN of float16 for numbers from 65536 on, which no
  // float16 is: what lacks is the exponent.
  constexpr bool kHasF16c = HWY_TARGET <= HWY_AVX2;
  if constexpr (kHasF16c || !std::is_same_v<Half, hwy::float16_t>) return wide;
  const auto special = hn::Ge(hn::Abs(wide), hn::Set(Floats(), 65536.0f));
  return hn::IfThenElse(special, hn::Or(wide, hn::Inf(Floats())), wide);
}

// kVectors vectors of a row. (Named one by one, they stay in registers without being unrolled.)
struct Four {
  hn::Vec<Floats> a, b, c, d;

  void Add(const Four& weights, float factor) {
    const auto all = hn::Set(Floats(), factor);
    a = hn::MulAdd(weights.a, all, a);
    b = hn::MulAdd(weights.b, all, b);
    c = hn::MulAdd(weights.c, all, c);
    d = hn::MulAdd(weights.d, all, d);
  }
  void Store(float* to) const {
    const Floats tag;
    const size_t lanes = hn::Lanes(tag);
    hn::StoreU(a, tag, to);
    hn::StoreU(b, tag, to + lanes);
    hn::StoreU(c, tag, to + 2 * lanes);
    hn::StoreU(d, tag, to + 3 * lanes);
  }
};

template <class Half>
Four WideFour(const uint16_t* from) {
  const size_t lanes = hn::Lanes(Floats());
  return {Wide<Half>(from), Wide<Half>(from + lanes), Wide<Half>(from + 2 * lanes),
          Wide<Half>(from + 3 * lanes)};
}

// kRows rows of x with kVectors vectors of columns. `panel` and `y` begin at the first column.
template <class Half, int kRows>
void MultiplyTile(const float* x, int64_t k, const uint16_t* panel, float* y) {
  const auto zero = hn::Zero(Floats());
  Four row0{zero, zero, zero, zero}, row1 = row0, row2 = row0, row3 = row0;
  for (int64_t i = 0; i < k; ++i, panel += kPanelColumns) {
    const Four weights = WideFour<Half>(panel);
    row0.Add(weights, x[i]);
    if constexpr (kRows > 1) row1.Add(weights, x[k + i]);
    if constexpr (kRows > 2) row2.Add(weights, x[2 * k + i]);
    if constexpr (kRows > 2) row3.Add(weights, x[3 * k + i]);
  }
  row0.Store(y);
  if constexpr (kRows > 1) row1.Store(y + kPanelColumns);
  if constexpr (kRows > 2) row2.Store(y + 2 * kPanelColumns);
  if constexpr (kRows > 2) row3.Store(y + 3 * kPanelColumns);
}

template <class Half>
void MultiplyHalves(const float* x, int64_t m, int64_t k, const uint16_t* panel, float* y) {
  const auto step = static_cast<int64_t>(kVectors * hn::Lanes(Floats()));
  for (int64_t column = 0; column < kPanelColumns; column += step) {
    const uint16_t* weights = panel + column;
    float* to = y + column;
    int64_t r = 0;
    for (; r + 4 <= m; r += 4) {
      MultiplyTile<Half, 4>(x + r * k, k, weights, to + r * kPanelColumns);
    }
    for (; r + 2 <= m; r += 2) {
      MultiplyTile<Half, 2>(x + r * k, k, weights, to + r * kPanelColumns);
    }
    if (r < m) MultiplyTile<Half, 1>(x + r * k, k, weights, to + r * kPanelColumns);
  }
}

void MultiplyPanel(DataType dtype, const float* x, int64_t m, int64_t k, const uint16_t* panel,
                   float* y) {
  dtype == DataType::kFloat16 ? MultiplyHalves<hwy::float16_t>(x, m, k, panel, y)
                              : MultiplyHalves<hwy::bfloat16_t>(x, m, k, panel, y);
}

template <class Half>
void WidenHalves(const uint16_t* from, int64_t count, float* to) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) hn::StoreU(Wide<Half>(from + i), d, to + i);
}

void WidenPanel(DataType dtype, const uint16_t* from, int64_t count, float* to) {
  dtype == DataType::kFloat16 ? WidenHalves<hwy::float16_t>(from, count, to)
                              : WidenHalves<hwy::bfloat16_t>(from, count, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {
namespace {

HWY_EXPORT(MultiplyPanel);
HWY_EXPORT(WidenPanel);

// Bytes of the stored weight that are worked on at once.
constexpr int64_t kPieceBytes = int64_t{8} << 20;
constexpr int64_t kRowMultiple = 16;
// Rows of panels that are filled together.
constexpr int64_t kBlock = 32;

class Packing {
 public:
  Packing(const Tensor& weight, int64_t k, int64_t n, bool transposed)
      : weight_(weight), k_(k), n_(n), transposed_(transposed) {
    packed_.rows = RoundedUp(k, kRowMultiple);
    packed_.panels = CeilDiv(n, kPanelColumns);
    packed_.bytes = AllocatePacked(
        static_cast<uint64_t>(packed_.panels * packed_.rows * kPanelColumns) * sizeof(uint16_t));
    ClearBorders();
  }

  HalfPanels Run() {
    const int64_t row = transposed_ ? k_ : n_;  // elements
    const int64_t rows = std::max<int64_t>(kPieceBytes / 2 / row, 1);
    const auto bytes = static_cast<uint64_t>(row) * 2;
    weight_.Stream(static_cast<uint64_t>(rows) * bytes, [&](uint64_t offset, uint64_t count) {
      const auto first = static_cast<int64_t>(offset / bytes);
      const auto last = first + static_cast<int64_t>(count / bytes);
      transposed_ ? TakeColumns(first, last) : TakeRows(first, last);
    });
    return std::move(packed_);
  }

 private:
  const uint16_t* stored(int64_t element) const {
    return reinterpret_cast<const uint16_t*>(weight_.data()) + element;
  }
  uint16_t* at(int64_t row, int64_t column) const {
    return packed_.panel(column / kPanelColumns) + row * kPanelColumns + column % kPanelColumns;
  }

  // What no weight fills: rows after k, and the last panel when columns are missing there.
  void ClearBorders() const {
    if (n_ % kPanelColumns != 0) {
      std::fill_n(packed_.panel(packed_.panels - 1), packed_.rows * kPanelColumns, uint16_t{0});
    }
    for (int64_t i = 0; i < packed_.panels; ++i) {
      std::fill_n(packed_.panel(i) + k_ * kPanelColumns, (packed_.rows - k_) * kPanelColumns,
                  uint16_t{0});
    }
  }

  // Rows [first, last) of [k, n], some at a time: what they put into a panel lies together.
  void TakeRows(int64_t first, int64_t last) const {
    for (int64_t top = first; top < last; top += kBlock) {
      const int64_t bottom = std::min(top + kBlock, last);
      for (int64_t column = 0; column < n_; column += kPanelColumns) {
        const int64_t count = std::min(kPanelColumns, n_ - column);
        for (int64_t row = top; row < bottom; ++row) {
          std::copy_n(stored(row * n_ + column), count, at(row, column));
        }
      }
    }
  }

  // Rows [first, last) of [n, k]: columns of the matrix, in blocks that fit into the nearest cache.
  void TakeColumns(int64_t first, int64_t last) const {
    for (int64_t begin = first; begin < last;) {
      const int64_t end = std::min(last, (begin / kPanelColumns + 1) * kPanelColumns);
      for (int64_t top = 0; top < k_; top += kBlock) {
        const int64_t bottom = std::min(top + kBlock, k_);
        for (int64_t column = begin; column < end; ++column) {
          const uint16_t* from = stored(column * k_);
          uint16_t* to = at(0, column);
          for (int64_t row = top; row < bottom; ++row) to[row * kPanelColumns] = from[row];
        }
      }
      begin = end;
    }
  }

  const Tensor& weight_;
  const int64_t k_;
  const int64_t n_;
  const bool transposed_;
  HalfPanels packed_;
};

}  // namespace

std::shared_ptr<const HalfPanels> PackHalves(const Tensor& weight, int64_t k, int64_t n,
                                             bool transposed, PackedWeights* shared) {
  const std::string form = fmt::format("halves {} x {}{}", k, n, transposed ? " transposed" : "");
  return PackOnce(shared, weight, form, [&] {
    return std::make_shared<const HalfPanels>(Packing(weight, k, n, transposed).Run());
  });
}

void MultiplyPanel(DataType dtype, const float* x, int64_t m, int64_t k, const uint16_t* panel,
                   float* y) {
  HWY_DYNAMIC_DISPATCH(MultiplyPanel)(dtype, x, m, k, panel, y);
}

void WidenPanel(DataType dtype, const uint16_t* from, int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(WidenPanel)(dtype, from, count, to);
}

}  // namespace npumesh
#endif  // HWY_ONCE
