// Element-wise operators: one driver, tables of formulas.
//
// The driver walks the output in blocks. For each block it brings every operand into the order of
// the output (broadcast.h) and into the type the formula computes in (cast.h), calls the formula on
// plain arrays, and converts the result. Formulas are therefore written once for six types only:
// float (also for both 16-bit floats: widened, computed, rounded once), double, int64 (also for all
// narrower integers: the low bits of the result are the wrapped result), uint64 and bool; and for
// complex64 (also for complex32) and complex128, where all operands are of one type.
//
// Thread-safety: formulas are pure functions; a kernel runs on one thread at a time.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_H_

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/toolbox/copy/block_operand.h"
#include "graph/ops/toolbox/lanes/lane_table.h"

namespace npumesh {

// clang-format off
enum class Formula : uint8_t {
  // two operands
  kAdd, kSub, kMul, kDiv, kPow, kMax, kMin, kFloorDiv, kFloorMod, kSwiGlu,
  kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kAnd, kOr,
  // one operand
  kScale,  // x * params[0]
  kSqrt, kRsqrt, kNeg, kReciprocal, kAbs, kSquare, kSign, kFloor, kCeil, kNot,
  kExp, kLog,  // params: base, scale, shift
  kExpm1, kLog1p, kSin, kCos, kTanh, kErf,
  kRelu, kSigmoid, kGeluTanh, kGeluErf, kFastGelu,
  kSwish,  // params[0]: scale
};
// clang-format on

// Computes `count` <= kBlockElements elements. `out` may be one of the operands. Comparisons write
// one byte an element, everything else the type of the operands.
using FormulaParams = LaneParams;
using BlockFn = LaneFn;

struct FormulaRow {
  Formula formula;
  BlockFn block;
};

// The block function of a formula; null when the formula does not exist for the type. `compute` is
// kFloat, kDouble, kInt64, kUint64, kBool, kComplex64 or kComplex128.
BlockFn FindBlock(Formula formula, DataType compute);
// The same in a table.
inline BlockFn FindBlock(std::span<const FormulaRow> rows, Formula formula) {
  for (const FormulaRow& row : rows) {
    if (row.formula == formula) return row.block;
  }
  return nullptr;
}

// The same by type; each lives in the file of its name.
BlockFn FloatBlock(Formula formula);                    // formula_float.cc
BlockFn DoubleBlock(Formula formula);                   // formula_double.cc
BlockFn IntegerBlock(Formula formula, bool is_signed);  // formula_integer.cc
BlockFn BoolBlock(Formula formula);                     // formula_integer.cc
BlockFn ComplexBlock(Formula formula, bool wide);       // formula_complex.cc

// The type that formulas on `dtype` compute in; kUndefined for a type without arithmetic.
DataType ComputeTypeOf(DataType dtype);

// Slots of the formula with the most of them.
inline constexpr size_t kMostOperands = 3;

// What an element-wise kernel does with its slots and its output.
struct BlockPlan {
  BlockFn block = nullptr;
  FormulaParams params = {};
  std::vector<DataType> operands;          // by slot: what `block` reads
  DataType result = DataType::kUndefined;  // what `block` writes
  int divisor = -1;                        // slot that may hold no (integer) zero
};

// The driver. REQUIRES: output 0 is inferred, every slot broadcasts to it, conversions exist.
std::unique_ptr<Kernel> MakeBlockKernel(const OpContext& context, BlockPlan plan);
// The plan of a kernel that MakeBlockKernel made, as long as the kernel lives; null for others.
const BlockPlan* BlockPlanOf(const Kernel& kernel);

// How the types of formula and output follow from the promoted type of the operands.
enum class ResultRule : uint8_t {
  kSame,      // computes in the promoted type, which is also the output's
  kCompare,   // the same, output bool
  kLogical,   // operands become bool first, output bool
  kQuotient,  // integers are computed in double and truncated; bool gives float32
  kReal,      // integers and bool give float32
};

// Float attributes become FormulaParams in the order of the signature.
struct ElementwiseSpec {
  std::string_view signature;
  Formula formula;
  ResultRule rule = ResultRule::kSame;
  // Chooses the formula by attributes; null: `formula`.
  Result<Formula> (*choose)(const OpContext&) = nullptr;
};

void RegisterElementwise(OpRegistry& registry, std::span<const ElementwiseSpec> specs,
                         PrecisionClass precision = PrecisionClass::kGrey);

// Shape all given slots broadcast to. Error names the node, the ports and their types.
Result<Shape> BroadcastSlots(const OpContext& context, int slots);
// Errors: more dimensions than a BroadcastPlan has (kUnsupported), more elements than 63 bits
// count.
Status CheckBroadcast(const OpContext& context, const Shape& shape);

// Error (kInvalidArgument) for a zero among `count` divisors of 64 bits; the first one is for
// element `begin` of the output.
Status RefuseZeros(const std::string& who, const void* block, int64_t begin, size_t count);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_H_
