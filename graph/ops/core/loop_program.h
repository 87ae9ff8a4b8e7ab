// LoopProgram: what an operator, or a chain of operators, computes on the elements of rows, as a
// list of instructions. A static kernel is such a program as machine code.
//
// A program walks a space of `outer` dimensions and `columns`. A value has one number for each
// element of a row, or one for the whole row: inputs that do not vary along the columns, and what
// sums and maxima give. Values of all floats but double are floats, of integers up to 32 bits ints;
// what rounds, what wraps, and in which order sums are added, is that of the operators' own
// kernels, so that the results have the same bits.
//
// The block machine (toolbox/machine) runs programs that need no whole rows at once. It computes
// more instructions and types than static kernels, which are made of lanes alone.
//
// Thread-safety: values; a builder is used by one thread.
#ifndef NPUMESH_GRAPH_OPS_CORE_LOOP_PROGRAM_H_
#define NPUMESH_GRAPH_OPS_CORE_LOOP_PROGRAM_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ir/tensor.h"

namespace npumesh {

class OpContext;

// clang-format off
enum class LoopOp : uint8_t {
  kInput,     // an element of input `index`, of the type that TypeOf says
  kConstant,  // params[0]
  // a number from numbers of its type; integers wrap, of bools sums are "or" and products "and"
  kAdd, kSub, kMul, kMax, kMin, kNeg, kAbs, kSquare, kSign, kRelu, kRelu6,
  kScale,  // params: factor
  // the same, not of integers
  kDiv, kSqrt, kRsqrt, kReciprocal, kFloor, kCeil,
  kFloorDiv,  // -1 of a quotient by an infinity of the other sign
  kFloorMod, kPow,  // no lanes of floats
  kRint,  // to the nearest, ties to even
  kHardSwish,    // x times x / 6 + 1/2 within 0 and 1
  kHardSigmoid,  // params: alpha, beta: alpha x + beta within 0 and 1
  kLeakyRelu,    // params: slope of negative x
  // bool from numbers of one type, bool from bools
  kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kAnd, kOr, kNot,
  kSelect,  // args: bool, value where it holds, value elsewhere
  // from any other type: to floats to the nearest; of an integer the low bits, of a bool 1 or 0;
  // kToBool: "is not 0"
  kToFloat, kToBool, kToInt, kToLong, kToDouble, kToUlong,
  kToOdd,     // float from a double: the last bit is set where a digit is cut off
  kSaturate,  // the integer type `dtype` from a float or a double: truncates and clips, 0 of NaN
  kWrap,      // the low bits of an integer as a number of the integer type `dtype`
  // float from floats, computed in double and rounded once
  kExp,  // params: factor, scale, shift: e^((scale x + shift) factor)
  kLog,  // params: divisor, scale, shift: ln(scale x + shift) / divisor
         // of doubles the first param of both is the base, or -1 for e
  kExpm1, kLog1p, kSin, kCos, kTanh, kErf, kSigmoid, kGeluTanh, kGeluErf, kFastGelu,
  kSwish,   // params: scale
  kSwiGlu,  // silu(first) second
  kCube,
  // double from doubles, as the C library computes them; so it does all of the above that take them
  kTan, kSinh, kCosh, kAsin, kAcos, kAtan, kAsinh, kAcosh, kAtanh, kErfc, kAtan2, kMod,
  kExpOfNonPositive,  // of float_exp.h, in float
  kRound,             // to the precision of `dtype`, a float of 16 bits
  // one number for a row from its elements
  kRowMax,                 // of what is no NaN; -inf where there is nothing else
  kRowLargest, kRowLeast,  // NaN wins
  kRowSum,                 // a double, of floats in blocks as BlockedSum adds
  kRowTotal, kRowProduct,  // of doubles in blocks of 512 by sixteen lanes
  // float from a sum
  kMeanOf,         // params: count
  kReciprocalOf,   // 1 / sum
  kRootOfMeanOf,   // params: count, epsilon: 1 / sqrt(sum / count + epsilon)
};
// clang-format on

// The name of an instruction as listings and sources have it: "Add".
std::string_view NameOf(LoopOp op);
// Whether it makes one number of a row.
bool Reduces(LoopOp op);
// Whether it gives what it takes as another type, kToFloat and the like.
bool IsConversion(LoopOp op);
// Whether it gives the numbers of the element type that the instruction names.
bool HasTarget(LoopOp op);

// kInt has 32 bits, kLong 64, as kUlong without a sign; complex numbers have parts of 32 bits, wide
// ones of 64.
enum class LoopType : uint8_t {
  kFloat,
  kBool,
  kSum,
  kInt,
  kLong,
  kDouble,
  kUlong,
  kComplex,
  kWideComplex
};
bool IsComplex(LoopType type);

// What runs a program: static kernels, or the block machine, which takes more.
enum class LoopTarget : uint8_t { kCompiler, kBlocks };

// The type of the values of a tensor: kInt of integers that 32 bits with a sign hold. nullopt:
// programs do not read and write such elements.
std::optional<LoopType> TypeOf(DataType dtype, LoopTarget target = LoopTarget::kCompiler);
// The elements as which values lie in memory. REQUIRES: not kSum.
DataType ElementOf(LoopType type);

// Whether the instruction takes values of a type as its last argument.
bool IsTaken(LoopOp op, LoopType type, LoopTarget target = LoopTarget::kBlocks);

// The number of a value: its place among the instructions. -1: there is no such value.
using LoopValue = int;

struct LoopInstruction {
  LoopOp op = LoopOp::kConstant;
  LoopType type = LoopType::kFloat;
  bool row = false;  // one number for a row
  std::vector<LoopValue> args = {};
  std::array<double, 3> params = {};
  int index = -1;                         // of an input
  DataType dtype = DataType::kUndefined;  // of kInput, kRound, kSaturate, kWrap
  int origin = -1;                        // which operator it comes from, an index into `titles`
};

// How a program reads a tensor. Strides count elements.
struct LoopInput {
  int tensor = 0;  // slot of the kernel
  // kUint64: floats, each in the low half of 64 bits.
  DataType dtype = DataType::kFloat;
  int64_t offset = 0;
  std::vector<int64_t> strides = {};  // by outer dimension
  int64_t step = 1;                   // from column to column: 0 or 1
};

// Outputs are packed: an element or, of a row value, one number a row.
struct LoopOutput {
  LoopValue value = -1;
  DataType dtype = DataType::kFloat;
};

struct LoopProgram {
  std::vector<int64_t> outer;
  int64_t columns = 1;
  std::vector<LoopInput> inputs;
  std::vector<LoopInstruction> instructions;
  std::vector<LoopOutput> outputs;
  std::vector<std::string> titles;  // of operators: "Add_3 (Add)"

  int64_t rows() const;
  bool has_row_sums() const;  // or maxima: columns cannot be merged with other dimensions
  // Merges dimensions that all inputs walk as one.
  void Collapse();
  // One line for each input, instruction and output, without titles: equal programs have equal
  // listings.
  std::string ToString() const;
};

// The coarsest space that walks the elements of all `frames` in their order: each dimension of a
// frame is one dimension of it, or a run of them. Frames that are equal are their own space.
// nullopt: their dimensions cut across each other. REQUIRES: at least one frame, equal counts of
// elements, not 0.
std::optional<Shape> CommonSpace(const std::vector<Shape>& frames);

// Writes a program, operator by operator.
class LoopBuilder {
 public:
  // `space` is the shape of whole rows.
  explicit LoopBuilder(const Shape& space, LoopTarget target = LoopTarget::kCompiler);

  // Elements of a tensor of the kernel, found at `place`, that broadcasts to the space under the
  // shape in which it is `seen`: of programs that belong to no operator. -1: its type cannot be
  // read.
  LoopValue Tensor(int place, DataType dtype, const Shape& seen);

  // ---- for the pass that finds what belongs together ----
  // The operator whose instructions follow. `frame` is the space in the operator's own dimensions:
  // the same elements in the same order. `fed` gives, by slot, a value of the program, or -1 for a
  // tensor; `tensors`, by slot, where the kernel finds it.
  void Begin(const OpContext& op, const Shape& frame, std::vector<LoopValue> fed,
             std::vector<int> tensors);
  // A port of the operator just written; -1: it gave nothing there.
  LoopValue result(int port = 0) const { return results_[static_cast<size_t>(port)]; }
  // Why the operator just written gave no result: a literal, empty where it did not say.
  std::string_view why() const { return why_; }
  // The value, rounded to `dtype`, becomes the next output.
  void Write(LoopValue value, DataType dtype) { program_.outputs.push_back({value, dtype}); }
  LoopProgram Finish() { return std::move(program_); }

  // ---- for operators (Operator::loop) ----
  // Elements of an input that broadcasts to the space or to one number for a row. -1: its type or
  // shape cannot be read; so do all instructions on -1.
  LoopValue In(int slot);
  // The same of an input that is `seen` under another shape of as many elements, and broadcasts
  // under that one.
  LoopValue In(int slot, const Shape& seen);
  // Scales, offsets and the like (Factors of element_io.h) as floats.
  LoopValue Factor(int slot);
  LoopValue Factor(int slot, const Shape& seen);
  // As much of an input as the operator's rows need, from place `first` of the dimension `axis` on;
  // its other dimensions are those of the rows.
  LoopValue PartOf(int slot, int axis, int64_t first);
  // REQUIRES: kFloat or kDouble.
  LoopValue Constant(double value, LoopType type = LoopType::kFloat);
  // -1 also where the arguments do not have the types that `op` takes.
  LoopValue Emit(LoopOp op, std::vector<LoopValue> args, std::array<double, 3> params = {});
  LoopValue Round(LoopValue value, DataType dtype);
  // The value as another type; itself when it has the type. -1: an integer of a float, which
  // depends on the width.
  LoopValue As(LoopType type, LoopValue value);
  // What a Cast to `dtype` makes of a value.
  LoopValue To(DataType dtype, LoopValue value);
  int64_t columns() const { return program_.columns; }
  // The result of the operator for an output, of the type that TypeOf says; it is rounded, or
  // wrapped, to the output's own type. Port 0 always, others where a static kernel may be asked for
  // them. Ports that the node does not have are left out.
  void Give(int port, LoopValue value);
  void Give(LoopValue value) { Give(0, value); }
  // Where another operator, by which this one computes an output, reads its slot.
  struct Operand {
    int slot = 0;       // of this operator
    int64_t first = 0;  // element of it, of a vector of numbers
  };
  // Output 0 of `op` by its Operator::loop, in the rows of this operator; an operand for each slot.
  LoopValue Apply(const OpContext& op,
                  const std::function<void(const OpContext&, LoopBuilder&)>& loop,
                  std::span<const Operand> operands);
  // Says why the operator gives nothing; `why` is a literal, the first one counts. Gives -1.
  LoopValue Refuse(std::string_view why);

 private:
  LoopValue Add(LoopInstruction instruction);
  LoopValue Read(int slot, LoopInput input);
  // An input as elements of `dtype` (kUint64: floats), of the shape `seen`.
  LoopValue ReadSeen(int slot, DataType dtype, const Shape& seen);
  LoopType type(LoopValue value) const;
  // As TypeOf, of what the program is for.
  std::optional<LoopType> TypeHere(DataType dtype) const { return TypeOf(dtype, target_); }
  // REQUIRES: no argument is -1.
  bool AreTaken(LoopOp op, std::span<const LoopValue> args) const;
  // Whether a value has no other numbers than those of `dtype`.
  bool Fits(DataType dtype, LoopValue value) const;
  // The instruction with a target type.
  LoopValue EmitTo(LoopOp op, DataType dtype, LoopValue value);

  LoopProgram program_;
  LoopTarget target_;
  Shape space_;
  Shape frame_;
  const OpContext* op_ = nullptr;
  std::vector<LoopValue> fed_;
  std::vector<int> tensors_;
  std::vector<int64_t> first_;      // by slot; the element where a tensor begins
  std::vector<LoopValue> results_;  // by port
  std::string_view why_;
};

// A compiled program. `in` are the tensors by slot, `out` the outputs; scratch as asked for.
using LoopEntry = void (*)(const void* const* in, void* const* out, void* scratch);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_LOOP_PROGRAM_H_
