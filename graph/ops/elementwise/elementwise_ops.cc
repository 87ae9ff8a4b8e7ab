// The element-wise arithmetic and mathematics.
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/machine/elementwise.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
void RegisterElementwiseOps(OpRegistry& registry) {
  const ElementwiseSpec specs[] = {
      {"Add(x1, x2) -> y", LoopOp::kAdd},
      {"AddV2(x1, x2) -> y", LoopOp::kAdd},
      {"Sub(x1, x2) -> y", LoopOp::kSub},
      {"Mul(x1, x2) -> y", LoopOp::kMul},
      {"Muls(x; value:float) -> y", LoopOp::kScale, ResultRule::kQuotient},
      {"RealDiv(x1, x2) -> y", LoopOp::kDiv, ResultRule::kQuotient},
      {"Div(x1, x2) -> y", LoopOp::kDiv},
      {"FloorDiv(x1, x2) -> y", LoopOp::kFloorDiv},
      {"FloorMod(x1, x2) -> y", LoopOp::kFloorMod},
      {"Maximum(x1, x2) -> y", LoopOp::kMax},
      {"Minimum(x1, x2) -> y", LoopOp::kMin},
      {"Sqrt(x) -> y", LoopOp::kSqrt},
      {"Rsqrt(x) -> y", LoopOp::kRsqrt},
      {"Abs(x) -> y", LoopOp::kAbs},
      {"Neg(x) -> y", LoopOp::kNeg},
      {"Reciprocal(x) -> y", LoopOp::kReciprocal, ResultRule::kQuotient},
      {"Square(x) -> y", LoopOp::kSquare},
      {"Sign(x) -> y", LoopOp::kSign},
      {"Floor(x) -> y", LoopOp::kFloor},
      {"Ceil(x) -> y", LoopOp::kCeil},
      {"Rint(x) -> y", LoopOp::kRint},
      {"Erf(x) -> y", LoopOp::kErf},
      {"Sin(x) -> y", LoopOp::kSin},
      {"Cos(x) -> y", LoopOp::kCos},
  };
  const ElementwiseSpec powers[] = {
      {"Pow(x1, x2) -> y", LoopOp::kPow},
      {"Exp(x; base=-1.0, scale=1.0, shift=0.0) -> y", LoopOp::kExp},
      {"Expm1(x) -> y", LoopOp::kExpm1},
      {"Log(x; base=-1.0, scale=1.0, shift=0.0) -> y", LoopOp::kLog, ResultRule::kReal},
      {"Log1p(x) -> y", LoopOp::kLog1p},
  };
  RegisterElementwise(registry, specs);
  RegisterElementwise(registry, powers, PrecisionClass::kBlack);
  RegisterCastOp(registry);
}

}  // namespace npumesh
