// How elements of each type stand in vectors while they are combined, and the four operations on
// them. Compiled once for each instruction set: see reduce.cc.

// Highway's include guard: defined and undefined in turn.
#if defined(NPUMESH_COLLECTIVES_REDUCE_VECTOR_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NPUMESH_COLLECTIVES_REDUCE_VECTOR_OPS_INL_H_
#undef NPUMESH_COLLECTIVES_REDUCE_VECTOR_OPS_INL_H_
#else
#define NPUMESH_COLLECTIVES_REDUCE_VECTOR_OPS_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Unaligned load and store. Highway's own ones dereference a typed pointer on the scalar target.
template <class D>
HWY_INLINE hn::Vec<D> LoadBytes([[maybe_unused]] D d, const uint8_t* from) {
#if HWY_TARGET == HWY_SCALAR
  hn::TFromD<D> value;
  std::memcpy(&value, from, sizeof value);
  return hn::Set(d, value);
#else
  return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
#endif
}

template <class D>
HWY_INLINE void StoreBytes([[maybe_unused]] D d, hn::Vec<D> vector, uint8_t* to) {
#if HWY_TARGET == HWY_SCALAR
  const hn::TFromD<D> value = hn::GetLane(vector);
  std::memcpy(to, &value, sizeof value);
#else
  hn::StoreU(vector, d, reinterpret_cast<hn::TFromD<D>*>(to));
#endif
}

template <class D>
HWY_INLINE void StreamBytes(D d, hn::Vec<D> vector, uint8_t* to) {
  hn::Stream(vector, d, reinterpret_cast<hn::TFromD<D>*>(to));
}

// Every NaN becomes the positive quiet one without payload (Highway's NaN has a payload).
template <class D>
HWY_INLINE hn::Vec<D> OneNan(D d, hn::Vec<D> v) {
  using T = hn::TFromD<D>;
  return hn::IfThenElse(hn::IsNaN(v), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), v);
}

// Types that are combined as they are stored. A block is one vector.
template <typename T>
struct Direct {
  using Element = T;
  using D = hn::ScalableTag<T>;
  using Block = hn::Vec<D>;

  static HWY_INLINE uint64_t BlockBytes() { return hn::Lanes(D()) * sizeof(T); }
  static HWY_INLINE Block Load(const uint8_t* from) { return LoadBytes(D(), from); }
  template <class Op>
  static HWY_INLINE Block Combine(Block a, Block b) {
    return Op::Combine(D(), a, b);
  }
  static HWY_INLINE Block Finish(Block v) {
    if constexpr (std::is_floating_point_v<T>) {
      return OneNan(D(), v);
    } else {
      return v;
    }
  }
  static HWY_INLINE void Store(Block v, uint8_t* to) { StoreBytes(D(), v, to); }
  static HWY_INLINE void Stream(Block v, uint8_t* to) { StreamBytes(D(), v, to); }
};

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using HalfU16 = hn::Rebind<uint16_t, F32>;

// bfloat16: the upper half of a float.
struct BrainCodec {
  static HWY_INLINE hn::Vec<F32> Decode(hn::Vec<HalfU16> v) {
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), v)));
  }
  // Rounds to nearest even. REQUIRES: OneNan was applied.
  static HWY_INLINE hn::Vec<HalfU16> Encode(hn::Vec<F32> v) {
    const auto bits = hn::BitCast(U32(), v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(U32(), 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(U32(), 0x7fff)));
    return hn::TruncateTo(HalfU16(), hn::ShiftRight<16>(rounded));
  }
};

// float16: by the processor where it can, else by the steps of runtime/base/float16.h. Highway's
// own fallback knows no infinity.
struct HalfCodec {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  using HalfF16 = hn::Rebind<hwy::float16_t, F32>;

  static HWY_INLINE hn::Vec<F32> Decode(hn::Vec<HalfU16> v) {
    return hn::PromoteTo(F32(), hn::BitCast(HalfF16(), v));
  }
  static HWY_INLINE hn::Vec<HalfU16> Encode(hn::Vec<F32> v) {
    return hn::BitCast(HalfU16(), hn::DemoteTo(HalfF16(), v));
  }
#else
  static HWY_INLINE hn::Vec<F32> Decode(hn::Vec<HalfU16> v) {
    constexpr uint32_t kRebias = 112u << 23;
    const auto bits = hn::PromoteTo(U32(), v);
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(U32(), 0x8000)));
    const auto magnitude = hn::And(bits, hn::Set(U32(), 0x7fff));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto normal = hn::Add(shifted, hn::Set(U32(), kRebias));
    const auto special = hn::Add(shifted, hn::Set(U32(), 2 * kRebias));
    // As if the leading bit were there, which is then subtracted: exact, without subnormal floats.
    const auto leading = hn::Set(U32(), 0x38800000);  // 2^-14
    const auto subnormal = hn::BitCast(
        U32(), hn::Sub(hn::BitCast(F32(), hn::Add(shifted, leading)), hn::BitCast(F32(), leading)));
    auto result = Select(Below(magnitude, 0x400), subnormal, normal);
    result = Select(Below(magnitude, 0x7c00), result, special);
    return hn::BitCast(F32(), hn::Or(result, sign));
  }
  static HWY_INLINE hn::Vec<HalfU16> Encode(hn::Vec<F32> v) {
    const auto bits = hn::BitCast(U32(), v);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(U32(), 0x8000));
    const auto magnitude = hn::And(bits, hn::Set(U32(), 0x7fffffff));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(U32(), 1));
    const auto rounded = hn::Add(magnitude, hn::Add(odd, hn::Set(U32(), 0xfff)));
    const auto normal = hn::ShiftRight<13>(hn::Sub(rounded, hn::Set(U32(), 112u << 23)));
    // Adding 0.5 aligns the last bits, so that the adder rounds.
    const auto aligned = hn::Add(hn::BitCast(F32(), magnitude), hn::Set(F32(), 0.5f));
    const auto subnormal = hn::Sub(hn::BitCast(U32(), aligned), hn::Set(U32(), 0x3f000000));
    auto result = Select(Below(magnitude, 0x38800000), subnormal, normal);
    result = Select(Below(magnitude, 0x477ff000), result, hn::Set(U32(), 0x7c00));
    result = Select(Below(magnitude, 0x7f800001), result, hn::Set(U32(), 0x7e00));
    return hn::TruncateTo(HalfU16(), hn::Or(result, sign));
  }

 private:
  // Magnitudes are below 2^31, where signed comparison, which every processor has, is right.
  static HWY_INLINE hn::Mask<I32> Below(hn::Vec<U32> v, int32_t limit) {
    return hn::Lt(hn::BitCast(I32(), v), hn::Set(I32(), limit));
  }
  static HWY_INLINE hn::Vec<U32> Select(hn::Mask<I32> mask, hn::Vec<U32> yes, hn::Vec<U32> no) {
    return hn::BitCast(U32(),
                       hn::IfThenElse(mask, hn::BitCast(I32(), yes), hn::BitCast(I32(), no)));
  }
#endif
};

// 16-bit floating types, combined as floats. A block is two vectors of floats, so that it is stored
// as one vector.
template <class Codec>
struct Widened {
  using Element = uint16_t;
  struct Block {
    hn::Vec<F32> low;
    hn::Vec<F32> high;
  };

  static HWY_INLINE uint64_t HalfBytes() { return hn::Lanes(F32()) * sizeof(Element); }
  static HWY_INLINE uint64_t BlockBytes() { return 2 * HalfBytes(); }
  static HWY_INLINE Block Load(const uint8_t* from) {
    return {Codec::Decode(LoadBytes(HalfU16(), from)),
            Codec::Decode(LoadBytes(HalfU16(), from + HalfBytes()))};
  }
  template <class Op>
  static HWY_INLINE Block Combine(Block a, Block b) {
    return {Op::Combine(F32(), a.low, b.low), Op::Combine(F32(), a.high, b.high)};
  }
  static HWY_INLINE Block Finish(Block v) { return {OneNan(F32(), v.low), OneNan(F32(), v.high)}; }
#if HWY_TARGET == HWY_SCALAR
  static HWY_INLINE void Store(Block v, uint8_t* to) {
    StoreBytes(HalfU16(), Codec::Encode(v.low), to);
    StoreBytes(HalfU16(), Codec::Encode(v.high), to + HalfBytes());
  }
  static HWY_INLINE void Stream(Block v, uint8_t* to) {
    Store(v, to);
  }
#else
  using U16 = hn::ScalableTag<uint16_t>;
  static HWY_INLINE hn::Vec<U16> Encode(Block v) {
    return hn::Combine(U16(), Codec::Encode(v.high), Codec::Encode(v.low));
  }
  static HWY_INLINE void Store(Block v, uint8_t* to) {
    StoreBytes(U16(), Encode(v), to);
  }
  static HWY_INLINE void Stream(Block v, uint8_t* to) {
    StreamBytes(U16(), Encode(v), to);
  }
#endif
};

struct Sum {
  template <class D>
  static HWY_INLINE hn::Vec<D> Combine(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Add(a, b);
  }
};

struct Prod {
  template <class D>
  static HWY_INLINE hn::Vec<D> Combine(D d, hn::Vec<D> a, hn::Vec<D> b) {
    using T = hn::TFromD<D>;
    if constexpr (std::is_floating_point_v<T>) {
      return hn::Mul(a, b);
    } else {
      return Wrapping(d, a, b);
    }
  }

 private:
  // Unsigned integers; processors multiply lanes of 16 and 32 bits.
#if HWY_TARGET == HWY_SCALAR
  template <class D>
  static HWY_INLINE hn::Vec<D> Wrapping(D d, hn::Vec<D> a, hn::Vec<D> b) {
    const uint64_t product = uint64_t{hn::GetLane(a)} * uint64_t{hn::GetLane(b)};
    return hn::Set(d, static_cast<hn::TFromD<D>>(product));
  }
#else
  template <class D>
  static HWY_INLINE hn::Vec<D> Wrapping(D d, hn::Vec<D> a, hn::Vec<D> b) {
    constexpr size_t kSize = sizeof(hn::TFromD<D>);
    if constexpr (kSize == 1) {
      // The low byte of a 16-bit product depends on the low bytes alone.
      const hn::RepartitionToWide<D> wide;
      const auto a16 = hn::BitCast(wide, a);
      const auto b16 = hn::BitCast(wide, b);
      const auto even = hn::And(hn::Mul(a16, b16), hn::Set(wide, 0xff));
      const auto odd = hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16));
      return hn::BitCast(d, hn::Or(even, hn::ShiftLeft<8>(odd)));
    } else if constexpr (kSize == 8) {
      // low * low + (high * low + low * high) * 2^32
      const hn::RepartitionToNarrow<D> narrow;
      const auto a_low = hn::BitCast(narrow, a);
      const auto b_low = hn::BitCast(narrow, b);
      const auto a_high = hn::BitCast(narrow, hn::ShiftRight<32>(a));
      const auto b_high = hn::BitCast(narrow, hn::ShiftRight<32>(b));
      const auto cross = hn::Add(hn::MulEven(a_high, b_low), hn::MulEven(a_low, b_high));
      return hn::Add(hn::MulEven(a_low, b_low), hn::ShiftLeft<32>(cross));
    } else {
      return hn::Mul(a, b);
    }
  }
#endif
};

// max and min keep `a` where it is NaN or wins or is equal; a NaN in `b` compares false.
struct Max {
  template <class D>
  static HWY_INLINE hn::Vec<D> Combine(D, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      return hn::IfThenElse(hn::Or(hn::Ge(a, b), hn::IsNaN(a)), a, b);
    } else {
      return hn::Max(a, b);
    }
  }
};

struct Min {
  template <class D>
  static HWY_INLINE hn::Vec<D> Combine(D, hn::Vec<D> a, hn::Vec<D> b) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      return hn::IfThenElse(hn::Or(hn::Le(a, b), hn::IsNaN(a)), a, b);
    } else {
      return hn::Min(a, b);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
