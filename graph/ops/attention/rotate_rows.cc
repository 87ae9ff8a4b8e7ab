// By Highway; no fused multiply-add, so that every target gives the same bits. The last, partial
// vector of a half goes through padded buffers and the same instructions.
#include "graph/ops/attention/rotate_rows.h"

#include <cstddef>
#include <cstring>

#include "graph/ops/toolbox/lanes/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/attention/rotate_rows.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After Highway.
#include "graph/ops/toolbox/values/half_io-inl.h"
#include "graph/ops/toolbox/values/half_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using RowFloats = hn::ScalableTag<float>;
using RowWords = hn::RebindToUnsigned<RowFloats>;
using RowVector = hn::Vec<RowFloats>;

// How elements become vectors of float, and what rounding to their type does to such a vector.
struct FloatElements {
  using Type = float;

  static HWY_INLINE RowVector Load(const float* from) { return hn::LoadU(RowFloats(), from); }
  static HWY_INLINE RowVector Rounded(RowVector v) { return v; }
  static HWY_INLINE void Store(RowVector v, float* to) { hn::StoreU(v, RowFloats(), to); }
};

template <class Widen, class Narrow>
struct HalfElements {
  using Type = uint16_t;
  using Halves = hn::Rebind<uint16_t, RowWords>;

  static HWY_INLINE RowVector Wide(hn::Vec<RowWords> words) {
    return hn::BitCast(RowFloats(), Widen()(RowWords(), words));
  }
  static HWY_INLINE hn::Vec<RowWords> Narrowed(RowVector v) {
    return Narrow()(RowWords(), hn::BitCast(RowWords(), v));
  }
  static HWY_INLINE RowVector Load(const uint16_t* from) {
    return Wide(hn::PromoteTo(RowWords(), hn::LoadU(Halves(), from)));
  }
  static HWY_INLINE RowVector Rounded(RowVector v) { return Wide(Narrowed(v)); }
  static HWY_INLINE void Store(RowVector v, uint16_t* to) {
    const hn::RebindToSigned<RowFloats> words;
    hn::StoreU(hn::DemoteTo(Halves(), hn::BitCast(words, Narrowed(v))), Halves(), to);
  }
};

using BfloatElements = HalfElements<WidenBfloat, NarrowToBfloat>;

// By the processor's conversions where it has them. They keep the payload of a NaN; Store drops it.
struct Float16Elements : HalfElements<WidenHalf, NarrowToHalf> {
  static HWY_INLINE RowVector Load(const uint16_t* from) {
    return WideHalves<hwy::float16_t>(RowFloats(), from);
  }
  static HWY_INLINE RowVector Rounded(RowVector v) {
#if HWY_TARGET <= HWY_AVX2
    const hn::Rebind<hwy::float16_t, RowFloats> halves;
    return hn::PromoteTo(RowFloats(), hn::DemoteTo(halves, v));
#else
    return HalfElements::Rounded(v);
#endif
  }
};

template <class Type>
struct RowOf {
  const Type *x, *cos, *sin;
};

// One vector of each half; the halves are `half` elements apart.
template <class Elements, class Type>
HWY_INLINE void RotateVector(const RowOf<Type>& row, size_t half, Type* y) {
  const RowVector a = Elements::Load(row.x), b = Elements::Load(row.x + half);
  const auto product = [](RowVector v, const Type* table) HWY_ATTR {
    return Elements::Rounded(hn::Mul(v, Elements::Load(table)));
  };
  const RowVector low = hn::Add(product(a, row.cos), product(hn::Neg(b), row.sin));
  const RowVector high = hn::Add(product(b, row.cos + half), product(a, row.sin + half));
  Elements::Store(low, y);
  Elements::Store(high, y + half);
}

// The last `count` elements of each half, fewer than a vector has.
template <class Elements, class Type>
void RotateRest(const RowOf<Type>& row, size_t half, size_t count, Type* y) {
  constexpr size_t kMost = HWY_MAX_BYTES / sizeof(float);
  HWY_ALIGN Type rooms[3][2 * kMost] = {};
  const Type* const parts[] = {row.x, row.cos, row.sin};
  for (size_t i = 0; i < 3; ++i) {
    std::memcpy(rooms[i], parts[i], count * sizeof(Type));
    std::memcpy(rooms[i] + kMost, parts[i] + half, count * sizeof(Type));
  }
  RotateVector<Elements, Type>({rooms[0], rooms[1], rooms[2]}, kMost, rooms[0]);
  std::memcpy(y, rooms[0], count * sizeof(Type));
  std::memcpy(y + half, rooms[0] + kMost, count * sizeof(Type));
}

template <class Elements>
void RotateAll(const RotatedRows& from, int64_t width, void* to) {
  using Type = typename Elements::Type;
  const size_t half = static_cast<size_t>(width) / 2;
  const size_t lanes = hn::Lanes(RowFloats());
  RowOf<Type> row = {static_cast<const Type*>(from.x), static_cast<const Type*>(from.cos),
                     static_cast<const Type*>(from.sin)};
  Type* y = static_cast<Type*>(to);
  for (int64_t r = 0; r < from.rows; ++r, y += from.y_stride) {
    size_t i = 0;
    for (; i + lanes <= half; i += lanes) {
      RotateVector<Elements, Type>({row.x + i, row.cos + i, row.sin + i}, half, y + i);
    }
    if (i < half) {
      RotateRest<Elements, Type>({row.x + i, row.cos + i, row.sin + i}, half, half - i, y + i);
    }
    row.x += from.x_stride;
    row.cos += from.cos_stride;
    row.sin += from.sin_stride;
  }
}

void RotateFloats(const RotatedRows& from, int64_t width, void* y) {
  RotateAll<FloatElements>(from, width, y);
}
void RotateHalves(const RotatedRows& from, int64_t width, void* y) {
  RotateAll<Float16Elements>(from, width, y);
}
void RotateBfloats(const RotatedRows& from, int64_t width, void* y) {
  RotateAll<BfloatElements>(from, width, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(RotateFloats);
HWY_EXPORT(RotateHalves);
HWY_EXPORT(RotateBfloats);

void RotateRows(DataType dtype, const RotatedRows& from, int64_t width, void* y) {
  if (dtype == DataType::kFloat) return HWY_DYNAMIC_DISPATCH(RotateFloats)(from, width, y);
  if (dtype == DataType::kFloat16) return HWY_DYNAMIC_DISPATCH(RotateHalves)(from, width, y);
  HWY_DYNAMIC_DISPATCH(RotateBfloats)(from, width, y);
}

}  // namespace npumesh
#endif  // HWY_ONCE
