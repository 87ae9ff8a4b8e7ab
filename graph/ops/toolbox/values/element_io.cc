#include "graph/ops/toolbox/values/element_io.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/row_io.h"
#include "graph/ops/toolbox/values/small_float.h"

namespace npumesh {
namespace {

// Elements of four bits, by the number that each code stands for.
template <typename NumberOf>
void LoadCodes(const void* data, int64_t first, int64_t count, float* to, NumberOf number) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = first + i;
    to[i] = number((static_cast<unsigned>(bytes[at / 2]) >> (at % 2 * 4)) & 15u);
  }
}

void LoadInt4(const void* data, int64_t first, int64_t count, float* to) {
  LoadCodes(data, first, count, to, [](unsigned code) {  // two's complement
    return static_cast<float>(static_cast<int>(code ^ 8u) - 8);
  });
}

double Round(Rounding rounding, double value) {
  if (rounding == Rounding::kNearest) return std::nearbyint(value);
  if (rounding == Rounding::kFloor) return std::floor(value);
  return rounding == Rounding::kCeil ? std::ceil(value) : std::trunc(value);
}

int64_t Clipped(Rounding rounding, float value, double least, double most) {
  if (std::isnan(value)) return 0;
  return static_cast<int64_t>(std::clamp(Round(rounding, static_cast<double>(value)), least, most));
}

template <typename T>
void StoreAs(Rounding rounding, const float* from, void* data, int64_t first, int64_t count) {
  T* to = static_cast<T*>(data) + first;
  constexpr auto kLeast = static_cast<double>(std::numeric_limits<T>::min());
  constexpr auto kMost = static_cast<double>(std::numeric_limits<T>::max());
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<T>(Clipped(rounding, from[i], kLeast, kMost));
  }
}

void StoreInt4(Rounding rounding, const float* from, void* data, int64_t first, int64_t count) {
  uint8_t* to = static_cast<uint8_t*>(data) + first / 2;
  for (int64_t i = 0; i < count; i += 2) {
    const int64_t low = Clipped(rounding, from[i], -8, 7);
    const int64_t high = i + 1 < count ? Clipped(rounding, from[i + 1], -8, 7) : 0;
    to[i / 2] = static_cast<uint8_t>((low & 15) | (high & 15) << 4);
  }
}

// Codes of FLOAT4 without sign, E2M1 and E1M2.
constexpr float kE2M1[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
constexpr float kE1M2[8] = {0, 0.25f, 0.5f, 0.75f, 1, 1.25f, 1.5f, 1.75f};

void LoadFloat4(const float* values, const void* data, int64_t first, int64_t count, float* to) {
  LoadCodes(data, first, count, to, [values](unsigned code) {
    return std::copysign(values[code & 7], (code & 8) != 0 ? -1.0f : 1.0f);
  });
}

unsigned CodeOf(const float* values, float number) {
  const float size = std::fabs(number);
  unsigned code = 7;  // of what is too large, and of NaN
  while (code > 0 &&
         (size < values[code] - (values[code] - values[code - 1]) / 2 ||
          (size == values[code] - (values[code] - values[code - 1]) / 2 && code % 2 == 1))) {
    --code;
  }
  return code | (std::signbit(number) ? 8u : 0u);
}

void StoreFloat4(const float* values, const float* from, void* data, int64_t first, int64_t count) {
  uint8_t* to = static_cast<uint8_t*>(data) + first / 2;
  for (int64_t i = 0; i < count; i += 2) {
    const unsigned high = i + 1 < count ? CodeOf(values, from[i + 1]) : 0;
    to[i / 2] = static_cast<uint8_t>(CodeOf(values, from[i]) | high << 4);
  }
}

void StorePowers(const float* from, void* data, int64_t first, int64_t count) {
  auto* to = static_cast<Float8E8m0*>(data) + first;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(from[i]) & 0x7FFFFFFFu;
    const uint32_t power = bits >> 23;
    // The first bit of the fraction says whether the power above is as near; of a subnormal
    // number, whose power is the smallest, the half way lies above the fraction.
    const uint32_t up = power > 0 ? (bits >> 22) & 1u : (bits >= 0x600000u ? 1u : 0u);
    to[i] = {static_cast<uint8_t>(power == 255 ? 255 : power + up)};
  }
}

void LoadPowers(const void* data, int64_t first, int64_t count, float* to) {
  const auto* from = static_cast<const Float8E8m0*>(data) + first;
  for (int64_t i = 0; i < count; ++i) to[i] = ToFloat(from[i]);
}

void LoadPacked(const void* data, int64_t first, int64_t count, float* to) {
  const uint64_t* packed = static_cast<const uint64_t*>(data) + first;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = std::bit_cast<float>(static_cast<uint32_t>(packed[i]));
  }
}

bool IsComplex(DataType dtype) {
  return dtype == DataType::kComplex64 || dtype == DataType::kComplex128;
}

bool HasBits(const unsigned char* bytes, size_t count) {
  return std::any_of(bytes, bytes + count, [](unsigned char byte) { return byte != 0; });
}

// Any bit but the highest, which is the sign.
bool IsNonZeroFloat(const unsigned char* bytes, size_t count) {
  return HasBits(bytes, count - 1) || (bytes[count - 1] & 0x7F) != 0;
}

// The bits of a float32 in the low half.
constexpr TypeSet kPackedFactors = {DataType::kInt64, DataType::kUint64};

}  // namespace

void LoadNumbers(DataType dtype, const void* data, int64_t first, int64_t count, float* to) {
  switch (dtype) {
    case DataType::kInt4:
      return LoadInt4(data, first, count, to);
    case DataType::kFloat4E2M1:
      return LoadFloat4(kE2M1, data, first, count, to);
    case DataType::kFloat4E1M2:
      return LoadFloat4(kE1M2, data, first, count, to);
    case DataType::kFloat8E8M0:
      return LoadPowers(data, first, count, to);
    case DataType::kFloat:  // factors are asked for one by one
      std::copy_n(static_cast<const float*>(data) + first, count, to);
      return;
    default:
      const auto* from = static_cast<const std::byte*>(data) + first * BitsOf(dtype) / 8;
      FindConvert(dtype, DataType::kFloat)(from, to, static_cast<size_t>(count));
  }
}

void StoreNarrow(DataType dtype, const float* from, void* data, int64_t first, int64_t count) {
  if (dtype == DataType::kFloat8E8M0) return StorePowers(from, data, first, count);
  StoreFloat4(dtype == DataType::kFloat4E2M1 ? kE2M1 : kE1M2, from, data, first, count);
}

void StoreIntegers(DataType dtype, Rounding rounding, const float* from, void* data, int64_t first,
                   int64_t count) {
  const auto store = dtype == DataType::kInt4    ? StoreInt4
                     : dtype == DataType::kUint8 ? StoreAs<uint8_t>
                     : dtype == DataType::kInt32 ? StoreAs<int32_t>
                                                 : StoreAs<int8_t>;
  store(rounding, from, data, first, count);
}

LoopValue LoopIntegers(LoopBuilder& loop, DataType dtype, Rounding rounding, LoopValue value) {
  switch (rounding) {
    case Rounding::kNearest:
      return loop.To(dtype, loop.Emit(LoopOp::kRint, {value}));
    case Rounding::kFloor:
      return loop.To(dtype, loop.Emit(LoopOp::kFloor, {value}));
    case Rounding::kCeil:
      return loop.To(dtype, loop.Emit(LoopOp::kCeil, {value}));
    case Rounding::kTruncate:
      break;
  }
  return loop.To(dtype, value);
}

void StoreNumbers(DataType dtype, const float* from, void* data, int64_t first, int64_t count) {
  if (kFloats.Contains(dtype)) {
    StoreRow(dtype, from, data, first, count);
  } else {
    StoreIntegers(dtype, Rounding::kNearest, from, data, first, count);
  }
}

Result<Rounding> RoundingOf(const OpContext& op, std::string_view attribute) {
  const std::string name = op.attr_string(attribute);
  if (name == "round" || name == "Round" || name == "rint") return Rounding::kNearest;
  if (name == "floor" || name == "Floor") return Rounding::kFloor;
  if (name == "ceil" || name == "Ceil") return Rounding::kCeil;
  if (name == "trunc" || name == "Trunc") return Rounding::kTruncate;
  return Error(Code::kInvalidArgument, "{}: {} \"{}\", expected round, floor, ceil or trunc",
               op.Who(), attribute, name);
}

Result<Factors> Factors::Of(const OpContext& op, std::string_view port) {
  const int slot = SlotIfFed(op, port);
  return slot < 0 ? Factors() : OfSlot(op, slot);
}

Result<Factors> Factors::OfSlot(const OpContext& op, int slot) {
  const TensorType& type = op.in(slot);
  if (!(kNumbers | kPackedFactors | DataType::kFloat8E8M0).Contains(type.dtype)) {
    return Error(Code::kUnsupported,
                 "{}: input slot {} is {}, expected scales or offsets as "
                 "float16, bfloat16, float32, float8_e8m0 or packed in 64 bits",
                 op.Who(), slot, type.ToString());
  }
  Factors factors;
  if (type.shape.elements() == 0) return factors;
  factors.slot_ = slot;
  factors.dtype_ = type.dtype;
  factors.count_ = type.shape.elements();
  return factors;
}

Factors Factors::Part(int64_t index, int64_t parts) const {
  Factors part = *this;
  if (count_ == 1) return part;
  part.count_ = count_ / parts;
  part.first_ = first_ + index * part.count_;
  return part;
}

void Factors::Load(const KernelArgs& args, int64_t first, int64_t count, float* to) const {
  if (kPackedFactors.Contains(dtype_)) {
    LoadPacked(args.in[slot_], first_ + first, count, to);
  } else {
    LoadNumbers(dtype_, args.in[slot_], first_ + first, count, to);
  }
}

int SlotIfFed(const OpContext& op, std::string_view port) {
  if (port.empty() || !op.has(port)) return -1;
  const int slot = op.slot(port);
  return op.in(slot).shape.elements() == 0 ? -1 : slot;
}

bool HasZero(DataType dtype) {
  return IsInteger(dtype) || IsFloating(dtype) || IsComplex(dtype) || dtype == DataType::kBool;
}

bool IsNonZero(DataType dtype, const void* element) {
  const auto* bytes = static_cast<const unsigned char*>(element);
  const size_t count = WidthOf(dtype);
  if (IsComplex(dtype)) {
    return IsNonZeroFloat(bytes, count / 2) || IsNonZeroFloat(bytes + count / 2, count / 2);
  }
  return IsFloating(dtype) ? IsNonZeroFloat(bytes, count) : HasBits(bytes, count);
}

}  // namespace npumesh
