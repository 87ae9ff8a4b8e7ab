// Formulas on float: the lanes, and what has none.
#include <cmath>
#include <cstring>
#include <functional>

#include "graph/ops/toolbox/formula/formula_loop.h"
#include "graph/ops/toolbox/formula/formula_loops.h"

namespace npumesh {
namespace {

// A rest of 0 has the sign of the divisor, too.
float FloorMod(float a, float b) {
  const float rest = std::fmod(a, b);
  const float moved = (rest < 0) != (b < 0) ? rest + b : rest;
  return rest == 0 ? std::copysign(0.0f, b) : moved;
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
void Pow(const void* const* in, void* out, size_t count, const FormulaParams& params) {
  static constexpr BlockFn kPowers = PairsOf<float>([](float a, float b) { return Power(a, b); });
  const auto* exponents = static_cast<const float*>(in[1]);
  const bool squares = AreAll(exponents, count, 2.0f);
  if (squares || AreAll(exponents, count, 3.0f)) {
    FindLanes(squares ? LoopOp::kSquare : LoopOp::kCube, LoopType::kFloat)(in, out, count, params);
  } else {
    kPowers(in, out, count, params);
  }
}

constexpr FormulaRow kFloatRows[] = {
    {Formula::kPow, Pow},
    {Formula::kFloorMod, PairsOf<float>([](float a, float b) { return FloorMod(a, b); })},
    {Formula::kScale, EachOf<float>([](float x, const FormulaParams& params) {
       return x * static_cast<float>(params[0]);
     })},
};

}  // namespace

BlockFn FloatBlock(Formula formula) {
  const BlockFn row = FindBlock(kFloatRows, formula);
  return row != nullptr ? row : LanesOfFormula(formula, LoopType::kFloat);
}

}  // namespace npumesh
