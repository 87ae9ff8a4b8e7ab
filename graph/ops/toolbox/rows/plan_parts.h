// What plans of several families say alike.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_PLAN_PARTS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_PLAN_PARTS_H_

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/values/copy_element.h"
#include "graph/ops/toolbox/values/element_io.h"
#include "graph/ops/toolbox/values/row_io.h"
#include "graph/ops/toolbox/values/row_math.h"

namespace npumesh {

inline Shape WithLast(Shape shape, int64_t extent) {
  shape.mutable_dims().back() = extent;
  return shape;
}

// The shape with `with` in place of its dimensions [begin, end).
inline Shape Spliced(Shape shape, int begin, int end, const std::vector<int64_t>& with) {
  std::vector<int64_t>& dims = shape.mutable_dims();
  dims.erase(dims.begin() + begin, dims.begin() + end);
  dims.insert(dims.begin() + begin, with.begin(), with.end());
  return shape;
}

inline std::vector<int64_t> DimsFrom(const Shape& shape, int begin) {
  return {shape.dims().begin() + begin, shape.dims().end()};
}

inline void ClearOutput(const Planned& plan, const KernelArgs& args, int port) {
  const uint64_t bytes = plan.outputs[static_cast<size_t>(port)].bytes();
  if (bytes > 0) std::memset(args.out[port], 0, bytes);
}

inline void ClearOutputs(const Planned& plan, const KernelArgs& args) {
  for (size_t port = 0; port < plan.outputs.size(); ++port) {
    ClearOutput(plan, args, static_cast<int>(port));
  }
}

// An input as rows along its last dimension, read as floats.
struct InputRows {
  int slot = -1;  // -1: absent
  DataType dtype = DataType::kUndefined;
  int64_t count = 0, width = 0;

  // The rows of an input that is fed and has dimensions; none after an objection.
  static InputRows Of(const Check& check, const OpContext& op, std::string_view port) {
    if (!check.ok()) return {};
    const auto& [dtype, shape] = op.in(port);
    const int last = shape.rank() - 1;
    return {op.slot(port), dtype, ElementsBetween(shape, 0, last), shape[last]};
  }

  bool given() const { return slot >= 0; }
  void Load(const KernelArgs& args, int64_t row, float* to) const {
    LoadNumbers(dtype, args.in[slot], row * width, width, to);
  }
};

// Whether the rows of an input are those of a loop program, so that it may sum them up.
inline bool SpansRows(const OpContext& op, std::string_view port, const LoopBuilder& loop) {
  const Shape& shape = op.in(port).shape;
  return shape.rank() > 0 && shape.dims().back() == loop.columns();
}

// LoadColumns as an instruction: a factor for each column, or one for all.
inline LoopValue LoopColumns(const OpContext& op, LoopBuilder& loop, int slot) {
  return loop.Factor(slot, Shape({op.in(slot).shape.elements()}));
}

// A step of a row with factors, as LoopColumns; the row itself where they are absent.
inline LoopValue LoopWith(const OpContext& op, LoopBuilder& loop, LoopOp step, LoopValue row,
                          const Factors& factors) {
  return factors.given() ? loop.Emit(step, {row, LoopColumns(op, loop, factors.slot())}) : row;
}

inline Shape WithoutLast(Shape shape) {
  shape.mutable_dims().pop_back();
  return shape;
}

// Factors of the columns [first, first + count), or one for all, repeated.
inline void LoadColumns(const KernelArgs& args, const Factors& factors, int64_t first,
                        int64_t count, float* to) {
  if (factors.count() == 1) {
    std::fill_n(to, count, factors.At(args, 0));
  } else {
    factors.Load(args, first, count, to);
  }
}

// row = row * scale + offset, rounded after each step. A factor is one for all, or one for each
// column, of which the row has [first, first + count). `room` holds a row.
inline void ScaleColumns(const KernelArgs& args, const Factors& scale, const Factors& offset,
                         int64_t first, int64_t count, float* room, float* row) {
  if (scale.given()) {
    LoadColumns(args, scale, first, count, room);
    MultiplyRow(row, room, count, row);
  }
  if (offset.given()) {
    LoadColumns(args, offset, first, count, room);
    AddRow(row, room, count, row);
  }
}

// The sum of x * y, each product rounded to float and added in double, one after the other.
inline double SumOfProducts(const float* x, const float* y, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i] * y[i]);
  return sum;
}

// `count` floats rounded to a floating type of at most their width; `room` holds as many of those,
// `to` may be `from`.
inline void RoundRow(DataType dtype, const float* from, int64_t count, void* room, float* to) {
  StoreRow(dtype, from, room, 0, count);
  LoadNumbers(dtype, room, 0, count, to);
}

// Error (kInvalidArgument) unless a cache has the slot of a token.
inline Status CheckSlot(std::string_view who, int64_t token, int64_t slot, int64_t slots) {
  if (slot < slots) return Status();
  return Error(Code::kInvalidArgument, "{}: token {} goes to slot {}, the cache has {}", who, token,
               slot, slots);
}

// Objects to rows of int4 or of 4-bit floats that do not fill whole bytes.
inline void CheckPacking(Check& check, DataType dtype, const Shape& shape) {
  check.That(!(kFloat4 | DataType::kInt4).Contains(dtype) ||
                 (shape.rank() > 0 && shape.dims().back() % 2 == 0),
             "{} elements of shape {} need an even last dimension",
             dtype == DataType::kInt4 ? "int4" : "4-bit", shape);
}

// The factors fed to a port: absent, or as many as one of the counts.
inline Factors FactorsOf(Check& check, const OpContext& op, std::string_view port,
                         std::initializer_list<int64_t> counts) {
  const Factors factors = check.Take(Factors::Of(op, port));
  if (factors.given()) check.Elements(port, counts);
  return factors;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_PLAN_PARTS_H_
