// Float16 (IEEE binary16) and Bfloat16: storage types that convert to and from float.
//
// Conversion from float rounds to nearest, ties to even; overflow gives infinity; NaN stays NaN and
// subnormals are kept. The code that uses them computes in float, so that a sum is rounded
// once.
#ifndef NPUMESH_RUNTIME_BASE_FLOAT16_H_
#define NPUMESH_RUNTIME_BASE_FLOAT16_H_

#include <bit>
#include <cstdint>

namespace npumesh {

struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  explicit Float16(float value) : bits(FromFloat(value)) {}
  explicit operator float() const { return ToFloat(bits); }
  bool operator==(const Float16&) const = default;  // bit equality

  static Float16 FromBits(uint16_t bits) {
    Float16 h;
    h.bits = bits;
    return h;
  }

  static float ToFloat(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
    const uint32_t exponent = (h >> 10) & 0x1fu;
    const uint32_t mantissa = h & 0x3ffu;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0) {
      return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
    }
    // Zero and subnormals: mantissa * 2^-24 is exact in float.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }

  static uint16_t FromFloat(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>((f >> 16) & 0x8000u);
    const uint32_t magnitude = f & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN, quiet
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // >= 65520: inf
    if (magnitude < 0x38800000u) {
      // Below 2^-14 the result is subnormal: adding 0.5 aligns its last bit with float's last bit,
      // so the adder itself rounds to nearest even.
      const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    const uint32_t rounded = magnitude + 0xfffu + odd - (112u << 23);
    return static_cast<uint16_t>(sign | (rounded >> 13));
  }
};
static_assert(sizeof(Float16) == 2);

struct Bfloat16 {
  uint16_t bits = 0;

  Bfloat16() = default;
  explicit Bfloat16(float value) : bits(FromFloat(value)) {}
  explicit operator float() const { return ToFloat(bits); }
  bool operator==(const Bfloat16&) const = default;  // bit equality

  static Bfloat16 FromBits(uint16_t bits) {
    Bfloat16 b;
    b.bits = bits;
    return b;
  }

  static float ToFloat(uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }

  static uint16_t FromFloat(float value) {
    const uint32_t f = std::bit_cast<uint32_t>(value);
    if ((f & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((f >> 16) | 0x40u);
    const uint32_t odd = (f >> 16) & 1u;
    return static_cast<uint16_t>((f + 0x7fffu + odd) >> 16);
  }
};
static_assert(sizeof(Bfloat16) == 2);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FLOAT16_H_
