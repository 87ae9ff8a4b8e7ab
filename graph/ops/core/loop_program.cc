#include "graph/ops/core/loop_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/operator.h"

namespace npumesh {
namespace {

// Types of arguments, one bit for each.
using Types = unsigned;
constexpr Types Bit(LoopType type) {
  return 1u << static_cast<unsigned>(type);
}
constexpr Types kFloats = Bit(LoopType::kFloat);
constexpr Types kBools = Bit(LoopType::kBool);
constexpr Types kSums = Bit(LoopType::kSum);
constexpr Types kDoubles = Bit(LoopType::kDouble);
constexpr Types kReals = kFloats | kDoubles;
constexpr Types kLongs = Bit(LoopType::kLong);
constexpr Types kWhole = Bit(LoopType::kInt) | kLongs;
constexpr Types kNumbers = kReals | kWhole;
constexpr Types kAll = kNumbers | kBools;
constexpr Types kUlongs = Bit(LoopType::kUlong);
constexpr Types kComplexes = Bit(LoopType::kComplex) | Bit(LoopType::kWideComplex);

// What an instruction is named, what its value is (nullopt: what its last argument is), what it
// takes (kSelect: after a bool) where it has lanes, and what else the block machine computes; all
// arguments have one type. Whether it makes one number of a row.
struct LoopOpRow {
  LoopOp op;
  std::string_view name;
  std::optional<LoopType> type = LoopType::kFloat;
  Types lanes = kFloats;
  Types calls = 0;
  bool reduces = false;
};

constexpr LoopOpRow kLoopOps[] = {
    {LoopOp::kInput, "Input"},
    {LoopOp::kConstant, "Constant"},
    {LoopOp::kAdd, "Add", std::nullopt, kNumbers, kBools | kUlongs | kComplexes},
    {LoopOp::kSub, "Sub", std::nullopt, kNumbers, kBools | kUlongs | kComplexes},
    {LoopOp::kMul, "Mul", std::nullopt, kNumbers, kBools | kUlongs | kComplexes},
    {LoopOp::kMax, "Max", std::nullopt, kNumbers, kBools | kUlongs},
    {LoopOp::kMin, "Min", std::nullopt, kNumbers, kBools | kUlongs},
    {LoopOp::kNeg, "Neg", std::nullopt, kNumbers, kUlongs | kComplexes},
    {LoopOp::kAbs, "Abs", std::nullopt, kNumbers, kBools | kUlongs | kComplexes},
    {LoopOp::kSquare, "Square", std::nullopt, kNumbers, kUlongs | kComplexes},
    {LoopOp::kSign, "Sign", std::nullopt, kNumbers, kUlongs | kComplexes},
    {LoopOp::kRelu, "Relu", std::nullopt, kNumbers, kUlongs},
    {LoopOp::kRelu6, "Relu6", std::nullopt, kNumbers, kUlongs},
    {LoopOp::kScale, "Scale", std::nullopt, kReals, kComplexes},
    {LoopOp::kDiv, "Div", std::nullopt, kReals, kLongs | kUlongs | kComplexes},
    {LoopOp::kSqrt, "Sqrt", std::nullopt, kReals},
    {LoopOp::kRsqrt, "Rsqrt", std::nullopt, kReals},
    {LoopOp::kReciprocal, "Reciprocal", std::nullopt, kReals, kComplexes},
    {LoopOp::kFloor, "Floor", std::nullopt, kReals, kLongs | kUlongs},
    {LoopOp::kCeil, "Ceil", std::nullopt, kReals, kLongs | kUlongs},
    {LoopOp::kFloorDiv, "FloorDiv", std::nullopt, kReals, kLongs | kUlongs},
    {LoopOp::kFloorMod, "FloorMod", std::nullopt, 0, kReals | kLongs | kUlongs},
    {LoopOp::kPow, "Pow", std::nullopt, kDoubles, kFloats | kLongs | kUlongs},
    {LoopOp::kRint, "Rint", std::nullopt, kReals},
    {LoopOp::kHardSwish, "HardSwish", std::nullopt, kReals},
    {LoopOp::kHardSigmoid, "HardSigmoid", std::nullopt, kReals},
    {LoopOp::kLeakyRelu, "LeakyRelu", std::nullopt, kReals},
    {LoopOp::kEqual, "Equal", LoopType::kBool, kNumbers, kBools | kUlongs | kComplexes},
    {LoopOp::kNotEqual, "NotEqual", LoopType::kBool, kNumbers, kBools | kUlongs | kComplexes},
    {LoopOp::kLess, "Less", LoopType::kBool, kNumbers, kBools | kUlongs},
    {LoopOp::kLessEqual, "LessEqual", LoopType::kBool, kNumbers, kBools | kUlongs},
    {LoopOp::kGreater, "Greater", LoopType::kBool, kNumbers, kBools | kUlongs},
    {LoopOp::kGreaterEqual, "GreaterEqual", LoopType::kBool, kNumbers, kBools | kUlongs},
    {LoopOp::kAnd, "And", LoopType::kBool, kBools},
    {LoopOp::kOr, "Or", LoopType::kBool, kBools},
    {LoopOp::kNot, "Not", LoopType::kBool, kBools},
    {LoopOp::kSelect, "Select", std::nullopt, kNumbers},
    {LoopOp::kToFloat, "ToFloat", LoopType::kFloat, kAll, kUlongs},
    {LoopOp::kToBool, "ToBool", LoopType::kBool, kAll, kUlongs},
    {LoopOp::kToInt, "ToInt", LoopType::kInt, kAll, kUlongs},
    {LoopOp::kToLong, "ToLong", LoopType::kLong, kAll, kUlongs},
    {LoopOp::kToDouble, "ToDouble", LoopType::kDouble, kAll, kUlongs},
    {LoopOp::kToUlong, "ToUlong", LoopType::kUlong, 0, kAll},
    {LoopOp::kToOdd, "ToOdd", LoopType::kFloat, kDoubles},
    {LoopOp::kSaturate, "Saturate", std::nullopt, kReals},
    {LoopOp::kWrap, "Wrap", std::nullopt, kWhole},
    {LoopOp::kExp, "Exp", std::nullopt, kReals},
    {LoopOp::kLog, "Log", std::nullopt, kReals},
    {LoopOp::kExpm1, "Expm1", std::nullopt, kReals},
    {LoopOp::kLog1p, "Log1p", std::nullopt, kReals},
    {LoopOp::kSin, "Sin", std::nullopt, kReals},
    {LoopOp::kCos, "Cos", std::nullopt, kReals},
    {LoopOp::kTanh, "Tanh", std::nullopt, kReals},
    {LoopOp::kErf, "Erf", std::nullopt, kReals},
    {LoopOp::kSigmoid, "Sigmoid", std::nullopt, kReals},
    {LoopOp::kGeluTanh, "GeluTanh"},
    {LoopOp::kGeluErf, "GeluErf"},
    {LoopOp::kFastGelu, "FastGelu"},
    {LoopOp::kSwish, "Swish"},
    {LoopOp::kSwiGlu, "SwiGlu"},
    {LoopOp::kCube, "Cube"},
    {LoopOp::kTan, "Tan", LoopType::kDouble, kDoubles},
    {LoopOp::kSinh, "Sinh", LoopType::kDouble, kDoubles},
    {LoopOp::kCosh, "Cosh", LoopType::kDouble, kDoubles},
    {LoopOp::kAsin, "Asin", LoopType::kDouble, kDoubles},
    {LoopOp::kAcos, "Acos", LoopType::kDouble, kDoubles},
    {LoopOp::kAtan, "Atan", LoopType::kDouble, kDoubles},
    {LoopOp::kAsinh, "Asinh", LoopType::kDouble, kDoubles},
    {LoopOp::kAcosh, "Acosh", LoopType::kDouble, kDoubles},
    {LoopOp::kAtanh, "Atanh", LoopType::kDouble, kDoubles},
    {LoopOp::kErfc, "Erfc", LoopType::kDouble, kDoubles},
    {LoopOp::kAtan2, "Atan2", LoopType::kDouble, kDoubles},
    {LoopOp::kMod, "Mod", LoopType::kDouble, kDoubles},
    {LoopOp::kExpOfNonPositive, "ExpOfNonPositive"},
    {LoopOp::kRound, "Round", std::nullopt, kFloats, kComplexes},
    {LoopOp::kRowMax, "RowMax", LoopType::kFloat, kFloats, 0, true},
    {LoopOp::kRowLargest, "RowLargest", std::nullopt, kReals, 0, true},
    {LoopOp::kRowLeast, "RowLeast", std::nullopt, kReals, 0, true},
    {LoopOp::kRowSum, "RowSum", LoopType::kSum, kFloats, 0, true},
    {LoopOp::kRowTotal, "RowTotal", LoopType::kDouble, kDoubles, 0, true},
    {LoopOp::kRowProduct, "RowProduct", LoopType::kDouble, kDoubles, 0, true},
    {LoopOp::kMeanOf, "MeanOf", LoopType::kFloat, kSums},
    {LoopOp::kReciprocalOf, "ReciprocalOf", LoopType::kFloat, kSums},
    {LoopOp::kRootOfMeanOf, "RootOfMeanOf", LoopType::kFloat, kSums},
};

const LoopOpRow& RowOf(LoopOp op) {
  return *std::find_if(std::begin(kLoopOps), std::end(kLoopOps),
                       [op](const LoopOpRow& row) { return row.op == op; });
}

constexpr std::string_view kUnreadType = "a type has no loop form";
constexpr std::string_view kBehindView = "a view stands between an operand and the rows";

bool IsWholeNumber(LoopType type) {
  return type == LoopType::kInt || type == LoopType::kLong || type == LoopType::kUlong;
}
bool IsReal(LoopType type) {
  return type == LoopType::kFloat || type == LoopType::kDouble;
}

// The dimensions without the ones in front.
std::vector<int64_t> FromFirstSize(const Shape& shape) {
  const std::vector<int64_t>& dims = shape.dims();
  return {std::find_if(dims.begin(), dims.end(), [](int64_t size) { return size != 1; }),
          dims.end()};
}

// Strides of the last dimensions of a tensor along the dimensions of `space`, 0 where it is
// repeated; nullopt: it does not broadcast.
std::optional<std::vector<int64_t>> BroadcastStrides(const Shape& shape, const Shape& space) {
  if (shape.rank() > space.rank()) return std::nullopt;
  std::vector<int64_t> strides(static_cast<size_t>(space.rank()), 0);
  int64_t stride = 1;
  for (int back = 1; back <= shape.rank(); ++back) {
    const int64_t size = shape[shape.rank() - back];
    if (size != 1) {
      if (size != space[space.rank() - back]) return std::nullopt;
      strides[static_cast<size_t>(space.rank() - back)] = stride;
    }
    stride *= size;
  }
  return strides;
}

// Strides along the dimensions of `frame` as strides along those of `space`, which refines it.
std::vector<int64_t> Refined(const std::vector<int64_t>& strides, const Shape& frame,
                             const Shape& space) {
  std::vector<int64_t> refined(static_cast<size_t>(space.rank()), 0);
  int at = space.rank();
  for (int d = frame.rank(); d-- > 0;) {
    int64_t stride = strides[static_cast<size_t>(d)];
    for (int64_t left = frame[d]; left > 1;) {
      --at;
      refined[static_cast<size_t>(at)] = stride;
      stride *= space[at];
      left /= space[at];
    }
  }
  return refined;
}

// A scalar is a row of one element.
Shape AtLeastOneDimension(const Shape& shape) {
  return shape.rank() == 0 ? Shape({1}) : shape;
}

// Whether a walk with the stride `outer` over walks of `size` steps of `inner` is one walk.
bool WalkAsOne(int64_t outer, int64_t inner, int64_t size) {
  return outer == inner * size;
}

// Strides along the dimensions of `fine`, which refines `space`, as strides along those of `space`;
// nullopt: a dimension is not walked in one stride.
std::optional<std::vector<int64_t>> Coarsened(const std::vector<int64_t>& strides,
                                              const Shape& fine, const Shape& space) {
  std::vector<int64_t> coarse(static_cast<size_t>(space.rank()), 0);
  int at = fine.rank();
  for (int d = space.rank(); d-- > 0;) {
    for (int64_t span = 1; span < space[d]; span *= fine[at]) {
      --at;
      int64_t& stride = coarse[static_cast<size_t>(d)];
      if (span == 1) stride = strides[static_cast<size_t>(at)];
      if (!WalkAsOne(strides[static_cast<size_t>(at)], stride, span)) return std::nullopt;
    }
  }
  return coarse;
}

// Strides along the dimensions of `frame` as strides along those of `space`, which has the same
// elements in the same order; nullopt: there are none.
std::optional<std::vector<int64_t>> Walked(std::vector<int64_t> strides, const Shape& frame,
                                           const Shape& space) {
  if (frame == space) return strides;
  const std::optional<Shape> fine = CommonSpace({frame, space});
  if (!fine) return std::nullopt;
  return Coarsened(Refined(strides, frame, *fine), *fine, space);
}

}  // namespace

std::string_view NameOf(LoopOp op) {
  return RowOf(op).name;
}

bool Reduces(LoopOp op) {
  return RowOf(op).reduces;
}

bool IsConversion(LoopOp op) {
  return op >= LoopOp::kToFloat && op <= LoopOp::kToUlong;
}

bool HasTarget(LoopOp op) {
  return op == LoopOp::kRound || op == LoopOp::kSaturate || op == LoopOp::kWrap;
}

bool IsComplex(LoopType type) {
  return type == LoopType::kComplex || type == LoopType::kWideComplex;
}

bool IsTaken(LoopOp op, LoopType type, LoopTarget target) {
  const LoopOpRow& row = RowOf(op);
  const Types taken = row.lanes | (target == LoopTarget::kBlocks ? row.calls : 0);
  return (taken & Bit(type)) != 0;
}

DataType ElementOf(LoopType type) {
  switch (type) {
    case LoopType::kFloat:
      return DataType::kFloat;
    case LoopType::kBool:
      return DataType::kBool;
    case LoopType::kInt:
      return DataType::kInt32;
    case LoopType::kLong:
      return DataType::kInt64;
    case LoopType::kDouble:
      return DataType::kDouble;
    case LoopType::kUlong:
      return DataType::kUint64;
    case LoopType::kComplex:
      return DataType::kComplex64;
    case LoopType::kWideComplex:
      return DataType::kComplex128;
    case LoopType::kSum:
      break;
  }
  return DataType::kUndefined;
}

std::optional<LoopType> TypeOf(DataType dtype, LoopTarget target) {
  if (target == LoopTarget::kBlocks) {
    if (dtype == DataType::kUint64) return LoopType::kUlong;
    if (dtype == DataType::kComplex128) return LoopType::kWideComplex;
    if (dtype == DataType::kComplex64 || dtype == DataType::kComplex32) return LoopType::kComplex;
  }
  switch (dtype) {
    case DataType::kFloat:
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return LoopType::kFloat;
    case DataType::kBool:
      return LoopType::kBool;
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kInt16:
    case DataType::kUint16:
    case DataType::kInt32:
      return LoopType::kInt;
    case DataType::kUint32:
    case DataType::kInt64:
      return LoopType::kLong;
    case DataType::kDouble:
      return LoopType::kDouble;
    default:
      return std::nullopt;
  }
}

// ---- program ----

int64_t LoopProgram::rows() const {
  int64_t count = 1;
  for (const int64_t size : outer) count *= size;
  return count;
}

bool LoopProgram::has_row_sums() const {
  return std::any_of(instructions.begin(), instructions.end(),
                     [](const LoopInstruction& line) { return Reduces(line.op); });
}

void LoopProgram::Collapse() {
  // No loop walks dimensions of one element.
  for (size_t d = outer.size(); d-- > 0;) {
    if (outer[d] != 1) continue;
    outer.erase(outer.begin() + static_cast<int64_t>(d));
    for (LoopInput& input : inputs) {
      input.strides.erase(input.strides.begin() + static_cast<int64_t>(d));
    }
  }
  for (size_t d = outer.size(); d-- > 1;) {
    const bool one = std::all_of(inputs.begin(), inputs.end(), [&](const LoopInput& input) {
      return WalkAsOne(input.strides[d - 1], input.strides[d], outer[d]);
    });
    if (!one) continue;
    outer[d - 1] *= outer[d];
    outer.erase(outer.begin() + static_cast<int64_t>(d));
    for (LoopInput& input : inputs) {
      input.strides[d - 1] = input.strides[d];
      input.strides.erase(input.strides.begin() + static_cast<int64_t>(d));
    }
  }
  const bool whole = !outer.empty() && !has_row_sums() &&
                     std::all_of(inputs.begin(), inputs.end(),
                                 [&](const LoopInput& input) {
                                   return WalkAsOne(input.strides.back(), input.step, columns);
                                 }) &&
                     std::none_of(outputs.begin(), outputs.end(), [&](const LoopOutput& output) {
                       return instructions[static_cast<size_t>(output.value)].row;
                     });
  if (!whole) return;
  columns *= outer.back();
  outer.pop_back();
  for (LoopInput& input : inputs) input.strides.pop_back();
}

std::string LoopProgram::ToString() const {
  std::string text = fmt::format("space [{}] x {}\n", fmt::join(outer, ", "), columns);
  for (const LoopInput& input : inputs) {
    text +=
        fmt::format("input tensor {} {} offset {} strides [{}] step {}\n", input.tensor,
                    Name(input.dtype), input.offset, fmt::join(input.strides, ", "), input.step);
  }
  for (size_t i = 0; i < instructions.size(); ++i) {
    const LoopInstruction& line = instructions[i];
    text += fmt::format("{} = {}({}){} [{:a}, {:a}, {:a}] {} {} {}\n", i, NameOf(line.op),
                        fmt::join(line.args, ", "), line.row ? " row" : "", line.params[0],
                        line.params[1], line.params[2], line.index, Name(line.dtype),
                        static_cast<int>(line.type));
  }
  for (const LoopOutput& output : outputs) {
    text += fmt::format("output {} {}\n", output.value, Name(output.dtype));
  }
  return text;
}

// ---- builder ----

std::optional<Shape> CommonSpace(const std::vector<Shape>& frames) {
  if (std::all_of(frames.begin(), frames.end(),
                  [&](const Shape& frame) { return frame == frames[0]; })) {
    return frames[0];
  }
  std::set<int64_t> spans;  // elements of the last dimensions of each frame, of one, two and more
  for (const Shape& frame : frames) {
    int64_t span = 1;
    for (int d = frame.rank(); d-- > 0;) spans.insert(span *= frame[d]);
  }
  std::vector<int64_t> dims;
  int64_t inner = 1;
  for (const int64_t span : spans) {
    if (span % inner != 0) return std::nullopt;
    if (span > 1) dims.insert(dims.begin(), span / inner);
    inner = span;
  }
  return AtLeastOneDimension(Shape(std::move(dims)));
}

LoopBuilder::LoopBuilder(const Shape& space, LoopTarget target)
    : target_(target), space_(AtLeastOneDimension(space)), frame_(space_) {
  program_.outer = space_.dims();
  program_.columns = program_.outer.back();
  program_.outer.pop_back();
}

void LoopBuilder::Begin(const OpContext& op, const Shape& frame, std::vector<LoopValue> fed,
                        std::vector<int> tensors) {
  op_ = &op;
  frame_ = AtLeastOneDimension(frame);
  fed_ = std::move(fed);
  tensors_ = std::move(tensors);
  first_.assign(tensors_.size(), 0);
  results_.assign(static_cast<size_t>(op.outputs()), -1);
  why_ = {};
  program_.titles.push_back(fmt::format("{} ({})", op.node().name, op.node().type));
}

LoopValue LoopBuilder::Apply(const OpContext& op,
                             const std::function<void(const OpContext&, LoopBuilder&)>& loop,
                             std::span<const Operand> operands) {
  std::vector<LoopValue> fed;
  std::vector<int> tensors;
  std::vector<int64_t> first;
  for (const Operand& operand : operands) {
    const auto slot = static_cast<size_t>(operand.slot);
    if (fed_[slot] >= 0 && operand.first != 0) return Refuse("a vector of numbers is computed");
    fed.push_back(fed_[slot]);
    tensors.push_back(tensors_[slot]);
    first.push_back(operand.first);
  }
  std::vector<LoopValue> results(static_cast<size_t>(op.outputs()), -1);
  const auto exchange = [&] {
    std::swap(fed_, fed);
    std::swap(tensors_, tensors);
    std::swap(first_, first);
    std::swap(results_, results);
  };
  exchange();
  const OpContext* const own = std::exchange(op_, &op);
  loop(op, *this);
  op_ = own;
  exchange();
  return results[0];
}

LoopValue LoopBuilder::Refuse(std::string_view why) {
  if (why_.empty()) why_ = why;
  return -1;
}

LoopValue LoopBuilder::Add(LoopInstruction instruction) {
  instruction.origin = static_cast<int>(program_.titles.size()) - 1;
  program_.instructions.push_back(std::move(instruction));
  return static_cast<LoopValue>(program_.instructions.size()) - 1;
}

LoopValue LoopBuilder::Read(int slot, LoopInput input) {
  input.tensor = tensors_[static_cast<size_t>(slot)];
  input.offset += first_[static_cast<size_t>(slot)];
  LoopInstruction line{.op = LoopOp::kInput, .row = input.step == 0, .dtype = input.dtype};
  line.type = TypeHere(input.dtype).value_or(LoopType::kFloat);
  line.index = static_cast<int>(program_.inputs.size());
  program_.inputs.push_back(std::move(input));
  return Add(std::move(line));
}

LoopValue LoopBuilder::ReadSeen(int slot, DataType dtype, const Shape& seen) {
  std::optional<std::vector<int64_t>> strides = BroadcastStrides(seen, frame_);
  if (!strides) return Refuse("an operand does not broadcast to its rows");
  strides = Walked(std::move(*strides), frame_, space_);
  if (!strides) return Refuse(kBehindView);
  LoopInput input{.dtype = dtype};
  input.strides = std::move(*strides);
  // A row of one element is a row all the same.
  const bool one = program_.columns == 1 && seen.rank() == frame_.rank();
  input.step = one ? 1 : input.strides.back();
  input.strides.pop_back();
  return Read(slot, std::move(input));
}

LoopValue LoopBuilder::In(int slot) {
  return In(slot, op_->in(slot).shape);
}

LoopValue LoopBuilder::In(int slot, const Shape& seen) {
  const TensorType& type = op_->in(slot);
  const LoopValue fed = fed_[static_cast<size_t>(slot)];
  if (fed >= 0) {
    const bool same = seen == type.shape || FromFirstSize(seen) == FromFirstSize(type.shape);
    return same ? fed : Refuse("an operand is computed, and seen under another shape");
  }
  return TypeHere(type.dtype) ? ReadSeen(slot, type.dtype, seen) : Refuse(kUnreadType);
}

LoopValue LoopBuilder::Tensor(int place, DataType dtype, const Shape& seen) {
  tensors_ = {place};
  first_ = {0};
  return TypeHere(dtype) ? ReadSeen(0, dtype, seen) : Refuse(kUnreadType);
}

LoopValue LoopBuilder::Factor(int slot) {
  return Factor(slot, op_->in(slot).shape);
}

LoopValue LoopBuilder::Factor(int slot, const Shape& seen) {
  const DataType dtype = op_->in(slot).dtype;
  const bool packed = dtype == DataType::kInt64 || dtype == DataType::kUint64;
  if (!packed) return As(LoopType::kFloat, In(slot, seen));
  if (fed_[static_cast<size_t>(slot)] >= 0) return Refuse("a packed scale is computed");
  if (target_ == LoopTarget::kBlocks) return Refuse(kUnreadType);
  return ReadSeen(slot, DataType::kUint64, seen);
}

LoopValue LoopBuilder::PartOf(int slot, int axis, int64_t first) {
  const TensorType& type = op_->in(slot);
  if (fed_[static_cast<size_t>(slot)] >= 0) return Refuse("it reads rows of another length");
  if (!TypeHere(type.dtype)) return Refuse(kUnreadType);
  if (type.shape.rank() != frame_.rank()) return Refuse("an operand has other rows");
  std::vector<int64_t> strides = ByteStrides(type.shape, 1);
  for (int d = 0; d < frame_.rank(); ++d) {
    const bool fits = d == axis ? first + frame_[d] <= type.shape[d] : type.shape[d] == frame_[d];
    if (!fits) return Refuse("an operand has other rows");
  }
  const int64_t offset = first * strides[static_cast<size_t>(axis)];
  std::optional<std::vector<int64_t>> walked = Walked(std::move(strides), frame_, space_);
  if (!walked) return Refuse(kBehindView);
  LoopInput input{.dtype = type.dtype, .offset = offset};
  input.strides = std::move(*walked);
  input.strides.pop_back();
  return Read(slot, std::move(input));
}

LoopValue LoopBuilder::Constant(double value, LoopType type) {
  return Add({.op = LoopOp::kConstant, .type = type, .row = true, .params = {value, 0, 0}});
}

LoopType LoopBuilder::type(LoopValue value) const {
  return program_.instructions[static_cast<size_t>(value)].type;
}

bool LoopBuilder::AreTaken(LoopOp op, std::span<const LoopValue> args) const {
  if (op == LoopOp::kSelect) {
    if (type(args.front()) != LoopType::kBool) return false;
    args = args.subspan(1);
  }
  return IsTaken(op, type(args.front()), target_) &&
         std::all_of(args.begin(), args.end(),
                     [&](LoopValue arg) { return type(arg) == type(args.front()); });
}

LoopValue LoopBuilder::Emit(LoopOp op, std::vector<LoopValue> args, std::array<double, 3> params) {
  if (std::any_of(args.begin(), args.end(), [](LoopValue arg) { return arg < 0; })) return -1;
  const LoopOpRow& row = RowOf(op);
  if (!AreTaken(op, args)) return Refuse(kUnreadType);
  LoopInstruction line{.op = op, .row = true, .args = std::move(args), .params = params};
  for (const LoopValue arg : line.args) {
    line.row = line.row && program_.instructions[static_cast<size_t>(arg)].row;
  }
  line.type = row.type.value_or(type(line.args.back()));
  if (op == LoopOp::kAbs && IsComplex(line.type)) {  // a magnitude
    line.type = line.type == LoopType::kComplex ? LoopType::kFloat : LoopType::kDouble;
  }
  // What is the same in a whole row has no sum of its elements here.
  if (row.reduces && line.row) return Refuse("its rows are of one number");
  line.row = line.row || row.reduces;
  return Add(std::move(line));
}

LoopValue LoopBuilder::EmitTo(LoopOp op, DataType dtype, LoopValue value) {
  const LoopValue made = Emit(op, {value});
  if (made < 0) return -1;
  LoopInstruction& line = program_.instructions[static_cast<size_t>(made)];
  line.dtype = dtype;
  line.type = *TypeHere(dtype);
  return made;
}

bool LoopBuilder::Fits(DataType dtype, LoopValue value) const {
  const LoopInstruction& line = program_.instructions[static_cast<size_t>(value)];
  const bool widest = dtype == DataType::kFloat || dtype == DataType::kBool ||
                      dtype == DataType::kDouble || dtype == DataType::kInt32 ||
                      dtype == DataType::kInt64 || dtype == DataType::kUint64 ||
                      dtype == DataType::kComplex64 || dtype == DataType::kComplex128;
  return line.type == TypeHere(dtype) && (widest || line.dtype == dtype);
}

LoopValue LoopBuilder::Round(LoopValue value, DataType dtype) {
  if (value < 0 || Fits(dtype, value)) return value;
  const bool rounds =
      dtype == DataType::kFloat16 || dtype == DataType::kBfloat16 || dtype == DataType::kComplex32;
  return rounds && type(value) == TypeHere(dtype) ? EmitTo(LoopOp::kRound, dtype, value)
                                                  : Refuse(kUnreadType);
}

LoopValue LoopBuilder::As(LoopType wanted, LoopValue value) {
  if (value < 0 || type(value) == wanted) return value;
  switch (wanted) {
    case LoopType::kFloat:
      return Emit(LoopOp::kToFloat, {value});
    case LoopType::kBool:
      return Emit(LoopOp::kToBool, {value});
    case LoopType::kDouble:
      return Emit(LoopOp::kToDouble, {value});
    case LoopType::kInt:
      return IsReal(type(value)) ? -1 : Emit(LoopOp::kToInt, {value});
    case LoopType::kLong:
      return IsReal(type(value)) ? -1 : Emit(LoopOp::kToLong, {value});
    case LoopType::kUlong:
      return IsReal(type(value)) ? -1 : Emit(LoopOp::kToUlong, {value});
    case LoopType::kComplex:
    case LoopType::kWideComplex:
    case LoopType::kSum:
      return -1;
  }
  return -1;
}

LoopValue LoopBuilder::To(DataType dtype, LoopValue value) {
  const std::optional<LoopType> wanted = TypeHere(dtype);
  if (value < 0 || !wanted || Fits(dtype, value)) return wanted ? value : -1;
  if (IsWholeNumber(*wanted)) {
    if (IsReal(type(value))) return EmitTo(LoopOp::kSaturate, dtype, value);
    const LoopValue whole = As(*wanted, value);
    return whole < 0 || Fits(dtype, whole) ? whole : EmitTo(LoopOp::kWrap, dtype, whole);
  }
  // Rounded once: to odd, and then to the nearest of 16 bits.
  const bool half = dtype == DataType::kFloat16 || dtype == DataType::kBfloat16;
  const LoopType from = type(value);
  if (half && from != LoopType::kFloat && from != LoopType::kBool) {
    value = Emit(LoopOp::kToOdd, {As(LoopType::kDouble, value)});
  }
  return Round(As(*wanted, value), dtype);
}

void LoopBuilder::Give(int port, LoopValue value) {
  if (port >= op_->outputs() || value < 0) return;
  const DataType dtype = op_->out(port).dtype;
  if (TypeHere(dtype) != type(value)) {
    Refuse(kUnreadType);
    return;
  }
  results_[static_cast<size_t>(port)] = To(dtype, value);
}

}  // namespace npumesh
