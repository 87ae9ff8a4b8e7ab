#include "graph/ops/toolbox/rows/axis_kernel.h"

#include <algorithm>
#include <numeric>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/row_machine.h"

namespace npumesh {

std::vector<int64_t> MarkedElements(const Shape& shape, const std::vector<bool>& marked) {
  const std::vector<int64_t> strides = ByteStrides(shape, 1);
  std::vector<int64_t> elements = {0};
  for (int d = 0; d < shape.rank(); ++d) {
    if (!marked[static_cast<size_t>(d)]) continue;
    std::vector<int64_t> next;
    next.reserve(elements.size() * static_cast<size_t>(shape[d]));
    for (const int64_t element : elements) {
      for (int64_t i = 0; i < shape[d]; ++i) {
        next.push_back(element + i * strides[static_cast<size_t>(d)]);
      }
    }
    elements = std::move(next);
  }
  return elements;
}

AxisRows::AxisRows(const Shape& shape, const std::vector<bool>& chosen)
    : steps_(MarkedElements(shape, chosen)) {
  std::vector<bool> others = chosen;
  others.flip();
  starts_ = MarkedElements(shape, others);
  contiguous_ = true;
  for (size_t i = 0; i < steps_.size(); ++i) {
    contiguous_ = contiguous_ && steps_[i] == static_cast<int64_t>(i);
  }
  packed_ = contiguous_;
  for (size_t i = 0; i < starts_.size(); ++i) {
    packed_ = packed_ && starts_[i] == static_cast<int64_t>(i) * columns();
  }
}

void AxisRows::Load(const RowSide& side, const void* data, int64_t row, int64_t first,
                    int64_t count, void* to) const {
  const auto* from = static_cast<const std::byte*>(data) +
                     static_cast<size_t>(starts_[static_cast<size_t>(row)]) * side.width;
  if (contiguous_) {
    side.convert(from + static_cast<size_t>(first) * side.width, to, static_cast<size_t>(count));
    return;
  }
  auto* place = static_cast<std::byte*>(to);
  for (int64_t i = first; i < first + count; ++i, place += side.computed) {
    const auto step = static_cast<size_t>(steps_[static_cast<size_t>(i)]);
    side.convert(from + step * side.width, place, 1);
  }
}

void AxisRows::Store(const RowSide& side, const void* from, void* data, int64_t row, int64_t first,
                     int64_t count) const {
  auto* to = static_cast<std::byte*>(data) +
             static_cast<size_t>(starts_[static_cast<size_t>(row)]) * side.width;
  if (contiguous_) {
    side.convert(from, to + static_cast<size_t>(first) * side.width, static_cast<size_t>(count));
    return;
  }
  const auto* place = static_cast<const std::byte*>(from);
  for (int64_t i = first; i < first + count; ++i, place += side.computed) {
    const auto step = static_cast<size_t>(steps_[static_cast<size_t>(i)]);
    side.convert(place, to + step * side.width, 1);
  }
}

std::vector<bool> ChooseAxis(int rank, int axis) {
  std::vector<bool> chosen(static_cast<size_t>(rank), false);
  if (rank > 0) chosen[static_cast<size_t>(axis)] = true;
  return chosen;
}

Result<std::vector<bool>> ChooseAxes(const OpContext& op, const TensorType& x,
                                     const std::vector<int64_t>& axes, std::string_view what) {
  const int rank = x.shape.rank();
  std::vector<bool> chosen(static_cast<size_t>(rank), axes.empty());
  for (const int64_t axis : axes) {
    const Result<int> normal = NormalizeAxis(axis, std::max(rank, 1));
    if (!normal.ok()) {
      return normal.status().WithContext(
          fmt::format("{}: \"{}\" for {}", op.Who(), what, x.ToString()));
    }
    if (rank > 0) chosen[static_cast<size_t>(*normal)] = true;
  }
  return chosen;
}

Shape Reduced(const Shape& shape, const std::vector<bool>& chosen, bool keep) {
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!chosen[static_cast<size_t>(i)]) {
      dims.push_back(shape[i]);
    } else if (keep) {
      dims.push_back(1);
    }
  }
  return Shape(std::move(dims));
}

DataType WideTypeOf(DataType dtype) {
  if (IsFloating(dtype)) return DataType::kDouble;
  if (dtype == DataType::kUint64) return dtype;
  return IsInteger(dtype) || dtype == DataType::kBool ? DataType::kInt64 : DataType::kUndefined;
}

namespace {

// The axes of a row. No axes mean all of them, or none when the operator says so.
Result<std::vector<bool>> AxesOf(const OpContext& op, const RowOperator& row) {
  const TensorType& x = op.in(0);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, op.Ints(row.axes));
  for (const AttrSpec& attr : op.schema().attrs) {
    if (attr.name == "noop_with_empty_axes" && axes.empty() && op.attr_bool(attr.name)) {
      return std::vector<bool>(static_cast<size_t>(x.shape.rank()), false);
    }
  }
  return ChooseAxes(op, x, axes, row.axes);
}

// Inputs that are tensors: all but the axes, which come last where they are a port.
size_t TensorsOf(const OpContext& op, const RowOperator& row) {
  const std::vector<PortSpec>& ports = op.schema().inputs;
  return ports.size() - (ports.back().name == row.axes ? 1 : 0);
}

Status InferRows(OpContext& op, const RowOperator& row) {
  Check check(op);
  const TensorType& x = op.in(0);
  const bool reduces = !row.keep.empty();
  const std::vector<PortSpec>& ports = op.schema().inputs;
  if (reduces) check.Keep(ExpectReal(op, ports[0].name));
  for (size_t i = 0; i < TensorsOf(op, row); ++i) {
    check.TypeAndShape(ports[i].name, reduces ? TypeSet(x.dtype) : kFloatsAndDouble, x.shape);
  }
  const std::vector<bool> chosen = check.Take(AxesOf(op, row));
  if (!check.ok()) return check.status();
  const Shape y = reduces ? Reduced(x.shape, chosen, op.attr_bool(row.keep)) : x.shape;
  return define::SetOutputs(op, std::vector<TensorType>(op.schema().outputs.size(), {x.dtype, y}));
}

// The operator on rows of doubles. `input` gives the elements of a slot.
template <typename Input>
void WriteRows(const OpContext& op, const RowOperator& row, LoopBuilder& loop, Input input) {
  std::vector<LoopNumber> x;
  for (size_t slot = 0; slot < TensorsOf(op, row); ++slot) {
    x.emplace_back(loop, loop.As(LoopType::kDouble, input(static_cast<int>(slot))));
    if (x.back().value < 0) return;
  }
  const std::vector<LoopNumber> y = row.formula(op, x, static_cast<double>(loop.columns()));
  for (int port = 0; port < op.outputs(); ++port) {
    const LoopValue value = y[static_cast<size_t>(port)].In(loop);
    loop.Give(port, loop.To(op.out(port).dtype, value));
  }
}

// Along the last axis alone, by a static kernel.
void LoopRows(const OpContext& op, const RowOperator& row, LoopBuilder& loop) {
  const Shape& x = op.in(0).shape;
  const Result<std::vector<bool>> chosen = AxesOf(op, row);
  const bool last = chosen.ok() && !chosen->empty() && chosen->back() &&
                    std::count(chosen->begin(), chosen->end(), true) == 1;
  if (!last || x.dims().back() != loop.columns()) {
    loop.Refuse("its rows do not run along the last axis alone");
    return;
  }
  WriteRows(op, row, loop, [&](int slot) { return loop.In(slot); });
}

Result<std::unique_ptr<Kernel>> MakeRows(const OpContext& op, const RowOperator& row) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<bool> chosen, AxesOf(op, row));
  const Shape& x = op.in(0).shape;
  RowPlaces places = {AxisRows(x, chosen),
                      AxisRows(row.keep.empty() ? x : Reduced(x, chosen, true), chosen)};
  const Shape space({places.from.rows(), places.from.columns()});
  const auto slots = static_cast<size_t>(op.slots());
  std::vector<int> tensors(slots);
  std::iota(tensors.begin(), tensors.end(), 0);
  LoopBuilder loop(space, LoopTarget::kBlocks);
  loop.Begin(op, space, std::vector<LoopValue>(slots, -1), std::move(tensors));
  WriteRows(op, row, loop, [&](int slot) { return loop.In(slot, space); });
  for (int port = 0; port < op.outputs(); ++port) {
    loop.Write(loop.result(port), op.out(port).dtype);
  }
  return MakeRowMachine(loop.Finish(), std::move(places), op.threads());
}

}  // namespace

void AddRowOperator(OpRegistry& registry, const RowOperator& row) {
  Operator op;
  op.schema = Signature(row.signature);
  op.infer = [row](OpContext& context) { return InferRows(context, row); };
  op.make_kernel = [row](const OpContext& context) { return MakeRows(context, row); };
  op.loop = [row](const OpContext& context, LoopBuilder& loop) { LoopRows(context, row, loop); };
  if (op.schema.inputs.back().name == row.axes) op.value_inputs = {row.axes};
  registry.Add(std::move(op));
}

}  // namespace npumesh
