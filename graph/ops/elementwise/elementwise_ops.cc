// The element-wise arithmetic and mathematics.
#include "graph/ops/elementwise/family.h"
#include "graph/ops/toolbox/formula/formula.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

const std::vector<PortSpec> kOne = {{"x"}};
const std::vector<PortSpec> kTwo = {{"x1"}, {"x2"}};

std::vector<AttrSpec> BaseScaleShift() {
  return {{"base", AttrValue::Float(-1.0f)},
          {"scale", AttrValue::Float(1.0f)},
          {"shift", AttrValue::Float(0.0f)}};
}

}  // namespace

void RegisterElementwiseOps(OpRegistry& registry) {
  const ElementwiseSpec specs[] = {
      {"Add", Formula::kAdd, kTwo},
      {"AddV2", Formula::kAdd, kTwo},
      {"Sub", Formula::kSub, kTwo},
      {"Mul", Formula::kMul, kTwo},
      {"Muls", Formula::kScale, kOne, ResultRule::kQuotient, {{"value", Required::kFloat}}},
      {"RealDiv", Formula::kDiv, kTwo, ResultRule::kQuotient},
      {"Div", Formula::kDiv, kTwo},
      {"FloorDiv", Formula::kFloorDiv, kTwo},
      {"FloorMod", Formula::kFloorMod, kTwo},
      {"Pow", Formula::kPow, kTwo},
      {"Maximum", Formula::kMax, kTwo},
      {"Minimum", Formula::kMin, kTwo},
      {"Sqrt", Formula::kSqrt, kOne},
      {"Rsqrt", Formula::kRsqrt, kOne},
      {"Exp", Formula::kExp, kOne, ResultRule::kSame, BaseScaleShift()},
      {"Expm1", Formula::kExpm1, kOne},
      {"Log", Formula::kLog, kOne, ResultRule::kReal, BaseScaleShift()},
      {"Log1p", Formula::kLog1p, kOne},
      {"Abs", Formula::kAbs, kOne},
      {"Neg", Formula::kNeg, kOne},
      {"Reciprocal", Formula::kReciprocal, kOne, ResultRule::kQuotient},
      {"Square", Formula::kSquare, kOne},
      {"Sign", Formula::kSign, kOne},
      {"Floor", Formula::kFloor, kOne},
      {"Ceil", Formula::kCeil, kOne},
      {"Erf", Formula::kErf, kOne},
      {"Sin", Formula::kSin, kOne},
      {"Cos", Formula::kCos, kOne},
  };
  for (const ElementwiseSpec& spec : specs) RegisterElementwise(registry, spec);
  RegisterCastOp(registry);
}

}  // namespace npumesh
