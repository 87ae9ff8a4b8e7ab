// Floats and doubles: the C library.
#include <cmath>

#include "graph/ops/toolbox/machine/calls.h"

namespace npumesh {
namespace {

// What is left of a quotient that is rounded down. A rest of 0 has the sign of the divisor, too.
template <typename T>
T FloorMod(T a, T b) {
  const T rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(T(0), b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

// A cube is rounded once.
float Cube(float x) {
  const double wide = x;
  return static_cast<float>(wide * wide * wide);
}

float Power(float base, float exponent) {
  if (exponent == 2.0f) return base * base;
  return exponent == 3.0f ? Cube(base) : std::pow(base, exponent);
}

bool AreAll(const float* values, size_t count, float wanted) {
  size_t others = 0;
  for (size_t i = 0; i < count; ++i) others += values[i] != wanted;
  return others == 0;
}

// Squares (every RMS norm begins with one) and cubes (Gelu) are by far the most frequent powers,
// and cost next to nothing.
void Pow(const void* const* in, void* out, size_t count, const LaneParams& params) {
  static constexpr LaneFn kPowers = PairsOf<float>([](float a, float b) { return Power(a, b); });
  const auto* exponents = static_cast<const float*>(in[1]);
  const bool squares = AreAll(exponents, count, 2.0f);
  if (squares || AreAll(exponents, count, 3.0f)) {
    FindLanes(squares ? LoopOp::kSquare : LoopOp::kCube, LoopType::kFloat)(in, out, count, params);
  } else {
    kPowers(in, out, count, params);
  }
}

constexpr LoopType kFloat = LoopType::kFloat, kDouble = LoopType::kDouble;
constexpr ElementCall kOfReals[] = {
    {LoopOp::kPow, kFloat, Pow},
    {LoopOp::kFloorMod, kFloat, PairsOf<float>([](float a, float b) { return FloorMod(a, b); })},
    {LoopOp::kFloorMod, kDouble,
     PairsOf<double>([](double a, double b) { return FloorMod(a, b); })},
};

constexpr CallTable kRealCalls[] = {kOfReals};

}  // namespace

std::span<const CallTable> RealCalls() {
  return kRealCalls;
}

}  // namespace npumesh
