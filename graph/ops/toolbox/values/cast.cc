#include "graph/ops/toolbox/values/cast.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "graph/ops/core/define.h"
#include "graph/ops/core/loop_program.h"
#include "graph/ops/toolbox/values/element_io.h"
#include "graph/ops/toolbox/values/small_float.h"
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

template <typename...>
struct TypeList {};
using AllTypes =
    TypeList<float, Float16, Bfloat16, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
             uint32_t, uint64_t, Bool, Float8E5m2, Float8E4m3, Hifloat8>;

template <typename From, typename... To>
constexpr Row RowOf(TypeList<To...>) {
  return {Pick<From, To>()...};
}

template <typename... From>
constexpr std::array<Row, kTypes> TableOf(TypeList<From...> all) {
  return {RowOf<From>(all)...};
}

constexpr std::array<Row, kTypes> kTable = TableOf(AllTypes());

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

// Between complex types: twice as many parts.
template <typename From, typename To>
void ConvertParts(const void* from, void* to, size_t count) {
  constexpr ConvertFn kConvert = Pick<From, To>();
  kConvert(from, to, 2 * count);
}

int ComplexIndexOf(DataType dtype) {
  if (dtype == DataType::kComplex32) return 0;
  if (dtype == DataType::kComplex64) return 1;
  return dtype == DataType::kComplex128 ? 2 : -1;
}

constexpr ConvertFn kComplexTable[3][3] = {
    {ConvertParts<Float16, Float16>, ConvertParts<Float16, float>, ConvertParts<Float16, double>},
    {ConvertParts<float, Float16>, ConvertParts<float, float>, ConvertParts<float, double>},
    {ConvertParts<double, Float16>, ConvertParts<double, float>, ConvertParts<double, double>}};

// Types without an entry in the table, because elements have no byte each, or no sign: Cast goes
// through float32.
bool IsNarrow(DataType dtype) {
  return dtype == DataType::kFloat4E2M1 || dtype == DataType::kFloat4E1M2 ||
         dtype == DataType::kFloat8E8M0;
}

struct CastPlan : Planned {
  ConvertFn convert = nullptr;  // null: through float32
  DataType from = DataType::kUndefined;
};

// Elements [first, first + count) as floats that round to narrow types as the elements would.
void Widen(DataType from, const void* data, int64_t first, int64_t count, float* to) {
  if (from != DataType::kDouble) return LoadNumbers(from, data, first, count, to);
  const double* numbers = static_cast<const double*>(data) + first;
  for (int64_t i = 0; i < count; ++i) to[i] = RoundToOdd(numbers[i]);
}

void CastThroughFloat(const CastPlan& plan, const void* from, void* to) {
  constexpr int64_t kChunk = 512;
  const DataType target = plan.outputs[0].dtype;
  const int64_t elements = plan.outputs[0].shape.elements();
  alignas(64) float wide[kChunk];
  for (int64_t first = 0; first < elements; first += kChunk) {
    const int64_t count = std::min(kChunk, elements - first);
    Widen(plan.from, from, first, count, wide);
    if (IsNarrow(target)) {
      StoreNarrow(target, wide, to, first, count);
    } else {
      FindConvert(DataType::kFloat, target)(
          wide, static_cast<std::byte*>(to) + first * BitsOf(target) / 8,
          static_cast<size_t>(count));
    }
  }
}

bool CanCastThroughFloat(DataType from, DataType to) {
  const auto known = [](DataType dtype) { return IsNarrow(dtype) || IndexOf(dtype) >= 0; };
  return (IsNarrow(from) || IsNarrow(to)) && known(from) && known(to);
}

Result<CastPlan> PlanCast(const OpContext& op) {
  const TensorType& x = op.in(0);
  NPUMESH_ASSIGN_OR_RETURN(const DataType to, op.attr_dtype("dst_type"));
  CastPlan plan;
  plan.convert = FindNumberConvert(x.dtype, to);
  plan.from = x.dtype;
  plan.outputs = {{to, x.shape}};
  if (plan.convert != nullptr || CanCastThroughFloat(x.dtype, to)) return plan;
  return Error(Code::kUnsupported,
               "{}: cannot cast {} to {}; floats, integers and bool are supported, and complex "
               "types among themselves",
               op.Who(), Name(x.dtype), Name(to));
}

Status RunCast(const CastPlan& plan, const KernelArgs& args) {
  if (plan.convert == nullptr) {
    CastThroughFloat(plan, args.in[0], args.out[0]);
    return Status();
  }
  plan.convert(args.in[0], args.out[0], static_cast<size_t>(plan.outputs[0].shape.elements()));
  return Status();
}

void LoopCast(const OpContext& op, LoopBuilder& loop) {
  if (FindConvert(op.in(0).dtype, op.out(0).dtype) == nullptr) return;
  loop.Give(loop.To(op.out(0).dtype, loop.In(0)));
}

}  // namespace

ConvertFn FindConvert(DataType from, DataType to) {
  const int row = IndexOf(from);
  const int column = IndexOf(to);
  if (row < 0 || column < 0) return nullptr;
  return kTable[static_cast<size_t>(row)][static_cast<size_t>(column)];
}

ConvertFn FindNumberConvert(DataType from, DataType to) {
  const int row = ComplexIndexOf(from);
  const int column = ComplexIndexOf(to);
  return row >= 0 && column >= 0 ? kComplexTable[row][column] : FindConvert(from, to);
}

void RegisterCastOp(OpRegistry& registry) {
  registry.Add(Define<PlanCast, RunCast>(
      "Cast(x; dst_type:int) -> y",
      {.loop = LoopCast, .precision = PrecisionClass::kKept, .axes = "[..]"}));
}

}  // namespace npumesh
