#include "graph/ops/toolbox/formula/formula_loop.h"

#include <algorithm>
#include <cmath>

namespace npumesh {
namespace {

struct FormulaLoop {
  Formula formula;
  LoopOp op;
};

// Remainders and powers have no vector form; what double computes by the C library, and
// quotients of integers, which may be by zero, LoopBuilder::Emit refuses.
constexpr FormulaLoop kFormulaLoops[] = {
    {Formula::kAdd, LoopOp::kAdd},
    {Formula::kSub, LoopOp::kSub},
    {Formula::kMul, LoopOp::kMul},
    {Formula::kDiv, LoopOp::kDiv},
    {Formula::kFloorDiv, LoopOp::kFloorDiv},
    {Formula::kMax, LoopOp::kMax},
    {Formula::kMin, LoopOp::kMin},
    {Formula::kSwiGlu, LoopOp::kSwiGlu},
    {Formula::kEqual, LoopOp::kEqual},
    {Formula::kNotEqual, LoopOp::kNotEqual},
    {Formula::kLess, LoopOp::kLess},
    {Formula::kLessEqual, LoopOp::kLessEqual},
    {Formula::kGreater, LoopOp::kGreater},
    {Formula::kGreaterEqual, LoopOp::kGreaterEqual},
    {Formula::kAnd, LoopOp::kAnd},
    {Formula::kOr, LoopOp::kOr},
    {Formula::kScale, LoopOp::kMul},
    {Formula::kSqrt, LoopOp::kSqrt},
    {Formula::kRsqrt, LoopOp::kRsqrt},
    {Formula::kNeg, LoopOp::kNeg},
    {Formula::kReciprocal, LoopOp::kReciprocal},
    {Formula::kAbs, LoopOp::kAbs},
    {Formula::kSquare, LoopOp::kSquare},
    {Formula::kSign, LoopOp::kSign},
    {Formula::kFloor, LoopOp::kFloor},
    {Formula::kCeil, LoopOp::kCeil},
    {Formula::kNot, LoopOp::kNot},
    {Formula::kExp, LoopOp::kExp},
    {Formula::kLog, LoopOp::kLog},
    {Formula::kExpm1, LoopOp::kExpm1},
    {Formula::kLog1p, LoopOp::kLog1p},
    {Formula::kSin, LoopOp::kSin},
    {Formula::kCos, LoopOp::kCos},
    {Formula::kTanh, LoopOp::kTanh},
    {Formula::kErf, LoopOp::kErf},
    {Formula::kRelu, LoopOp::kRelu},
    {Formula::kSigmoid, LoopOp::kSigmoid},
    {Formula::kGeluTanh, LoopOp::kGeluTanh},
    {Formula::kGeluErf, LoopOp::kGeluErf},
    {Formula::kFastGelu, LoopOp::kFastGelu},
    {Formula::kSwish, LoopOp::kSwish},
};

// The logarithm of the base of Exp and Log, whose attribute says -1 for e.
double LogOfBase(double base) {
  return base == -1.0 ? 1.0 : std::log(base);
}

const FormulaLoop* FindFormulaLoop(Formula formula) {
  const auto* row =
      std::find_if(std::begin(kFormulaLoops), std::end(kFormulaLoops),
                   [formula](const FormulaLoop& each) { return each.formula == formula; });
  return row == std::end(kFormulaLoops) ? nullptr : row;
}

// Exp and Log of a base that the attribute says.
template <LoopOp kOp>
void OfBase(const void* const* in, void* out, size_t count, const FormulaParams& params) {
  FindLanes(kOp, LoopType::kFloat)(in, out, count, {LogOfBase(params[0]), params[1], params[2]});
}

}  // namespace

BlockFn LanesOfFormula(Formula formula, LoopType type) {
  const FormulaLoop* const row = FindFormulaLoop(formula);
  if (row == nullptr || formula == Formula::kScale) return nullptr;
  const BlockFn lanes = FindLanes(row->op, type);
  if (lanes != nullptr && formula == Formula::kExp) return OfBase<LoopOp::kExp>;
  if (lanes != nullptr && formula == Formula::kLog) return OfBase<LoopOp::kLog>;
  return lanes;
}

LoopValue LoopOfFormula(LoopBuilder& loop, Formula formula, LoopType type,
                        std::span<const LoopValue> operands, const FormulaParams& params) {
  const FormulaLoop* const row = FindFormulaLoop(formula);
  if (row == nullptr || operands.empty()) return -1;
  const LoopValue first = operands[0];
  switch (formula) {
    case Formula::kScale:
      if (type != LoopType::kFloat && type != LoopType::kDouble) return -1;
      return loop.Emit(LoopOp::kMul, {first, loop.Constant(params[0], type)});
    case Formula::kExp:
    case Formula::kLog:
      return loop.Emit(row->op, {first}, {LogOfBase(params[0]), params[1], params[2]});
    case Formula::kSwish:
      return loop.Emit(row->op, {first}, {params[0], 0, 0});
    default:
      if (operands.size() == 1) return loop.Emit(row->op, {first});
      return loop.Emit(row->op, {first, operands[1]});
  }
}

}  // namespace npumesh
