#include "graph/ops/image/byte_depthwise.h"

#include <numeric>

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

using Words = hn::ScalableTag<int32_t>;
using OneWord = hn::CappedTag<int32_t, 1>;

// Words of neighbouring channels; `left` and `right` null: outside of the image.
template <class Tag, typename X>
HWY_INLINE void LoadWords(const X* left, const X* right, int32_t zero, int32_t* to) {
  const Tag tag;
  const hn::Rebind<X, Tag> narrow;
  const auto value = [&](const X* x) HWY_ATTR {
    return hn::Sub(hn::PromoteTo(tag, hn::LoadU(narrow, x)), hn::Set(tag, zero));
  };
  auto word = hn::Zero(tag);
  if (left != nullptr) word = hn::And(value(left), hn::Set(tag, 0xffff));
  if (right != nullptr) word = hn::Or(word, hn::ShiftLeft<16>(value(right)));
  hn::StoreU(word, tag, to);
}

template <typename X>
void LoadRowOf(const ByteDepthwise& of, const X* row, int32_t zero, int32_t* words) {
  const DepthwiseShape& shape = of.shape();
  const int64_t channels = shape.channels;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Words()));
  for (int64_t i = 0; i < of.positions(); ++i, words += channels) {
    const auto at = [&](int64_t column) -> const X* {
      return column >= 0 && column < shape.width ? row + column * channels : nullptr;
    };
    const int64_t column = shape.left + i * of.apart();
    const X *const left = at(column), *const right = at(column + shape.column_step);
    const auto from = [](const X* x, int64_t channel) { return x == nullptr ? x : x + channel; };
    int64_t c = 0;
    for (; c + lanes <= channels; c += lanes) {
      LoadWords<Words>(from(left, c), from(right, c), zero, words + c);
    }
    for (; c < channels; ++c) {
      LoadWords<OneWord>(from(left, c), from(right, c), zero, words + c);
    }
  }
}

void LoadAnyRow(const ByteDepthwise& of, const void* row, int32_t zero, int32_t* words) {
  if (of.shape().dtype == DataType::kUint8) {
    return LoadRowOf(of, static_cast<const uint8_t*>(row), zero, words);
  }
  LoadRowOf(of, static_cast<const int8_t*>(row), zero, words);
}

// The sum of one channel for the window that begins at a position.
int32_t SumWindow(const ByteDepthwise& of, const DepthwiseRows& rows, int64_t position,
                  int64_t channel) {
  const int64_t channels = of.shape().channels, step = 2 * of.shape().column_step / of.apart();
  int32_t sum = 0;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t t = 0; t < of.pairs(); ++t) {
      const int32_t x = rows.words[r][(position + t * step) * channels + channel];
      const int32_t w = of.words(r, t)[channel];
      sum += static_cast<int16_t>(x) * static_cast<int16_t>(w) + (x >> 16) * (w >> 16);
    }
  }
  return sum;
}

#if HWY_TARGET == HWY_SCALAR  // has no multiply-add of pairs

constexpr int64_t kSumLanes = 1;

template <int kColumns>
void SumWindows(const ByteDepthwise& of, const DepthwiseRows& rows, int64_t column, int64_t channel,
                int32_t* to) {
  for (int64_t i = 0; i < kColumns; ++i) {
    const int64_t position = (column + i) * of.shape().stride / of.apart();
    to[i * of.shape().channels] = SumWindow(of, rows, position, channel);
  }
}

#else

using Sums = hn::CappedTag<int32_t, 16>;
using Elements = hn::Repartition<int16_t, Sums>;
constexpr int64_t kSumLanes = hn::MaxLanes(Sums());

// Highway may keep the sums of even and of odd elements apart until they are stored.
struct ChannelSums {
  hn::Vec<Sums> first, second;

  HWY_INLINE void Clear() { first = second = hn::Zero(Sums()); }
  HWY_INLINE void Add(const int32_t* x, hn::Vec<Elements> filter) {
    const auto image = hn::BitCast(Elements(), hn::LoadU(Sums(), x));
    first = hn::ReorderWidenMulAccumulate(Sums(), image, filter, first, second);
  }
  HWY_INLINE void Store(int32_t* to) const {
    hn::StoreU(hn::RearrangeToOddPlusEven(first, second), Sums(), to);
  }
};

// Of neighbouring channels, for some columns of y, so that a word of the filter is loaded once.
template <int kColumns>
HWY_INLINE void SumWindows(const ByteDepthwise& of, const DepthwiseRows& rows, int64_t column,
                           int64_t channel, int32_t* to) {
  const int64_t channels = of.shape().channels;
  const int64_t step = 2 * of.shape().column_step / of.apart() * channels;
  const int64_t next = of.shape().stride / of.apart() * channels;
  ChannelSums sum0, sum1, sum2, sum3;
  sum0.Clear();
  sum1.Clear();
  sum2.Clear();
  sum3.Clear();
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int32_t* x = rows.words[r] + column * next + channel;
    for (int64_t t = 0; t < of.pairs(); ++t, x += step) {
      const auto filter = hn::BitCast(Elements(), hn::LoadU(Sums(), of.words(r, t) + channel));
      sum0.Add(x, filter);
      if constexpr (kColumns == 4) {
        sum1.Add(x + next, filter);
        sum2.Add(x + 2 * next, filter);
        sum3.Add(x + 3 * next, filter);
      }
    }
  }
  sum0.Store(to);
  if constexpr (kColumns == 4) {
    sum1.Store(to + channels);
    sum2.Store(to + 2 * channels);
    sum3.Store(to + 3 * channels);
  }
}

#endif

void SumRows(const ByteDepthwise& of, const DepthwiseRows& rows, int32_t* sums) {
  const int64_t channels = of.shape().channels, columns = of.shape().columns;
  for (int64_t column = 0; column < columns;) {
    int32_t* const to = sums + column * channels;
    const int64_t count = column + 4 <= columns ? 4 : 1;
    int64_t c = 0;
    for (; c + kSumLanes <= channels; c += kSumLanes) {
      if (count == 4) {
        SumWindows<4>(of, rows, column, c, to + c);
      } else {
        SumWindows<1>(of, rows, column, c, to + c);
      }
    }
    for (; c < channels; ++c) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t position = (column + i) * of.shape().stride / of.apart();
        to[i * channels + c] = SumWindow(of, rows, position, c);
      }
    }
    column += count;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {
namespace {

HWY_EXPORT(LoadAnyRow);
HWY_EXPORT(SumRows);

int32_t WordOf(int32_t low, int32_t high) {
  return static_cast<int32_t>((static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high)
                                                                          << 16);
}

}  // namespace

ByteDepthwise::ByteDepthwise(const DepthwiseShape& shape, const std::vector<int32_t>& filter)
    : shape_(shape),
      pairs_(CeilDiv(shape.kernel_width, int64_t{2})),
      apart_(std::gcd(shape.stride, 2 * shape.column_step)),
      positions_(
          ((shape.columns - 1) * shape.stride + (pairs_ - 1) * 2 * shape.column_step) / apart_ + 1),
      filter_(static_cast<size_t>(shape.kernel_height * pairs_ * shape.channels)) {
  int32_t* to = filter_.data();
  for (int64_t r = 0; r < shape.kernel_height; ++r) {
    for (int64_t tap = 0; tap < shape.kernel_width; tap += 2) {
      const auto* const from = filter.data() + (r * shape.kernel_width + tap) * shape.channels;
      const bool last = tap + 1 == shape.kernel_width;
      for (int64_t c = 0; c < shape.channels; ++c) {
        *to++ = WordOf(from[c], last ? 0 : from[shape.channels + c]);
      }
    }
  }
}

void ByteDepthwise::LoadRow(const void* row, int32_t zero, int32_t* words) const {
  HWY_DYNAMIC_DISPATCH(LoadAnyRow)(*this, row, zero, words);
}

void ByteDepthwise::Sum(const DepthwiseRows& rows, int32_t* sums) const {
  HWY_DYNAMIC_DISPATCH(SumRows)(*this, rows, sums);
}

}  // namespace npumesh
#endif  // HWY_ONCE
