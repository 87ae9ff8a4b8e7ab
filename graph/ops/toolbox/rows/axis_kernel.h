// Row kernels: operators that make one row of an output from one row of an input, a row running
// along some axes. Sorting, scans, arg-max and statistics are all of this kind.
//
// Elements are delivered in a wide type that holds every value of the tensor's own: double for
// floats, uint64 for uint64, int64 for the other integers and bool. Values go back through the same
// conversion: floats are rounded once, integers keep their low bits.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_AXIS_KERNEL_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_AXIS_KERNEL_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/ops/core/loop_number.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/toolbox/rows/axis_rows.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {

// Marks one axis.
std::vector<bool> ChooseAxis(int rank, int axis);
// Marks listed axes of x, which may be negative; an empty list marks all. For a scalar axis 0 or -1
// is allowed. Errors name `what`.
Result<std::vector<bool>> ChooseAxes(const OpContext& op, const TensorType& x,
                                     const std::vector<int64_t>& axes, std::string_view what);
// The shape with the chosen dimensions 1, or without them.
Shape Reduced(const Shape& shape, const std::vector<bool>& chosen, bool keep);

// double, int64 or uint64; kUndefined for a type without arithmetic.
DataType WideTypeOf(DataType dtype);

// `f(Wide())` for the wide type of a type that has one.
template <typename F>
auto ByWideType(DataType dtype, F f) {
  switch (WideTypeOf(dtype)) {
    case DataType::kDouble:
      return f(double());
    case DataType::kUint64:
      return f(uint64_t());
    default:
      return f(int64_t());
  }
}

// The order of sorted elements: NaN is larger than every number.
template <typename Wide>
bool Less(Wide a, Wide b) {
  return a < b || (b != b && a == a);
}

// A sum or product; those of integers wrap, which only unsigned ones may do.
template <typename Wide, typename F>
Wide Wrapped(F f, Wide a, Wide b) {
  if constexpr (std::is_floating_point_v<Wide>) {
    return f(a, b);
  } else {
    return static_cast<Wide>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  }
}

// What a row becomes. `x` holds the rows of all inputs, one after the other; `values` has room for
// the rows of all outputs in the same way. Every thread has a copy: a body keeps nothing from row
// to row but room to work in.
template <typename Wide>
using RowBody = std::function<void(const Wide* x, Wide* values, int64_t* indices)>;

// Where results go: output ports.
struct RowOutputs {
  Shape shape;  // of every output, reduced axes kept
  std::vector<int> values = {};
  int indices = -1;  // -1: none
};

template <typename Wide>
class RowKernel final : public Kernel {
 public:
  // REQUIRES: `slots` have the same shape and Wide as wide type; outputs are inferred.
  RowKernel(const OpContext& op, const std::vector<int>& slots, const std::vector<bool>& chosen,
            const RowOutputs& outputs, RowBody<Wide> body)
      : from_(op.in(slots[0]).shape, chosen), to_(outputs.shape, chosen) {
    for (const int slot : slots) {
      const DataType dtype = op.in(slot).dtype;
      in_.push_back({slot, WidthOf(dtype), FindConvert(dtype, WideTypeOf(dtype))});
    }
    const DataType wide = WideTypeOf(op.in(slots[0]).dtype);
    for (const int port : outputs.values) {
      const DataType dtype = op.out(port).dtype;
      out_.push_back({port, WidthOf(dtype), FindConvert(wide, dtype)});
    }
    if (outputs.indices >= 0) {
      const DataType dtype = op.out(outputs.indices).dtype;
      index_ = {outputs.indices, WidthOf(dtype), FindConvert(DataType::kInt64, dtype)};
    }
    const int parts =
        WorthThreadsForRows(to_.rows(), op.in(slots[0]).shape.elements(), op.threads());
    const Part part = {
        std::move(body), std::vector<Wide>(slots.size() * static_cast<size_t>(from_.columns())),
        // Bodies of operators without outputs of values write one all the same.
        std::vector<Wide>(std::max<size_t>(out_.size(), 1) * static_cast<size_t>(to_.columns())),
        std::vector<int64_t>(static_cast<size_t>(to_.columns()))};
    parts_.assign(static_cast<size_t>(parts), part);
  }

  Status Run(const KernelArgs& args) override {
    RunRanges(static_cast<int>(parts_.size()), to_.rows(), 1,
              [&](int part, int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  RunRow(args, row, parts_[static_cast<size_t>(part)]);
                }
              });
    return Status();
  }

 private:
  // What a thread works with.
  struct Part {
    RowBody<Wide> body;
    std::vector<Wide> x, y;
    std::vector<int64_t> i;
  };

  void RunRow(const KernelArgs& args, int64_t row, Part& part) const {
    Wide* x = part.x.data();
    for (const RowSide& in : in_) {
      from_.Load(in, args.in[in.place], row, x);
      x += from_.columns();
    }
    part.body(part.x.data(), part.y.data(), part.i.data());
    const Wide* y = part.y.data();
    for (const RowSide& out : out_) {
      to_.Store(out, y, args.out[out.place], row);
      y += to_.columns();
    }
    if (index_.place >= 0) to_.Store(index_, part.i.data(), args.out[index_.place], row);
  }

  AxisRows from_, to_;
  std::vector<RowSide> in_, out_;
  RowSide index_;
  std::vector<Part> parts_;
};

template <typename Wide>
std::unique_ptr<Kernel> MakeRowKernel(const OpContext& op, const std::vector<int>& slots,
                                      const std::vector<bool>& chosen, const RowOutputs& outputs,
                                      RowBody<Wide> body) {
  return std::make_unique<RowKernel<Wide>>(op, slots, chosen, outputs, std::move(body));
}

// What the rows of the outputs are: formulas on the elements of the rows of the inputs, which have
// `columns` elements, and on what they give together (loop_number.h).
using RowFormula = std::vector<LoopNumber> (*)(const OpContext& op, std::span<const LoopNumber> x,
                                               double columns);

// An operator on rows of doubles, whose inputs have the shape of the first.
struct RowOperator {
  std::string_view signature;
  std::string_view axes;  // port or attribute with the axes of a row; none: all axes
  std::string_view keep;  // attribute: reduced axes are kept; empty: nothing is reduced
  RowFormula formula;
};

void AddRowOperator(OpRegistry& registry, const RowOperator& row);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_AXIS_KERNEL_H_
