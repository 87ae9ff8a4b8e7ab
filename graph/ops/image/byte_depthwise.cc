#include "graph/ops/image/byte_depthwise.h"

#include <algorithm>

#include "graph/ops/toolbox/lanes/simd_targets.h"
#include "graph/ops/toolbox/values/ceil_div.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/image/byte_depthwise.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The taps [begin, end) of a window of `kernel` whose places, `first` + tap * step, lie within
// [0, size).
struct Taps {
  Taps(int64_t first, int64_t step, int64_t kernel, int64_t size)
      : begin(first < 0 ? std::min(CeilDiv(-first, step), kernel) : 0),
        end(first < size ? std::min(CeilDiv(size - first, step), kernel) : 0) {}
  int64_t begin, end;
};

// The sums of neighbouring channels from `channel` on, for kColumns columns whose windows have the
// same taps. The filter is loaded once for all of them.
template <class Sums, typename X, int kColumns>
HWY_INLINE void AddWindows(const DepthwiseRow& row, const Taps& rows, const Taps& columns,
                           int64_t left, int64_t channel, int32_t* to) {
  const Sums tag;
  const hn::Rebind<X, Sums> narrow;
  const auto zero = hn::Set(tag, row.zero);
  const auto* const image = static_cast<const X*>(row.image) + channel;
  const int64_t apart = row.stride * row.channels;
  auto sum0 = hn::Zero(tag), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t line = (row.top + r * row.row_step) * row.width + left;
    for (int64_t c = columns.begin; c < columns.end; ++c) {
      const X* x = image + (line + c * row.column_step) * row.channels;
      const auto weight =
          hn::LoadU(tag, row.filter + (r * row.kernel_width + c) * row.channels + channel);
      const auto product = [&](int64_t column) HWY_ATTR {
        const auto wide = hn::PromoteTo(tag, hn::LoadU(narrow, x + column * apart));
        return hn::Mul(hn::Sub(wide, zero), weight);
      };
      sum0 = hn::Add(sum0, product(0));
      if constexpr (kColumns == 4) {
        sum1 = hn::Add(sum1, product(1));
        sum2 = hn::Add(sum2, product(2));
        sum3 = hn::Add(sum3, product(3));
      }
    }
  }
  hn::StoreU(sum0, tag, to);
  if constexpr (kColumns == 4) {
    hn::StoreU(sum1, tag, to + row.channels);
    hn::StoreU(sum2, tag, to + 2 * row.channels);
    hn::StoreU(sum3, tag, to + 3 * row.channels);
  }
}

template <typename X, int kColumns>
HWY_INLINE void AddChannels(const DepthwiseRow& row, const Taps& rows, const Taps& columns,
                            int64_t left, int32_t* to) {
  using Many = hn::ScalableTag<int32_t>;
  using One = hn::CappedTag<int32_t, 1>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Many()));
  int64_t i = 0;
  for (; i + lanes <= row.channels; i += lanes) {
    AddWindows<Many, X, kColumns>(row, rows, columns, left, i, to + i);
  }
  for (; i < row.channels; ++i) {
    AddWindows<One, X, kColumns>(row, rows, columns, left, i, to + i);
  }
}

template <typename X>
void AddRow(const DepthwiseRow& row, int32_t* sums) {
  const Taps rows(row.top, row.row_step, row.kernel_height, row.height);
  const auto taps = [&row](int64_t column) {
    return Taps(row.left + column * row.stride, row.column_step, row.kernel_width, row.width);
  };
  const auto whole = [&](int64_t column) {
    const Taps at = taps(column);
    return at.begin == 0 && at.end == row.kernel_width;
  };
  for (int64_t column = 0; column < row.columns;) {
    const int64_t left = row.left + column * row.stride;
    int32_t* const to = sums + column * row.channels;
    if (column + 4 <= row.columns && whole(column) && whole(column + 3)) {
      AddChannels<X, 4>(row, rows, taps(column), left, to);
      column += 4;
    } else {
      AddChannels<X, 1>(row, rows, taps(column), left, to);
      ++column;
    }
  }
}

void AddRowOf(const DepthwiseRow& row, int32_t* sums) {
  if (row.dtype == DataType::kUint8) return AddRow<uint8_t>(row, sums);
  AddRow<int8_t>(row, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(AddRowOf);

void DepthwiseSums(const DepthwiseRow& row, int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(AddRowOf)(row, sums);
}

}  // namespace npumesh
#endif  // HWY_ONCE
