#include "graph/ops/toolbox/values/small_float.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

namespace npumesh {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// 2^exponent for the exponents of normal float32 numbers.
constexpr float PowerOfTwo(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

// Codes 0 to 127 of an OCP format.
constexpr float OcpValue(uint32_t code, int mantissa_bits, int bias, bool has_infinity) {
  const uint32_t mantissas = 1u << mantissa_bits;
  const uint32_t top = (0x7fu >> mantissa_bits);
  const uint32_t exponent = code >> mantissa_bits;
  const uint32_t mantissa = code & (mantissas - 1);
  if (has_infinity && exponent == top) return mantissa == 0 ? kInfinity : kNan;
  if (code == 0x7f) return kNan;
  const auto fraction = static_cast<float>(mantissa) / static_cast<float>(mantissas);
  if (exponent == 0) return fraction * PowerOfTwo(1 - bias);
  return (1.0f + fraction) * PowerOfTwo(static_cast<int>(exponent) - bias);
}

// Codes 0 to 127 of HIFLOAT8: the prefixes 11, 10, 01, 001, 0001 announce 4, 3, 2, 1, 0 exponent
// bits, of which the first is a sign and the others follow an implicit one; 0000 stands for the
// powers 2^-22 to 2^-16.
constexpr float HifloatValue(uint32_t code) {
  if (code == 0x6f) return kInfinity;
  if (code < 8) return code == 0 ? 0.0f : PowerOfTwo(static_cast<int>(code) - 23);
  if (code < 16) return (1.0f + static_cast<float>(code & 7) / 8) * PowerOfTwo(0);
  const int exponent_bits = code < 32 ? 1 : static_cast<int>(code >> 5) + 1;
  const int mantissa_bits = exponent_bits == 1 ? 3 : 5 - exponent_bits;
  const uint32_t exponent = (code >> mantissa_bits) & ((1u << exponent_bits) - 1);
  const uint32_t sign = exponent >> (exponent_bits - 1);
  const uint32_t implicit = 1u << (exponent_bits - 1);
  const auto size = static_cast<int>(implicit | (exponent & (implicit - 1)));
  const uint32_t mantissas = 1u << mantissa_bits;
  const auto fraction = static_cast<float>(code & (mantissas - 1)) / static_cast<float>(mantissas);
  return (1.0f + fraction) * PowerOfTwo(sign != 0 ? -size : size);
}

// One format: its values, and how to find the nearest.
struct Format {
  std::array<float, 128> value{};  // by code without sign
  // The codes of finite values and of the first value past them, by value; that one is where the
  // grid would go on and stands for overflow.
  std::array<float, 128> grid{};
  std::array<uint8_t, 128> code{};
  size_t points = 0;

  constexpr void Add(float at, uint8_t is) {
    size_t i = points++;
    for (; i > 0 && grid[i - 1] > at; --i) {
      grid[i] = grid[i - 1];
      code[i] = code[i - 1];
    }
    grid[i] = at;
    code[i] = is;
  }
};

template <typename ValueOf>
constexpr Format MakeFormat(ValueOf value_of, float past, uint8_t overflow) {
  Format format;
  for (uint32_t code = 0; code < 128; ++code) {
    const float value = value_of(code);
    format.value[code] = value;
    if (value == value && value != kInfinity) format.Add(value, static_cast<uint8_t>(code));
  }
  format.Add(past, overflow);
  return format;
}

constexpr Format kE5m2 =
    MakeFormat([](uint32_t code) { return OcpValue(code, 2, 15, true); }, 65536.0f, 0x7c);
constexpr Format kE4m3 =
    MakeFormat([](uint32_t code) { return OcpValue(code, 3, 7, false); }, 480.0f, 0x7f);
constexpr Format kHif8 = MakeFormat(HifloatValue, 49152.0f, 0x6f);

// The code of |value|, which is not NaN.
uint8_t Nearest(const Format& format, float magnitude) {
  const auto begin = format.grid.begin();
  const auto end = begin + static_cast<ptrdiff_t>(format.points);
  const auto above = std::lower_bound(begin, end, magnitude);
  if (above == end) return format.code[format.points - 1];
  const auto high = static_cast<size_t>(above - begin);
  if (*above == magnitude) return format.code[high];
  // Exact where it matters: the value is at least half its upper neighbour, or nearer to zero.
  const float to_low = magnitude - format.grid[high - 1];
  const float to_high = format.grid[high] - magnitude;
  if (to_low != to_high) return format.code[to_low < to_high ? high - 1 : high];
  return format.code[(format.code[high] & 1) == 0 ? high : high - 1];
}

uint8_t Encode(const Format& format, float value, uint8_t nan) {
  if (value != value) return nan;
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  return static_cast<uint8_t>(sign | Nearest(format, std::fabs(value)));
}

float Decode(const Format& format, uint8_t bits) {
  const float magnitude = format.value[bits & 0x7f];
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

}  // namespace

float ToFloat(Float8E5m2 value) {
  return Decode(kE5m2, value.bits);
}

float ToFloat(Float8E4m3 value) {
  return Decode(kE4m3, value.bits);
}

float ToFloat(Hifloat8 value) {
  return value.bits == 0x80 ? kNan : Decode(kHif8, value.bits);
}

float ToFloat(Float8E8m0 value) {
  return value.bits == 0xff ? kNan : std::ldexp(1.0f, static_cast<int>(value.bits) - 127);
}

Float8E5m2 ToFloat8E5m2(float value) {
  return {Encode(kE5m2, value, 0x7f)};
}

Float8E4m3 ToFloat8E4m3(float value) {
  return {Encode(kE4m3, value, 0x7f)};
}

Hifloat8 ToHifloat8(float value) {
  const uint8_t code = Encode(kHif8, value, 0x80);
  return {code == 0x80 && value == value ? uint8_t{0} : code};
}

}  // namespace npumesh
