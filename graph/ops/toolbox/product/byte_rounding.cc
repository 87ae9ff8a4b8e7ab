#include "graph/ops/toolbox/product/byte_rounding.h"

#include <limits>
#include <type_traits>

#include "graph/ops/toolbox/lanes/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/toolbox/product/byte_rounding.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sums of neighbouring columns; `Sums` says how many are rounded at once.
template <class Sums, typename Y>
HWY_INLINE void RoundColumns(const ByteRounding& rounding, const int32_t* sums, int64_t column,
                             Y* y) {
  const Sums tag;
  const hn::Rebind<float, Sums> real;
  const hn::Rebind<Y, Sums> narrow;
  const auto sum = hn::Add(hn::LoadU(tag, sums), hn::LoadU(tag, rounding.added + column));
  if constexpr (std::is_same_v<Y, int32_t>) {
    hn::StoreU(sum, tag, y);
  } else {
    const auto scaled = hn::Mul(hn::ConvertTo(real, sum), hn::LoadU(real, rounding.scale + column));
    if constexpr (std::is_same_v<Y, float>) {
      hn::StoreU(scaled, real, y);
    } else {
      // Within the type before the conversion, which knows no larger number.
      constexpr int32_t kLeast = std::numeric_limits<Y>::min(), kMost = kLeast + 255;
      const auto least = hn::Set(real, static_cast<float>(kLeast - rounding.zero));
      const auto most = hn::Set(real, static_cast<float>(kMost - rounding.zero));
      const auto whole = hn::NearestInt(hn::Min(hn::Max(scaled, least), most));
      hn::StoreU(hn::DemoteTo(narrow, hn::Add(whole, hn::Set(tag, rounding.zero))), narrow, y);
    }
  }
}

template <typename Y>
void RoundRows(const ByteRounding& rounding, const int32_t* sums, int64_t rows, int64_t columns,
               void* to) {
  using Many = hn::ScalableTag<int32_t>;
  using One = hn::CappedTag<int32_t, 1>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Many()));
  auto* y = static_cast<Y*>(to);
  for (int64_t row = 0; row < rows; ++row, sums += columns, y += columns) {
    int64_t i = 0;
    for (; i + lanes <= columns; i += lanes) RoundColumns<Many>(rounding, sums + i, i, y + i);
    for (; i < columns; ++i) RoundColumns<One>(rounding, sums + i, i, y + i);
  }
}

void RoundAny(const ByteRounding& rounding, const int32_t* sums, int64_t rows, int64_t columns,
              void* y) {
  switch (rounding.y) {
    case DataType::kInt8:
      return RoundRows<int8_t>(rounding, sums, rows, columns, y);
    case DataType::kUint8:
      return RoundRows<uint8_t>(rounding, sums, rows, columns, y);
    case DataType::kFloat:
      return RoundRows<float>(rounding, sums, rows, columns, y);
    default:
      return RoundRows<int32_t>(rounding, sums, rows, columns, y);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(RoundAny);

void RoundSums(const ByteRounding& rounding, const int32_t* sums, int64_t rows, int64_t columns,
               void* y) {
  HWY_DYNAMIC_DISPATCH(RoundAny)(rounding, sums, rows, columns, y);
}

}  // namespace npumesh
#endif  // HWY_ONCE
