#include "graph/ops/core/loop_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "graph/ops/core/operator.h"

namespace npumesh {
namespace {

// What an instruction is named, what its value is, and whether it makes one number of a row.
struct LoopOpRow {
  LoopOp op;
  std::string_view name;
  LoopType type = LoopType::kFloat;
  bool reduces = false;
};

constexpr LoopOpRow kLoopOps[] = {
    {LoopOp::kInput, "Input"},
    {LoopOp::kConstant, "Constant"},
    {LoopOp::kAdd, "Add"},
    {LoopOp::kSub, "Sub"},
    {LoopOp::kMul, "Mul"},
    {LoopOp::kDiv, "Div"},
    {LoopOp::kMax, "Max"},
    {LoopOp::kMin, "Min"},
    {LoopOp::kNeg, "Neg"},
    {LoopOp::kAbs, "Abs"},
    {LoopOp::kSquare, "Square"},
    {LoopOp::kSqrt, "Sqrt"},
    {LoopOp::kRsqrt, "Rsqrt"},
    {LoopOp::kReciprocal, "Reciprocal"},
    {LoopOp::kSign, "Sign"},
    {LoopOp::kFloor, "Floor"},
    {LoopOp::kCeil, "Ceil"},
    {LoopOp::kRelu, "Relu"},
    {LoopOp::kEqual, "Equal", LoopType::kBool},
    {LoopOp::kNotEqual, "NotEqual", LoopType::kBool},
    {LoopOp::kLess, "Less", LoopType::kBool},
    {LoopOp::kLessEqual, "LessEqual", LoopType::kBool},
    {LoopOp::kGreater, "Greater", LoopType::kBool},
    {LoopOp::kGreaterEqual, "GreaterEqual", LoopType::kBool},
    {LoopOp::kAnd, "And", LoopType::kBool},
    {LoopOp::kOr, "Or", LoopType::kBool},
    {LoopOp::kNot, "Not", LoopType::kBool},
    {LoopOp::kSelect, "Select"},
    {LoopOp::kToFloat, "ToFloat"},
    {LoopOp::kToBool, "ToBool", LoopType::kBool},
    {LoopOp::kExp, "Exp"},
    {LoopOp::kLog, "Log"},
    {LoopOp::kExpm1, "Expm1"},
    {LoopOp::kLog1p, "Log1p"},
    {LoopOp::kSin, "Sin"},
    {LoopOp::kCos, "Cos"},
    {LoopOp::kTanh, "Tanh"},
    {LoopOp::kErf, "Erf"},
    {LoopOp::kSigmoid, "Sigmoid"},
    {LoopOp::kGeluTanh, "GeluTanh"},
    {LoopOp::kGeluErf, "GeluErf"},
    {LoopOp::kFastGelu, "FastGelu"},
    {LoopOp::kSwish, "Swish"},
    {LoopOp::kSwiGlu, "SwiGlu"},
    {LoopOp::kExpOfNonPositive, "ExpOfNonPositive"},
    {LoopOp::kRound, "Round"},
    {LoopOp::kRowMax, "RowMax", LoopType::kFloat, true},
    {LoopOp::kRowLargest, "RowLargest", LoopType::kFloat, true},
    {LoopOp::kRowSum, "RowSum", LoopType::kSum, true},
    {LoopOp::kRowTotal, "RowTotal", LoopType::kSum, true},
    {LoopOp::kMeanOf, "MeanOf"},
    {LoopOp::kReciprocalOf, "ReciprocalOf"},
    {LoopOp::kRootOfMeanOf, "RootOfMeanOf"},
};

const LoopOpRow& RowOf(LoopOp op) {
  return *std::find_if(std::begin(kLoopOps), std::end(kLoopOps),
                       [op](const LoopOpRow& row) { return row.op == op; });
}

constexpr std::string_view kUnreadType = "a type has no loop form";
constexpr std::string_view kBehindView = "a view stands between an operand and the rows";

bool CanRead(DataType dtype) {
  return dtype == DataType::kFloat || dtype == DataType::kFloat16 || dtype == DataType::kBfloat16 ||
         dtype == DataType::kBool;
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
  // Dimensions of one element are walked by nobody.
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

void LoopProgram::WalkLastAsColumns() {
  columns = outer.back();
  outer.pop_back();
  for (LoopInput& input : inputs) {
    input.step = input.strides.back();
    input.strides.pop_back();
  }
  for (LoopInstruction& line : instructions) {
    if (line.op == LoopOp::kInput) line.row = inputs[static_cast<size_t>(line.index)].step == 0;
    for (const LoopValue arg : line.args) {
      line.row = line.row && instructions[static_cast<size_t>(arg)].row;
    }
  }
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
    text += fmt::format("{} = {}({}){} [{:a}, {:a}, {:a}] {} {}\n", i, NameOf(line.op),
                        fmt::join(line.args, ", "), line.row ? " row" : "", line.params[0],
                        line.params[1], line.params[2], line.index, Name(line.dtype));
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

LoopBuilder::LoopBuilder(const Shape& space) : space_(AtLeastOneDimension(space)) {
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
  results_.assign(static_cast<size_t>(op.outputs()), -1);
  why_ = {};
  program_.titles.push_back(fmt::format("{} ({})", op.node().name, op.node().type));
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
  input.dtype = op_->in(slot).dtype;
  LoopInstruction line{.op = LoopOp::kInput, .row = input.step == 0};
  line.type = input.dtype == DataType::kBool ? LoopType::kBool : LoopType::kFloat;
  line.index = static_cast<int>(program_.inputs.size());
  program_.inputs.push_back(std::move(input));
  return Add(std::move(line));
}

LoopValue LoopBuilder::In(int slot) {
  if (fed_[static_cast<size_t>(slot)] >= 0) return fed_[static_cast<size_t>(slot)];
  const TensorType& type = op_->in(slot);
  if (!CanRead(type.dtype)) return Refuse(kUnreadType);
  std::optional<std::vector<int64_t>> strides = BroadcastStrides(type.shape, frame_);
  if (!strides) return Refuse("an operand does not broadcast to its rows");
  strides = Walked(std::move(*strides), frame_, space_);
  if (!strides) return Refuse(kBehindView);
  LoopInput input;
  input.strides = std::move(*strides);
  input.step = input.strides.back();
  input.strides.pop_back();
  return Read(slot, std::move(input));
}

LoopValue LoopBuilder::ColumnsOf(int slot, int64_t first, int64_t width) {
  const TensorType& type = op_->in(slot);
  if (fed_[static_cast<size_t>(slot)] >= 0) return Refuse("it reads rows of another length");
  if (!CanRead(type.dtype)) return Refuse(kUnreadType);
  if (type.shape.rank() != frame_.rank() || frame_.dims().back() != program_.columns) {
    return Refuse("it reads rows of another length");
  }
  std::vector<int64_t> strides(frame_.dims().size(), 1);
  int64_t stride = width;
  for (int d = frame_.rank() - 1; d-- > 0;) {
    if (type.shape[d] != frame_[d]) return Refuse("an operand has other rows");
    strides[static_cast<size_t>(d)] = stride;
    stride *= frame_[d];
  }
  std::optional<std::vector<int64_t>> walked = Walked(std::move(strides), frame_, space_);
  if (!walked) return Refuse(kBehindView);
  LoopInput input{.offset = first};
  input.strides = std::move(*walked);
  input.strides.pop_back();
  return Read(slot, std::move(input));
}

LoopValue LoopBuilder::Constant(double value) {
  return Add({.op = LoopOp::kConstant, .row = true, .params = {value, 0, 0}});
}

LoopValue LoopBuilder::Emit(LoopOp op, std::initializer_list<LoopValue> args,
                            std::array<double, 3> params) {
  LoopInstruction line{.op = op, .row = true, .args = args, .params = params};
  for (const LoopValue arg : args) {
    if (arg < 0) return -1;
    line.row = line.row && program_.instructions[static_cast<size_t>(arg)].row;
  }
  const LoopOpRow& row = RowOf(op);
  line.type = row.type;
  // What is the same in a whole row has no sum of its elements here.
  if (row.reduces && line.row) return Refuse("its rows are of one number");
  line.row = line.row || row.reduces;
  return Add(std::move(line));
}

LoopValue LoopBuilder::Round(LoopValue value, DataType dtype) {
  if (value < 0 || dtype == DataType::kFloat || dtype == DataType::kBool) return value;
  if (dtype != DataType::kFloat16 && dtype != DataType::kBfloat16) return Refuse(kUnreadType);
  const LoopInstruction& line = program_.instructions[static_cast<size_t>(value)];
  if (line.op == LoopOp::kRound && line.dtype == dtype) return value;
  const LoopValue rounded = Emit(LoopOp::kRound, {value});
  program_.instructions[static_cast<size_t>(rounded)].dtype = dtype;
  return rounded;
}

LoopValue LoopBuilder::As(LoopType type, LoopValue value) {
  if (value < 0 || program_.instructions[static_cast<size_t>(value)].type == type) return value;
  return Emit(type == LoopType::kBool ? LoopOp::kToBool : LoopOp::kToFloat, {value});
}

void LoopBuilder::Give(int port, LoopValue value) {
  if (port >= op_->outputs() || value < 0) return;
  const DataType dtype = op_->out(port).dtype;
  const LoopType type = dtype == DataType::kBool ? LoopType::kBool : LoopType::kFloat;
  if (program_.instructions[static_cast<size_t>(value)].type != type) {
    Refuse(kUnreadType);
    return;
  }
  results_[static_cast<size_t>(port)] = Round(value, dtype);
}

}  // namespace npumesh
