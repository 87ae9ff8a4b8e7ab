// The element-wise arithmetic and mathematics.
#include "graph/ops/elementwise/family.h"
#include "graph/ops/toolbox/formula/formula.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
void RegisterElementwiseOps(OpRegistry& registry) {
  const ElementwiseSpec specs[] = {
      {"Add(x1, x2) -> y", Formula::kAdd},
      {"AddV2(x1, x2) -> y", Formula::kAdd},
      {"Sub(x1, x2) -> y", Formula::kSub},
      {"Mul(x1, x2) -> y", Formula::kMul},
      {"Muls(x; value:float) -> y", Formula::kScale, ResultRule::kQuotient},
      {"RealDiv(x1, x2) -> y", Formula::kDiv, ResultRule::kQuotient},
      {"Div(x1, x2) -> y", Formula::kDiv},
      {"FloorDiv(x1, x2) -> y", Formula::kFloorDiv},
      {"FloorMod(x1, x2) -> y", Formula::kFloorMod},
      {"Maximum(x1, x2) -> y", Formula::kMax},
      {"Minimum(x1, x2) -> y", Formula::kMin},
      {"Sqrt(x) -> y", Formula::kSqrt},
      {"Rsqrt(x) -> y", Formula::kRsqrt},
      {"Abs(x) -> y", Formula::kAbs},
      {"Neg(x) -> y", Formula::kNeg},
      {"Reciprocal(x) -> y", Formula::kReciprocal, ResultRule::kQuotient},
      {"Square(x) -> y", Formula::kSquare},
      {"Sign(x) -> y", Formula::kSign},
      {"Floor(x) -> y", Formula::kFloor},
      {"Ceil(x) -> y", Formula::kCeil},
      {"Erf(x) -> y", Formula::kErf},
      {"Sin(x) -> y", Formula::kSin},
      {"Cos(x) -> y", Formula::kCos},
  };
  const ElementwiseSpec powers[] = {
      {"Pow(x1, x2) -> y", Formula::kPow},
      {"Exp(x; base=-1.0, scale=1.0, shift=0.0) -> y", Formula::kExp},
      {"Expm1(x) -> y", Formula::kExpm1},
      {"Log(x; base=-1.0, scale=1.0, shift=0.0) -> y", Formula::kLog, ResultRule::kReal},
      {"Log1p(x) -> y", Formula::kLog1p},
  };
  RegisterElementwise(registry, specs);
  RegisterElementwise(registry, powers, PrecisionClass::kBlack);
  RegisterCastOp(registry);
}

}  // namespace npumesh
