#include "graph/ops/cast.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "graph/ops/small_float.h"
#include "runtime/base/float16.h"

namespace npumesh {
namespace {

struct Bool {
  uint8_t byte;
};

template <typename T>
inline constexpr bool kIsSmall =
    std::is_same_v<T, Float8E5m2> || std::is_same_v<T, Float8E4m3> || std::is_same_v<T, Hifloat8>;

template <typename To>
To Shrink(float value) {
  if constexpr (std::is_same_v<To, Float8E5m2>) {
    return ToFloat8E5m2(value);
  } else if constexpr (std::is_same_v<To, Float8E4m3>) {
    return ToFloat8E4m3(value);
  } else {
    return ToHifloat8(value);
  }
}

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

// double -> float that keeps the last bit set when anything was cut off ("round to odd"): a second
// rounding to 16 bits then gives what one rounding would have given.
float RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const double back = nearest;
  if (back == value || value != value || (bits & 1u) != 0) return nearest;
  return std::bit_cast<float>(std::fabs(back) < std::fabs(value) ? bits + 1 : bits - 1);
}

template <typename To, typename From>
To Saturate(From value) {
  constexpr From kFirstAbove = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
  if (value != value) return 0;
  if (value >= kFirstAbove) return std::numeric_limits<To>::max();
  if (value <= static_cast<From>(std::numeric_limits<To>::min())) {
    return std::numeric_limits<To>::min();
  }
  return static_cast<To>(value);
}

template <typename To, typename From>
To ConvertElement(From value) {
  if constexpr (std::is_same_v<From, Bool>) {
    return ConvertElement<To, uint8_t>(value.byte != 0);
  } else if constexpr (kIsSmall<From>) {
    return ConvertElement<To, float>(ToFloat(value));
  } else if constexpr (kIsSmall<To> && std::is_same_v<From, float>) {
    return Shrink<To>(value);
  } else if constexpr (kIsSmall<To>) {
    return Shrink<To>(RoundToOdd(static_cast<double>(value)));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return Bool{static_cast<uint8_t>(value != 0)};
  } else if constexpr (kIsHalf<To> && std::is_same_v<From, float>) {
    return To(value);
  } else if constexpr (kIsHalf<To>) {
    return To(RoundToOdd(static_cast<double>(value)));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return Saturate<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
void Convert(const void* from, void* to, size_t count) {
  const From* in = static_cast<const From*>(from);
  To* out = static_cast<To*>(to);
  for (size_t i = 0; i < count; ++i) out[i] = ConvertElement<To, From>(in[i]);
}

// The other conversions from 16-bit floats: in chunks through float.
template <ConvertFn kWiden, typename To>
void ConvertHalf(const void* from, void* to, size_t count) {
  constexpr size_t kChunk = 512;
  alignas(64) float wide[kChunk];
  for (size_t begin = 0; begin < count; begin += kChunk) {
    const size_t chunk = std::min(kChunk, count - begin);
    kWiden(static_cast<const uint16_t*>(from) + begin, wide, chunk);
    Convert<float, To>(wide, static_cast<To*>(to) + begin, chunk);
  }
}

template <size_t kWidth>
void Copy(const void* from, void* to, size_t count) {
  if (count > 0) std::memmove(to, from, count * kWidth);
}

template <typename From, typename To>
constexpr ConvertFn Pick() {
  if constexpr (std::is_same_v<From, To> && !std::is_same_v<From, Bool>) {
    return Copy<sizeof(From)>;
  } else if constexpr (std::is_same_v<From, Float16>) {
    return std::is_same_v<To, float> ? HalfToFloat : ConvertHalf<HalfToFloat, To>;
  } else if constexpr (std::is_same_v<From, Bfloat16>) {
    return std::is_same_v<To, float> ? BfloatToFloat : ConvertHalf<BfloatToFloat, To>;
  } else if constexpr (std::is_same_v<From, float> && kIsHalf<To>) {
    return std::is_same_v<To, Float16> ? FloatToHalf : FloatToBfloat;
  } else {
    return Convert<From, To>;
  }
}

// One row and one column for each type, in the order of IndexOf.
constexpr size_t kTypes = 16;
using Row = std::array<ConvertFn, kTypes>;

template <typename From>
constexpr Row RowOf() {
  return {Pick<From, float>(),    Pick<From, Float16>(),    Pick<From, Bfloat16>(),
          Pick<From, double>(),   Pick<From, int8_t>(),     Pick<From, int16_t>(),
          Pick<From, int32_t>(),  Pick<From, int64_t>(),    Pick<From, uint8_t>(),
          Pick<From, uint16_t>(), Pick<From, uint32_t>(),   Pick<From, uint64_t>(),
          Pick<From, Bool>(),     Pick<From, Float8E5m2>(), Pick<From, Float8E4m3>(),
          Pick<From, Hifloat8>()};
}

constexpr std::array<Row, kTypes> kTable = {
    RowOf<float>(),   RowOf<Float16>(),    RowOf<Bfloat16>(),   RowOf<double>(),
    RowOf<int8_t>(),  RowOf<int16_t>(),    RowOf<int32_t>(),    RowOf<int64_t>(),
    RowOf<uint8_t>(), RowOf<uint16_t>(),   RowOf<uint32_t>(),   RowOf<uint64_t>(),
    RowOf<Bool>(),    RowOf<Float8E5m2>(), RowOf<Float8E4m3>(), RowOf<Hifloat8>()};

int IndexOf(DataType dtype) {
  constexpr DataType kOrder[kTypes] = {
      DataType::kFloat, DataType::kFloat16,    DataType::kBfloat16,     DataType::kDouble,
      DataType::kInt8,  DataType::kInt16,      DataType::kInt32,        DataType::kInt64,
      DataType::kUint8, DataType::kUint16,     DataType::kUint32,       DataType::kUint64,
      DataType::kBool,  DataType::kFloat8E5M2, DataType::kFloat8E4M3Fn, DataType::kHifloat8};
  for (size_t i = 0; i < kTypes; ++i) {
    if (kOrder[i] == dtype) return static_cast<int>(i);
  }
  return -1;
}

Status InferCast(OpContext& context) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType to, context.attr_dtype("dst_type"));
  const TensorType& in = context.in(0);
  if (FindConvert(in.dtype, to) == nullptr) {
    return Error(Code::kUnsupported,
                 "{}: cannot cast {} to {}; floats, integers and bool are supported", context.Who(),
                 Name(in.dtype), Name(to));
  }
  context.set_out(0, {to, in.shape});
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeCastKernel(const OpContext& context) {
  const ConvertFn convert = FindConvert(context.in(0).dtype, context.out(0).dtype);
  const auto count = static_cast<size_t>(context.out(0).shape.elements());
  return MakeKernel([convert, count](const KernelArgs& args) {
    convert(args.in[0], args.out[0], count);
    return Status();
  });
}

}  // namespace

ConvertFn FindConvert(DataType from, DataType to) {
  const int row = IndexOf(from);
  const int column = IndexOf(to);
  if (row < 0 || column < 0) return nullptr;
  return kTable[static_cast<size_t>(row)][static_cast<size_t>(column)];
}

void RegisterCastOp(OpRegistry& registry) {
  Operator cast;
  cast.schema = {"Cast", {{"x"}}, {{"y"}}, {{"dst_type", Required::kInt}}};
  cast.infer = InferCast;
  cast.make_kernel = MakeCastKernel;
  cast.elementwise = true;
  registry.Add(std::move(cast));
}

}  // namespace npumesh
