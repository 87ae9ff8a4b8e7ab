#include "graph/ops/quant/mx_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/small_float.h"

namespace npumesh {
namespace {

// An element format: mantissa bits, the least exponent of its grid, its largest number.
struct NumberGrid {
  int mantissa, least;
  float largest;
};

NumberGrid NumberGridOf(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat8E4M3Fn:
      return {3, -6, 448.0f};
    case DataType::kFloat8E5M2:
      return {2, -14, 57344.0f};
    case DataType::kFloat4E2M1:
      return {1, 0, 6.0f};
    default:
      return {2, 0, 1.75f};
  }
}

float Rounded(MxRounding rounding, float x) {
  switch (rounding) {
    case MxRounding::kNearestAway:
      return std::round(x);
    case MxRounding::kFloor:
      return std::floor(x);
    case MxRounding::kNearestEven:
      break;
  }
  return std::nearbyint(x);
}

// The nearest number of the grid, the largest for what lies beyond; 0 for NaN.
float OnGrid(const NumberGrid& grid, MxRounding rounding, float x) {
  if (std::isnan(x)) return 0;
  if (x == 0 || std::isinf(x)) return std::clamp(x, -grid.largest, grid.largest);
  const int exponent = std::max(std::ilogb(x), grid.least);
  const float steps = Rounded(rounding, std::ldexp(x, grid.mantissa - exponent));
  return std::clamp(std::ldexp(steps, exponent - grid.mantissa), -grid.largest, grid.largest);
}

uint8_t CodeOf(DataType dtype, float x) {
  const unsigned sign = std::signbit(x) ? 1u : 0u;
  const float magnitude = std::fabs(x);
  switch (dtype) {
    case DataType::kFloat8E4M3Fn:
      return ToFloat8E4m3(x).bits;
    case DataType::kFloat8E5M2:
      return ToFloat8E5m2(x).bits;
    case DataType::kFloat4E2M1: {
      // 0, 0.5, 1, 1.5, 2, 3, 4, 6
      const float doubled = magnitude * 2;
      const float code = magnitude <= 2 ? doubled : magnitude <= 4 ? magnitude + 2 : 7;
      return static_cast<uint8_t>(sign << 3 | static_cast<unsigned>(code));
    }
    default:
      return static_cast<uint8_t>(sign << 3 | static_cast<unsigned>(magnitude * 4));
  }
}

// Element i of a block: the quotient's code.
uint8_t CodeAt(const MxFormat& format, const NumberGrid& grid, uint8_t scale, float value) {
  float quotient = std::signbit(value) ? -0.0f : 0.0f;
  if (scale == 0xff) quotient = std::numeric_limits<float>::quiet_NaN();
  if (scale != 0 && scale != 0xff) quotient = std::ldexp(value, 127 - static_cast<int>(scale));
  return CodeOf(format.dtype, OnGrid(grid, format.rounding, quotient));
}

// Writes the codes that `code(i)` gives, two to a byte for 4-bit floats.
template <typename Code>
void StoreCodes(DataType dtype, int64_t count, void* data, int64_t first, Code code) {
  auto* bytes = static_cast<uint8_t*>(data);
  if (!kFloat4.Contains(dtype)) {
    for (int64_t i = 0; i < count; ++i) bytes[first + i] = code(i);
    return;
  }
  for (int64_t i = 0; i < count; i += 2) {
    bytes[(first + i) / 2] = static_cast<uint8_t>(code(i) | code(i + 1) << 4);
  }
}

}  // namespace

MxFormat MxFormatOf(Check& check, const OpContext& op, const Shape& y) {
  MxFormat format;
  format.dtype = check.TypeOf("dst_type", kFloat8 | kFloat4);
  const bool wide = kFloat8.Contains(format.dtype);
  const std::string round = op.attr_string("round_mode");
  if (round == "round") format.rounding = MxRounding::kNearestAway;
  if (round == "floor") format.rounding = MxRounding::kFloor;
  check.Supported(round == "rint" || (!wide && format.rounding != MxRounding::kNearestEven),
                  "round_mode \"{}\" for {}, expected rint{}", round, Name(format.dtype),
                  wide ? "" : ", round or floor");
  const int64_t algorithm = op.attr_int("scale_alg");
  check.Supported(algorithm == 0 || (algorithm == 1 && wide),
                  "scale_alg is {} for {}, expected 0{}", algorithm, Name(format.dtype),
                  wide ? " or 1" : "");
  format.rounds_up = algorithm == 1;
  for (const AttrSpec& spec : op.schema().attrs) {
    if (spec.name != "dst_type_max" && spec.name != "max_low_bound") continue;
    const float value = op.attr_float(spec.name);
    check.Supported(value == 0, "{} is {}, expected 0", spec.name, value);
  }
  CheckPacking(check, format.dtype, y);
  return format;
}

uint8_t MxScaleByte(const MxFormat& format, float most) {
  if (std::isnan(most)) return 0xff;
  if (most == 0) return 0;
  const NumberGrid grid = NumberGridOf(format.dtype);
  if (!format.rounds_up) {
    const int exponent = std::ilogb(most) - std::ilogb(grid.largest);
    return static_cast<uint8_t>(std::max(exponent, -127) + 127);
  }
  const auto bits = std::bit_cast<uint32_t>(most / grid.largest);
  const uint32_t exponent = bits >> 23, mantissa = bits & 0x7fffff;
  const bool up = exponent > 0 ? exponent < 254 && mantissa > 0 : mantissa > 1u << 22;
  return static_cast<uint8_t>(exponent + (up ? 1 : 0));
}

float MxMagnitude(const float* values, int64_t count, int64_t stride) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float value = std::fabs(values[i * stride]);
    if (!std::isfinite(value)) return std::numeric_limits<float>::quiet_NaN();
    most = std::max(most, value);
  }
  return most;
}

void StoreMx(const MxFormat& format, uint8_t scale, const float* values, int64_t count, void* data,
             int64_t first) {
  const NumberGrid grid = NumberGridOf(format.dtype);
  StoreCodes(format.dtype, count, data, first,
             [&](int64_t i) { return CodeAt(format, grid, scale, values[i]); });
}

MxAxis MxAxisOf(const Shape& shape, int axis, int64_t block) {
  return {ElementsBetween(shape, 0, axis), shape[axis],
          ElementsBetween(shape, axis + 1, shape.rank()), block};
}

TensorType MxScaleType(Shape shape, int axis, int64_t block) {
  shape[axis] = MxAxisOf(shape, axis, block).pairs();
  shape.mutable_dims().push_back(2);
  return {DataType::kFloat8E8M0, std::move(shape)};
}

void QuantiseMxBlock(const MxFormat& format, const MxAxis& axis, int64_t o, int64_t b,
                     const float* values, void* data, uint8_t* scales) {
  const NumberGrid grid = NumberGridOf(format.dtype);
  const int64_t begin = b * axis.block, inner = axis.inner;
  const int64_t count = std::min(axis.block, axis.length - begin);
  for (int64_t i = 0; i < inner; ++i) {
    scales[axis.ScaleAt(o, b, i)] = MxScaleByte(format, MxMagnitude(values + i, count, inner));
  }
  StoreCodes(format.dtype, count * inner, data, (o * axis.length + begin) * inner, [&](int64_t e) {
    return CodeAt(format, grid, scales[axis.ScaleAt(o, b, e % inner)], values[e]);
  });
}

void QuantiseMxRow(const MxFormat& format, const MxAxis& axis, int64_t r, const float* row,
                   void* data, void* scales) {
  for (int64_t b = 0; b < axis.blocks(); ++b) {
    QuantiseMxBlock(format, axis, r, b, row + b * axis.block, data, static_cast<uint8_t*>(scales));
  }
}

}  // namespace npumesh
