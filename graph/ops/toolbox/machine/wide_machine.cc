#include "graph/ops/toolbox/machine/wide_machine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "graph/ops/toolbox/machine/calls.h"
#include "graph/ops/toolbox/machine/lone_program.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

// ---- which programs ----

// Whether the value may change by a whole step where its argument changes by a rounding.
bool Jumps(LoopOp op) {
  switch (op) {
    case LoopOp::kSign:
    case LoopOp::kFloor:
    case LoopOp::kCeil:
    case LoopOp::kRint:
    case LoopOp::kEqual:
    case LoopOp::kNotEqual:
    case LoopOp::kLess:
    case LoopOp::kLessEqual:
    case LoopOp::kGreater:
    case LoopOp::kGreaterEqual:
    case LoopOp::kToBool:
    case LoopOp::kSaturate:
      return true;
    default:
      return false;
  }
}

// Whether 32-bit integers can be computed as doubles: no result needs more than 53 bits before it
// wraps.
bool IsNarrowSum(LoopOp op) {
  return op == LoopOp::kAdd || op == LoopOp::kSub || op == LoopOp::kNeg || op == LoopOp::kMax ||
         op == LoopOp::kMin || op == LoopOp::kAbs || op == LoopOp::kSelect;
}

bool IsInteger(LoopType type) {
  return type == LoopType::kInt || type == LoopType::kLong || type == LoopType::kUlong;
}

// Whether a value is what memory holds, brought to another type at most.
using Given = std::vector<bool>;

bool IsWide(const LoopProgram& program, const LoopInstruction& line, const Given& given) {
  if (IsComplex(line.type) || line.type == LoopType::kUlong || line.op == LoopOp::kWrap) {
    return false;
  }
  if (line.args.empty()) return true;
  const bool computed = std::any_of(line.args.begin(), line.args.end(), [&](LoopValue arg) {
    return !given[static_cast<size_t>(arg)];
  });
  if (computed && Jumps(line.op)) return false;
  // The quotient may fall on either side of a whole number.
  if (line.op == LoopOp::kFloorDiv || line.op == LoopOp::kFloorMod || line.op == LoopOp::kMod) {
    return false;
  }
  const LoopType taken = program.instructions[static_cast<size_t>(line.args.back())].type;
  if (IsConversion(line.op) || !IsInteger(taken) || line.type == LoopType::kBool) return true;
  return taken == LoopType::kInt && IsNarrowSum(line.op);
}

bool IsWide(const LoopProgram& program) {
  Given given;
  for (const LoopInstruction& line : program.instructions) {
    if (!IsWide(program, line, given)) return false;
    const bool moves = line.args.empty() || IsConversion(line.op) || line.op == LoopOp::kRound;
    given.push_back(moves && std::all_of(line.args.begin(), line.args.end(), [&](LoopValue arg) {
                      return given[static_cast<size_t>(arg)];
                    }));
  }
  const auto is_real = [](const LoopOutput& output) { return IsFloating(output.dtype); };
  return std::any_of(program.outputs.begin(), program.outputs.end(), is_real);
}

// ---- one row ----

// The numbers of a value along a row, one where they are all the same: bools as bytes, all others
// as doubles.
struct Line {
  std::vector<double> numbers;
  std::vector<uint8_t> bools;

  size_t size() const { return std::max(numbers.size(), bools.size()); }
  const void* data() const {
    return bools.empty() ? static_cast<const void*>(numbers.data()) : bools.data();
  }
};

template <typename T>
std::vector<T> Repeated(const std::vector<T>& values, size_t count) {
  return values.size() == 1 ? std::vector<T>(count, values[0]) : values;
}

// The largest of `sign` times the elements, times it.
double FurthestOf(const std::vector<double>& row, double sign, bool nan_wins) {
  double furthest = -std::numeric_limits<double>::infinity();
  for (const double x : row) {
    if (std::isnan(x) && nan_wins) return x;
    if (sign * x > furthest) furthest = sign * x;
  }
  return sign * furthest;
}

double TotalOf(const std::vector<double>& row) {
  double total = 0;
  for (const double x : row) total += x;
  return total;
}

double ProductOf(const std::vector<double>& row) {
  double product = 1;
  for (const double x : row) product *= x;
  return product;
}

std::vector<double> AsNumbers(const Line& line) {
  return line.bools.empty() ? line.numbers
                            : std::vector<double>(line.bools.begin(), line.bools.end());
}

// Of e^(factor (scale x + shift)) and ln(scale x + shift) / divisor, as doubles have them: with a
// base first.
LaneParams ParamsOfDoubles(const LoopInstruction& line, bool of_floats) {
  const auto [first, scale, shift] = line.params;
  if (line.op == LoopOp::kExpOfNonPositive) return {-1, 1, 0};
  if (!of_floats) return line.params;
  if (line.op == LoopOp::kExp) return {-1, scale * first, shift * first};
  if (line.op == LoopOp::kLog) return {first == 1 ? -1 : std::exp(first), scale, shift};
  return line.params;
}

class WideRow {
 public:
  explicit WideRow(const LoopProgram& program) : program_(program) {}

  // The outputs of a row.
  void Run(const KernelArgs& args, int64_t row) {
    lines_.clear();
    for (const LoopInstruction& line : program_.instructions) {
      lines_.push_back(line.op == LoopOp::kInput ? Read(args, InputOf(line), row) : Compute(line));
    }
    for (size_t port = 0; port < program_.outputs.size(); ++port) {
      Write(program_.outputs[port], args.out[port], row);
    }
  }

 private:
  const LoopInput& InputOf(const LoopInstruction& line) const {
    return program_.inputs[static_cast<size_t>(line.index)];
  }
  const Line& Arg(const LoopInstruction& line, size_t i) const {
    return lines_[static_cast<size_t>(line.args[i])];
  }
  LoopType TypeOfArg(const LoopInstruction& line) const {
    return program_.instructions[static_cast<size_t>(line.args.back())].type;
  }

  Line Read(const KernelArgs& args, const LoopInput& input, int64_t row) const {
    int64_t at = input.offset;
    for (size_t d = program_.outer.size(); d-- > 0;) {
      at += row % program_.outer[d] * input.strides[d];
      row /= program_.outer[d];
    }
    const size_t count = input.step == 0 ? 1 : static_cast<size_t>(program_.columns);
    const auto* from = static_cast<const std::byte*>(args.in[input.tensor]) +
                       static_cast<size_t>(at) * WidthOf(input.dtype);
    Line line;
    if (input.dtype == DataType::kBool) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(from);
      for (size_t i = 0; i < count; ++i) line.bools.push_back(bytes[i] != 0);
    } else if (input.dtype == DataType::kUint64) {  // floats in low halves
      for (size_t i = 0; i < count; ++i) {
        float value;
        std::memcpy(&value, from + 8 * i, sizeof(value));
        line.numbers.push_back(static_cast<double>(value));
      }
    } else {
      line.numbers.resize(count);
      FindConvert(input.dtype, DataType::kDouble)(from, line.numbers.data(), count);
    }
    return line;
  }

  Line Compute(const LoopInstruction& line) const {
    switch (line.op) {
      case LoopOp::kConstant:
        return line.type == LoopType::kBool ? Line{{}, {line.params[0] != 0}}
                                            : Line{{line.params[0]}, {}};
      case LoopOp::kToOdd:
        return Arg(line, 0);
      case LoopOp::kRowMax:
      case LoopOp::kRowLargest:
      case LoopOp::kRowLeast:
        return {{FurthestOf(Arg(line, 0).numbers, line.op == LoopOp::kRowLeast ? -1 : 1,
                            line.op != LoopOp::kRowMax)},
                {}};
      case LoopOp::kRowSum:
      case LoopOp::kRowTotal:
        return {{TotalOf(Arg(line, 0).numbers)}, {}};
      case LoopOp::kRowProduct:
        return {{ProductOf(Arg(line, 0).numbers)}, {}};
      case LoopOp::kMeanOf:
      case LoopOp::kReciprocalOf:
      case LoopOp::kRootOfMeanOf:
        return {{OfSum(line, Arg(line, 0).numbers[0])}, {}};
      default:
        return IsConversion(line.op) || HasTarget(line.op) ? Converted(line) : Called(line);
    }
  }

  Line Converted(const LoopInstruction& line) const {
    if (line.type == LoopType::kBool) return ToBools(Arg(line, 0));
    Line made{AsNumbers(Arg(line, 0)), {}};
    if (line.op == LoopOp::kToFloat) {  // of longer numbers: not all are floats
      for (double& x : made.numbers) x = static_cast<double>(static_cast<float>(x));
    }
    if (HasTarget(line.op)) {
      std::vector<std::byte> stored(made.size() * WidthOf(line.dtype));
      FindConvert(DataType::kDouble, line.dtype)(made.numbers.data(), stored.data(), made.size());
      FindConvert(line.dtype, DataType::kDouble)(stored.data(), made.numbers.data(), made.size());
    }
    return made;
  }

  static Line ToBools(const Line& line) {
    if (!line.bools.empty()) return line;
    Line made;
    for (const double x : line.numbers) made.bools.push_back(x != 0);
    return made;
  }

  // By the function of doubles, or of bools.
  Line Called(const LoopInstruction& line) const {
    const size_t count = line.row ? 1 : static_cast<size_t>(program_.columns);
    std::vector<Line> whole;
    std::vector<const void*> in;
    whole.reserve(line.args.size());
    for (size_t i = 0; i < line.args.size(); ++i) {
      const Line& arg = Arg(line, i);
      whole.push_back({Repeated(arg.numbers, count), Repeated(arg.bools, count)});
      in.push_back(whole.back().data());
    }
    Line made;
    (line.type == LoopType::kBool ? made.bools.resize(count) : made.numbers.resize(count));
    const bool of_bools = TypeOfArg(line) == LoopType::kBool;
    const LoopOp op = line.op == LoopOp::kExpOfNonPositive ? LoopOp::kExp : line.op;
    const LaneFn function = FunctionOf(op, of_bools ? LoopType::kBool : LoopType::kDouble);
    void* out = made.bools.empty() ? static_cast<void*>(made.numbers.data()) : made.bools.data();
    function(in.data(), out, count, ParamsOfDoubles(line, TypeOfArg(line) == LoopType::kFloat));
    if (line.type == LoopType::kInt) {  // wraps
      for (double& x : made.numbers) {
        x = static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(x)));
      }
    }
    return made;
  }

  void Write(const LoopOutput& output, void* out, int64_t row) const {
    const bool one = program_.instructions[static_cast<size_t>(output.value)].row;
    const size_t count = one ? 1 : static_cast<size_t>(program_.columns);
    auto* to =
        static_cast<std::byte*>(out) + static_cast<size_t>(row) * count * WidthOf(output.dtype);
    const Line& line = lines_[static_cast<size_t>(output.value)];
    const std::vector<double> numbers = Repeated(AsNumbers(line), count);
    FindConvert(DataType::kDouble, output.dtype)(numbers.data(), to, count);
  }

  const LoopProgram& program_;
  std::vector<Line> lines_;  // by value
};

// Whether all functions of doubles exist that the program calls.
bool HasFunctions(const LoopProgram& program) {
  return std::all_of(
      program.instructions.begin(), program.instructions.end(), [&](const LoopInstruction& line) {
        if (line.args.empty() || IsConversion(line.op) || HasTarget(line.op) || Reduces(line.op)) {
          return true;
        }
        const LoopType taken = program.instructions[static_cast<size_t>(line.args.back())].type;
        const bool by_itself = taken == LoopType::kSum || line.op == LoopOp::kToOdd ||
                               line.op == LoopOp::kExpOfNonPositive;
        const LoopType type = taken == LoopType::kBool ? taken : LoopType::kDouble;
        return by_itself || FunctionOf(line.op, type) != nullptr;
      });
}

}  // namespace

std::unique_ptr<Kernel> MakeWideMachine(const OpContext& op, const LoopFn& loop) {
  for (const LoopTarget target : {LoopTarget::kBlocks, LoopTarget::kCompiler}) {
    std::optional<LoopProgram> program = LoneProgram(op, loop, target);
    if (!program || !IsWide(*program) || !HasFunctions(*program)) continue;
    return MakeKernel([program = std::move(*program)](const KernelArgs& args) {
      WideRow machine(program);
      for (int64_t row = 0; row < program.rows(); ++row) machine.Run(args, row);
      return Status();
    });
  }
  return nullptr;
}

}  // namespace npumesh
