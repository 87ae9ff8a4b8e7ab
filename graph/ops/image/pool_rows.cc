#include "graph/ops/image/pool_rows.h"

#include "graph/ops/toolbox/lanes/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/image/pool_rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After Highway.
#include "graph/ops/toolbox/lanes/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// What a window does with its elements, in order. `Tag` says how many outputs are computed at once.
// The first NaN of a window is its maximum, else the first of the largest elements.
template <class Tag>
struct Maximum {
  using Outputs = hn::Vec<Tag>;
  Outputs most;

  HWY_INLINE Maximum(const PoolPlan& /*plan*/, Outputs first) : most(first) {}
  HWY_INLINE void Take(Outputs value) {
    const auto greater = hn::Not(hn::Le(value, most));  // or one of them is NaN
    most = hn::IfThenElse(hn::AndNot(hn::IsNaN(most), greater), value, most);
  }
  HWY_INLINE Outputs Result(double /*divisor*/) const { return most; }
};

template <class Tag>
struct Average {
  using Outputs = hn::Vec<Tag>;
  using Wide = hn::Rebind<double, Tag>;
  hn::Vec<Wide> sum;

  HWY_INLINE Average(const PoolPlan& /*plan*/, Outputs first)
      : sum(hn::Add(hn::Zero(Wide()), hn::PromoteTo(Wide(), first))) {}
  HWY_INLINE void Take(Outputs value) { sum = hn::Add(sum, hn::PromoteTo(Wide(), value)); }
  HWY_INLINE Outputs Result(double divisor) const {
    return Narrowed(Tag(), hn::Div(sum, hn::Set(Wide(), divisor)));
  }
};

// One output vector: `load(place)` gives the elements at a position of the image. A window without
// elements averages to NaN, as 0 / 0 does.
template <template <class> class Window, class Tag, class Load>
HWY_INLINE hn::Vec<Tag> Pool(const PoolPlan& plan, const PoolBox& box, double divisor,
                             const Load& load) {
  const int64_t row_step = plan.step[1], column_step = plan.step[2], width = plan.size[2];
  if (box.rows.begin >= box.rows.end || box.columns.begin >= box.columns.end) {
    return hn::Set(Tag(), static_cast<float>(0.0 / divisor));
  }
  Window<Tag> window(plan, load(box.rows.begin * width + box.columns.begin));
  for (int64_t r = box.rows.begin; r < box.rows.end; r += row_step) {
    const bool first = r == box.rows.begin;
    const int64_t begin = box.columns.begin + (first ? column_step : 0);
    for (int64_t c = begin; c < box.columns.end; c += column_step) window.Take(load(r * width + c));
  }
  return window.Result(divisor);
}

// The outputs of one window for all channels.
template <template <class> class Window, class Tag>
HWY_INLINE void PoolChannels(const PoolPlan& plan, const PoolBox& box, const float* x, float* y) {
  using One = hn::CappedTag<float, 1>;
  const Tag tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const double divisor = DivisorOf(plan, box);
  int64_t i = 0;
  for (; i + lanes <= plan.inner; i += lanes) {
    const auto load = [&](int64_t place)
                          HWY_ATTR { return hn::LoadU(tag, x + place * plan.inner + i); };
    hn::StoreU(Pool<Window, Tag>(plan, box, divisor, load), tag, y + i);
  }
  for (; i < plan.inner; ++i) {
    const auto load = [&](int64_t place)
                          HWY_ATTR { return hn::LoadU(One(), x + place * plan.inner + i); };
    hn::StoreU(Pool<Window, One>(plan, box, divisor, load), One(), y + i);
  }
}

// Outputs [first, end) of a row whose windows all are alike, and begin `stride` apart: 1 or 2.
struct Alike {
  int64_t first = 0, end = 0, stride = 0;
};

HWY_INLINE Alike AlikeColumns(const std::vector<Window>& columns) {
  const auto count = static_cast<int64_t>(columns.size());
  const auto at = [&](int64_t i) -> const Window& { return columns[static_cast<size_t>(i)]; };
  const auto extent = [&](int64_t i) { return at(i).end - at(i).begin; };
  Alike longest;
  for (int64_t first = 0; first + 1 < count;) {
    const int64_t stride = at(first + 1).begin - at(first).begin;
    int64_t end = first + 1;
    while (end < count && extent(end) == extent(first) && at(end).span == at(first).span &&
           at(end).begin - at(end - 1).begin == stride) {
      ++end;
    }
    const bool fits = (stride == 1 || stride == 2) && extent(first) > 0;
    if (fits && end - first > longest.end - longest.first) longest = {first, end, stride};
    first = end;
  }
  return longest;
}

// Elements `stride` apart. Of every second one a vector more is read than is needed.
template <class Tag>
HWY_INLINE hn::Vec<Tag> LoadApart(Tag tag, const float* x, int64_t stride) {
  if (stride == 1) return hn::LoadU(tag, x);
  hn::Vec<Tag> even, odd;
  hn::LoadInterleaved2(tag, x, even, odd);
  return even;
}

// The outputs of one row of windows, channels first.
template <template <class> class Pooled, class Tag>
HWY_INLINE void PoolColumns(const PoolPlan& plan, const Window& rows, const Alike& alike,
                            const float* x, float* y) {
  const Tag tag;
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const std::vector<Window>& columns = plan.windows[2];
  const auto count = static_cast<int64_t>(columns.size());
  const auto box = [&](int64_t column) {
    return PoolBox{plan.windows[0][0], rows, columns[static_cast<size_t>(column)]};
  };
  // The last position that such a load touches has to be in the plane.
  const int64_t last_row = std::max<int64_t>(rows.end - 1, 0), plane = plan.places();
  int64_t column = 0;
  while (column < count) {
    const int64_t last = columns[static_cast<size_t>(column)].end - 1;
    const bool inside = last_row * plan.size[2] + last + lanes * alike.stride <= plane;
    if (column < alike.first || column + lanes > alike.end || !inside) {
      PoolChannels<Pooled, Tag>(plan, box(column), x, y + column);
      ++column;
      continue;
    }
    const auto load = [&](int64_t place)
                          HWY_ATTR { return LoadApart(tag, x + place, alike.stride); };
    const PoolBox first = box(column);
    hn::StoreU(Pool<Pooled, Tag>(plan, first, DivisorOf(plan, first), load), tag, y + column);
    column += lanes;
  }
}

template <template <class> class Pooled, class Tag>
HWY_INLINE void PoolPlane(const PoolPlan& plan, const float* x, float* y) {
  const std::vector<Window>& columns = plan.windows[2];
  const auto row = static_cast<int64_t>(columns.size()) * plan.inner;
  const Alike alike = plan.inner == 1 ? AlikeColumns(columns) : Alike();
  for (const Window& rows : plan.windows[1]) {
    if (plan.inner == 1) {
      PoolColumns<Pooled, Tag>(plan, rows, alike, x, y);
    } else {
      for (size_t c = 0; c < columns.size(); ++c) {
        const PoolBox box = {plan.windows[0][0], rows, columns[c]};
        PoolChannels<Pooled, Tag>(plan, box, x, y + static_cast<int64_t>(c) * plan.inner);
      }
    }
    y += row;
  }
}

void Maxima(const PoolPlan& plan, const float* x, float* y) {
  PoolPlane<Maximum, hn::ScalableTag<float>>(plan, x, y);
}

// As many at once as a vector has doubles.
void Averages(const PoolPlan& plan, const float* x, float* y) {
  PoolPlane<Average, hn::Rebind<float, hn::ScalableTag<double>>>(plan, x, y);
}

// Bytes have no NaN, and all of a window are as good.
template <class Tag, typename Byte>
HWY_INLINE void MostOfWindow(const PoolPlan& plan, const PoolBox& box, const Byte* x, Byte* y) {
  const Tag tag;
  const auto load = [&](int64_t r, int64_t c) HWY_ATTR {
    return hn::LoadU(tag, x + (r * plan.size[2] + c) * plan.inner);
  };
  auto most = load(box.rows.begin, box.columns.begin);
  for (int64_t r = box.rows.begin; r < box.rows.end; r += plan.step[1]) {
    for (int64_t c = box.columns.begin; c < box.columns.end; c += plan.step[2]) {
      most = hn::Max(most, load(r, c));
    }
  }
  hn::StoreU(most, tag, y);
}

template <typename Byte>
void MaximaOf(const PoolPlan& plan, const Byte* x, Byte* y) {
  using Many = hn::ScalableTag<Byte>;
  using One = hn::CappedTag<Byte, 1>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Many()));
  for (const Window& rows : plan.windows[1]) {
    for (const Window& columns : plan.windows[2]) {
      const PoolBox box = {plan.windows[0][0], rows, columns};
      int64_t i = 0;
      for (; i + lanes <= plan.inner; i += lanes) MostOfWindow<Many>(plan, box, x + i, y + i);
      for (; i < plan.inner; ++i) MostOfWindow<One>(plan, box, x + i, y + i);
      y += plan.inner;
    }
  }
}

void ByteMaxima(const PoolPlan& plan, bool is_signed, const void* x, void* y) {
  if (is_signed) {
    return MaximaOf(plan, static_cast<const int8_t*>(x), static_cast<int8_t*>(y));
  }
  MaximaOf(plan, static_cast<const uint8_t*>(x), static_cast<uint8_t*>(y));
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(Maxima);
HWY_EXPORT(Averages);
HWY_EXPORT(ByteMaxima);

void MaximaOfWindows(const PoolPlan& plan, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(Maxima)(plan, x, y);
}

void AveragesOfWindows(const PoolPlan& plan, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(Averages)(plan, x, y);
}

void ByteMaximaOfWindows(const PoolPlan& plan, DataType dtype, const void* x, void* y) {
  HWY_DYNAMIC_DISPATCH(ByteMaxima)(plan, dtype == DataType::kInt8, x, y);
}

}  // namespace npumesh
#endif  // HWY_ONCE
