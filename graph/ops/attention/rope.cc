// RotaryPositionEmbedding, RotaryMul, ApplyRotaryPosEmb and InterleaveRope.
#include "graph/ops/attention/rope.h"

#include "graph/ops/attention/family.h"
#include "graph/ops/core/define.h"
#include "graph/ops/toolbox/values/element_io.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// The halves of one group: y1 = x1 cos1 - x2 sin1, y2 = x2 cos2 + x1 sin2. Elements of x are `step`
// apart, `next` is the distance of a pair.
void RotatePairs(const float* x, int64_t step, int64_t next, const float* cos, const float* sin,
                 int64_t half, float* y) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[i * step];
    const float b = x[i * step + next];
    y[i] = a * cos[i] - b * sin[i];
    y[half + i] = b * cos[half + i] + a * sin[half + i];
  }
}

void RotateBy(RotaryMode mode, const float* x, const float* cos, const float* sin, int64_t width,
              float* y) {
  const int64_t half = width / 2;
  switch (mode) {
    case RotaryMode::kHalf:
      RotatePairs(x, 1, half, cos, sin, half, y);
      return;
    case RotaryMode::kQuarter:
      RotatePairs(x, 1, half / 2, cos, sin, half / 2, y);
      RotatePairs(x + half, 1, half / 2, cos + half, sin + half, half / 2, y + half);
      return;
    case RotaryMode::kInterleaveHalf:
      RotatePairs(x, 2, 1, cos, sin, half, y);
      return;
    case RotaryMode::kInterleave:
      for (int64_t i = 0; i < width; i += 2) RotatePairs(x + i, 1, 1, cos + i, sin + i, 1, y + i);
  }
}

// ---- the operators: each output is an input rotated by the same tables ----

struct RotaryPlan : Planned {
  struct Tensor {
    int slot = 0;
    DataType dtype = DataType::kUndefined;
    TableRows rows;
  };
  std::vector<Tensor> tensors;  // by output
  RotaryTables tables;
  Workspace<float> x, y;
};

Result<RotaryPlan> PlanRotary(const OpContext& op, std::initializer_list<std::string_view> ports,
                              std::string_view cos, std::string_view sin, RotaryMode mode,
                              Check& check) {
  RotaryPlan plan;
  for (const std::string_view port : ports) {
    check.RankAtLeast(port, kFloats, 1);
    check.RankAtLeast(cos, kFloats, 1);
    check.SameTensor(sin, cos);
    CheckRotation(op, port, cos, mode, check);
    if (!check.ok()) return check.status();
    const TensorType& x = op.in(port);
    plan.tensors.push_back({op.slot(port), x.dtype, TableRows(x.shape, op.in(cos).shape)});
    plan.outputs.push_back(x);
  }
  plan.tables = RotaryTables::Of(op, cos, sin, mode, plan.scratch);
  plan.scratch.Take(plan.tables.width, {&plan.x, &plan.y});
  return plan;
}

Result<RotaryPlan> PlanMul(const OpContext& op) {
  Check check(op);
  return PlanRotary(op, {"x"}, "r1", "r2", RotaryMode::kHalf, check);
}

Result<RotaryPlan> PlanInterleave(const OpContext& op) {
  Check check(op);
  return PlanRotary(op, {"x"}, "cos", "sin", RotaryMode::kInterleaveHalf, check);
}

Result<RotaryPlan> PlanEmbedding(const OpContext& op) {
  Check check(op);
  return PlanRotary(op, {"x"}, "cos", "sin", RotaryModeOf(check), check);
}

// The tables have 1 where query and key have their heads, so they broadcast in every layout.
Result<RotaryPlan> PlanApply(const OpContext& op) {
  Check check(op);
  check.OneOf("rotary_mode", {"half", "interleave", "quarter"});
  const std::string name = op.attr_string("rotary_mode");
  const RotaryMode mode = name == "half"         ? RotaryMode::kHalf
                          : name == "interleave" ? RotaryMode::kInterleave
                                                 : RotaryMode::kQuarter;
  const int64_t layout = op.attr_int("layout");
  check.That(layout >= 1 && layout <= 4 && op.in("query").shape.rank() == (layout == 4 ? 3 : 4),
             "layout {} with query {}; expected 1 BSND, 2 SBND, 3 BNSD or 4 TND", layout,
             op.in("query"));
  return PlanRotary(op, {"query", "key"}, "cos", "sin", mode, check);
}

Status RunRotary(const RotaryPlan& plan, const KernelArgs& args) {
  const int64_t width = plan.tables.width;
  float *x = plan.x(args), *y = plan.y(args);
  for (size_t output = 0; output < plan.tensors.size(); ++output) {
    const auto& [slot, dtype, rows] = plan.tensors[output];
    for (int64_t row = 0; row < rows.rows(); ++row) {
      LoadNumbers(dtype, args.in[slot], row * width, width, x);
      plan.tables.Rotate(args, rows.Element(row), x, y);
      StoreRow(dtype, y, args.out[output], row * width, width);
    }
  }
  return Status();
}

}  // namespace

void CheckRotation(const OpContext& op, std::string_view x_port, std::string_view table_port,
                   RotaryMode mode, Check& check) {
  const Shape &x = op.in(x_port).shape, &table = op.in(table_port).shape;
  const Result<Shape> joined = Broadcast(x, table);
  check.That(x.rank() > 0 && table.rank() > 0 && joined.ok() && *joined == x &&
                 table.dims().back() == x.dims().back(),
             "{} is {} and {} {}, expected a table that broadcasts with the same last dimension",
             x_port, x, table_port, table);
  const int64_t parts = mode == RotaryMode::kQuarter ? 4 : 2;
  check.That(x.rank() > 0 && x.dims().back() % parts == 0,
             "{} is {}, expected a last dimension divisible by {}", x_port, x, parts);
}

TableRows::TableRows(const Shape& x, const Shape& table)
    : width_(x.dims().back()),
      extents_(x.dims().begin(), x.dims().end() - 1),
      strides_(extents_.size(), 0) {
  int64_t stride = width_;
  for (int i = table.rank() - 2; i >= 0; --i) {
    const auto axis = static_cast<size_t>(i + x.rank() - table.rank());
    if (table[i] != 1) strides_[axis] = stride;
    stride *= table[i];
  }
  for (const int64_t extent : extents_) rows_ *= extent;
}

int64_t TableRows::Element(int64_t row) const {
  int64_t element = 0;
  for (size_t i = extents_.size(); i-- > 0;) {
    element += row % extents_[i] * strides_[i];
    row /= extents_[i];
  }
  return element;
}

RotaryTables RotaryTables::Of(const OpContext& op, std::string_view cos, std::string_view sin,
                              RotaryMode mode, Scratch& scratch) {
  const TensorType& table = op.in(cos);
  const int64_t width = table.shape.dims().back();
  return {op.slot(cos), op.slot(sin),          table.dtype,          mode,
          width,        scratch.Floats(width), scratch.Floats(width)};
}

void RotaryTables::Rotate(const KernelArgs& args, int64_t first, const float* x, float* y) const {
  const float* cosines = LoadRow(dtype, args.in[cos], first, width, cos_row(args));
  const float* sines = LoadRow(dtype, args.in[sin], first, width, sin_row(args));
  RotateBy(mode, x, cosines, sines, width, y);
}

void RegisterRopeOps(OpRegistry& registry) {
  registry.Add(Define<PlanEmbedding, RunRotary>(
      "RotaryPositionEmbedding(x, cos, sin, rotate?; mode=0) -> y"));
  registry.Add(Define<PlanMul, RunRotary>("RotaryMul(x, r1, r2) -> y"));
  registry.Add(Define<PlanInterleave, RunRotary>("InterleaveRope(x, cos, sin) -> y"));
  registry.Add(Define<PlanApply, RunRotary>(
      "ApplyRotaryPosEmb(query, key, cos, sin; layout=1, rotary_mode=\"half\") -> query, key",
      {.in_place = {{0, 0}, {1, 1}}}));
}

}  // namespace npumesh
