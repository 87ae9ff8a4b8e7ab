// RotaryMulGrad and RotaryPositionEmbeddingGrad.
//
// Forwards, y[j] = x[first(j)] cos[j] + sign(j) x[second(j)] sin[j] for each vector, so backwards
// every dy[j] goes to two elements of dx and to one of each table.
#include "graph/ops/attention/family.h"
#include "graph/ops/attention/rope.h"
#include "graph/ops/core/define.h"
#include "graph/ops/toolbox/rows/double_kernel.h"

namespace npumesh {
namespace {

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
Result<GradPlan> PlanGrad(const OpContext& op) {
  constexpr std::string_view kCos = kMul ? "r1" : "cos", kSin = kMul ? "r2" : "sin";
  const auto slot = [&](std::string_view port) { return static_cast<size_t>(op.slot(port)); };
  Check check(op);
  GradPlan plan;
  if constexpr (!kMul) plan.mode = RotaryModeOf(check);
  plan.tables = kMul ? op.attr_bool("need_backward") : op.has("x");
  plan.x = slot("x"), plan.cos = slot(kCos), plan.sin = slot(kSin), plan.dy = slot("dy");
  for (const PortSpec& port : op.schema().inputs) check.Keep(ExpectReal(op, port.name));
  if (op.has("x")) check.Keep(ExpectSameShape(op, "x", "dy"));
  check.Keep(ExpectSameShape(op, kSin, kCos));
  CheckRotation(op, "dy", kCos, plan.mode, check);
  if (!check.ok()) return check.status();
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

void RegisterRotaryGradients(OpRegistry& registry) {
  registry.Add(DefineReal<PlanGrad<true>, RunGrad, PrepareGrad>(
      "RotaryMulGrad(x, r1, r2, dy; need_backward=true) -> dx, dr1, dr2"));
  registry.Add(DefineReal<PlanGrad<false>, RunGrad, PrepareGrad>(
      "RotaryPositionEmbeddingGrad(dy, cos, sin, x?; mode=0) -> dx, dcos, dsin"));
}

}  // namespace npumesh
