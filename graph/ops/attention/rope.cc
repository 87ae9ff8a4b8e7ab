// RotaryPositionEmbedding, RotaryMul, ApplyRotaryPosEmb and InterleaveRope; and the gradients of
// the first two.
#include "graph/ops/attention/rope.h"

#include <vector>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
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

// The attribute `mode`; objects when it names no mode.
RotaryMode RotaryModeOf(Check& check) {
  return static_cast<RotaryMode>(check.Between("mode", 0, 3));
}

// Objects unless a table broadcasts to x with the same last dimension, which the mode can rotate.
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

// Where each vector of a tensor finds its vector of a table that broadcasts to it.
class TableRows {
 public:
  TableRows() = default;
  TableRows(const Shape& x, const Shape& table)
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

  int64_t rows() const { return rows_; }  // vectors of the tensor
  int64_t width() const { return width_; }
  // First element in the table.
  int64_t Element(int64_t row) const {
    int64_t element = 0;
    for (size_t i = extents_.size(); i-- > 0;) {
      element += row % extents_[i] * strides_[i];
      row /= extents_[i];
    }
    return element;
  }

 private:
  int64_t width_ = 0, rows_ = 1;
  std::vector<int64_t> extents_;
  std::vector<int64_t> strides_;  // of the table along the leading dimensions of the tensor
};

// ---- the operators: each output is an input rotated by the same tables ----

struct RotaryPlan : Planned {
  struct Tensor {
    InputRows x;
    TableRows table;
  };
  std::vector<Tensor> tensors;  // by output
  RotaryTables tables;
  Workspace<float> x, y;
};

RotaryPlan PlanRotary(const OpContext& op, std::initializer_list<std::string_view> ports,
                      std::string_view cos, std::string_view sin, RotaryMode mode, Check& check) {
  RotaryPlan plan;
  for (const std::string_view port : ports) {
    check.RankAtLeast(port, kFloats, 1);
    check.RankAtLeast(cos, kFloats, 1);
    check.SameTensor(sin, cos);
    CheckRotation(op, port, cos, mode, check);
    if (!check.ok()) return plan;
    const Shape& table = op.in(cos).shape;
    plan.tensors.push_back({InputRows::Of(check, op, port), {op.in(port).shape, table}});
    plan.outputs.push_back(op.in(port));
  }
  plan.tables = RotaryTables::Of(op, cos, sin, mode, plan.scratch);
  plan.scratch.Take(plan.tables.width, {&plan.x, &plan.y});
  return plan;
}

RotaryPlan PlanMul(const OpContext& op, Check& check) {
  return PlanRotary(op, {"x"}, "r1", "r2", RotaryMode::kHalf, check);
}

RotaryPlan PlanInterleave(const OpContext& op, Check& check) {
  return PlanRotary(op, {"x"}, "cos", "sin", RotaryMode::kInterleaveHalf, check);
}

RotaryPlan PlanEmbedding(const OpContext& op, Check& check) {
  return PlanRotary(op, {"x"}, "cos", "sin", RotaryModeOf(check), check);
}

// The tables have 1 where query and key have their heads, so they broadcast in every layout.
RotaryPlan PlanApply(const OpContext& op, Check& check) {
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
  float *x = plan.x(args), *y = plan.y(args);
  for (size_t output = 0; output < plan.tensors.size(); ++output) {
    const auto& [from, table] = plan.tensors[output];
    for (int64_t row = 0; row < from.count; ++row) {
      from.Load(args, row, x);
      plan.tables.Rotate(args, table.Element(row), x, y);
      StoreRow(from.dtype, y, args.out[output], row * from.width, from.width);
    }
  }
  return Status();
}

// ---- gradients ----
//
// Forwards, y[j] = x[first(j)] cos[j] + sign(j) x[second(j)] sin[j] for each vector, so backwards
// every dy[j] goes to two elements of dx and to one of each table.

struct Source {
  size_t first = 0, second = 0;
  double sign = 1;
};

// Where each element of a rotated vector of `width` elements comes from.
std::vector<Source> SourcesOf(RotaryMode mode, size_t width) {
  std::vector<Source> sources(width);
  const size_t part = mode == RotaryMode::kQuarter ? width / 2 : width;
  for (size_t j = 0; j < width; ++j) {
    const bool low = j % part < part / 2;
    Source& source = sources[j];
    source.first = j;
    source.second = low ? j + part / 2 : j - part / 2;
    source.sign = low ? -1 : 1;
    if (mode == RotaryMode::kInterleave) {
      source.second = j ^ 1;
      source.sign = j % 2 == 0 ? -1 : 1;
    } else if (mode == RotaryMode::kInterleaveHalf) {
      source.first = low ? 2 * j : 2 * (j - width / 2) + 1;
      source.second = low ? 2 * j + 1 : 2 * (j - width / 2);
    }
  }
  return sources;
}

struct GradPlan : Planned {
  RotaryMode mode = RotaryMode::kHalf;
  TableRows rows;
  std::vector<Source> sources;  // from Prepare
  bool tables = true;           // their gradients are asked for; zeros otherwise
  size_t x = 0;                 // slots; of x only with `tables`
  size_t cos = 0, sin = 0, dy = 0;
};

template <bool kMul>
GradPlan PlanGrad(const OpContext& op, Check& check) {
  constexpr std::string_view kCos = kMul ? "r1" : "cos", kSin = kMul ? "r2" : "sin";
  const auto slot = [&](std::string_view port) { return static_cast<size_t>(op.slot(port)); };
  GradPlan plan;
  if constexpr (!kMul) plan.mode = RotaryModeOf(check);
  plan.tables = kMul ? op.attr_bool("need_backward") : op.has("x");
  plan.x = slot("x"), plan.cos = slot(kCos), plan.sin = slot(kSin), plan.dy = slot("dy");
  for (const PortSpec& port : op.schema().inputs) check.Keep(ExpectReal(op, port.name));
  if (op.has("x")) check.Keep(ExpectSameShape(op, "x", "dy"));
  check.Keep(ExpectSameShape(op, kSin, kCos));
  CheckRotation(op, "dy", kCos, plan.mode, check);
  if (!check.ok()) return plan;
  plan.rows = TableRows(op.in("dy").shape, op.in(kCos).shape);
  plan.outputs = {op.in("dy"), op.in(kCos), op.in(kCos)};
  return plan;
}

Status PrepareGrad(const OpContext&, GradPlan* plan) {
  plan->sources = SourcesOf(plan->mode, static_cast<size_t>(plan->rows.width()));
  return Status();
}

Status RunGrad(const GradPlan& plan, RealTensors& t) {
  const auto &dy = t.in[plan.dy], &cos = t.in[plan.cos], &sin = t.in[plan.sin], &x = t.in[plan.x];
  for (int64_t row = 0; row < plan.rows.rows(); ++row) {
    const auto first_of_table = static_cast<size_t>(plan.rows.Element(row));
    const size_t first_of_x = static_cast<size_t>(row) * plan.sources.size();
    for (size_t j = 0; j < plan.sources.size(); ++j) {
      const Source& source = plan.sources[j];
      const size_t table = first_of_table + j;
      const size_t first = first_of_x + source.first, second = first_of_x + source.second;
      const double g = dy[first_of_x + j];
      t.out[0][first] += g * cos[table];
      t.out[0][second] += source.sign * g * sin[table];
      if (!plan.tables) continue;
      t.out[1][table] += g * x[first];
      t.out[2][table] += source.sign * g * x[second];
    }
  }
  return Status();
}

}  // namespace

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
  registry.Add(
      Define<PlanEmbedding, RunRotary>("RotaryPositionEmbedding(x, cos, sin, rotate?; mode=0) -> y",
                                       {.axes = "x[.. d!], cos[.. d], sin[.. d] -> y[.. d]"}));
  registry.Add(Define<PlanMul, RunRotary>("RotaryMul(x, r1, r2) -> y",
                                          {.axes = "x[.. d!], r1[.. d], r2[.. d] -> y[.. d]"}));
  registry.Add(Define<PlanInterleave, RunRotary>("InterleaveRope(x, cos, sin) -> y"));
  registry.Add(Define<PlanApply, RunRotary>(
      "ApplyRotaryPosEmb(query, key, cos, sin; layout=1, rotary_mode=\"half\") -> query, key",
      {.in_place = {{0, 0}, {1, 1}}}));
  registry.Add(DefineReal<PlanGrad<true>, RunGrad, PrepareGrad>(
      "RotaryMulGrad(x, r1, r2, dy; need_backward=true) -> dx, dr1, dr2"));
  registry.Add(DefineReal<PlanGrad<false>, RunGrad, PrepareGrad>(
      "RotaryPositionEmbeddingGrad(dy, cos, sin, x?; mode=0) -> dx, dcos, dsin"));
}

}  // namespace npumesh
