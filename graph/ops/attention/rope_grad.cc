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

struct GradPlan {
  RotaryMode mode = RotaryMode::kHalf;
  std::string_view cos;
  bool tables = true;  // their gradients are asked for; zeros otherwise
  size_t x = 0;        // slots; of x only with `tables`
  size_t cos_slot = 0, sin_slot = 0, dy = 0;
};

template <bool kMul>
Result<GradPlan> PlanGrad(const OpContext& op) {
  constexpr std::string_view kCos = kMul ? "r1" : "cos", kSin = kMul ? "r2" : "sin";
  const auto slot = [&](std::string_view port) { return static_cast<size_t>(op.slot(port)); };
  Check check(op);
  GradPlan plan;
  if constexpr (!kMul) plan.mode = RotaryModeOf(check);
  plan.cos = kCos;
  plan.tables = kMul ? op.attr_bool("need_backward") : op.has("x");
  plan.x = slot("x"), plan.cos_slot = slot(kCos), plan.sin_slot = slot(kSin), plan.dy = slot("dy");
  for (const PortSpec& port : op.schema().inputs) check.Keep(ExpectReal(op, port.name));
  if (op.has("x")) check.Keep(ExpectSameShape(op, "x", "dy"));
  check.Keep(ExpectSameShape(op, kSin, kCos));
  CheckRotation(op, "dy", kCos, plan.mode, check);
  return check.Done(plan);
}

template <bool kMul>
Status InferGrad(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GradPlan plan, PlanGrad<kMul>(op));
  const TensorType table = op.in(plan.cos);
  return define::SetOutputs(op, {op.in("dy"), table, table});
}

template <bool kMul>
Result<std::unique_ptr<Kernel>> MakeGrad(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GradPlan plan, PlanGrad<kMul>(op));
  const TableRows rows(op.in("dy").shape, op.in(plan.cos).shape);
  const auto sources = SourcesOf(plan.mode, static_cast<size_t>(rows.width()));
  return MakeRealKernel(op, [plan, rows, sources](RealTensors& t) {
    const auto &dy = t.in[plan.dy], &cos = t.in[plan.cos_slot], &sin = t.in[plan.sin_slot];
    const auto& x = t.in[plan.x];
    for (int64_t row = 0; row < rows.rows(); ++row) {
      const auto first_of_table = static_cast<size_t>(rows.Element(row));
      const size_t first_of_x = static_cast<size_t>(row) * sources.size();
      for (size_t j = 0; j < sources.size(); ++j) {
        const size_t table = first_of_table + j;
        const size_t first = first_of_x + sources[j].first;
        const size_t second = first_of_x + sources[j].second;
        const double g = dy[first_of_x + j], sign = sources[j].sign;
        t.out[0][first] += g * cos[table];
        t.out[0][second] += sign * g * sin[table];
        if (!plan.tables) continue;
        t.out[1][table] += g * x[first];
        t.out[2][table] += sign * g * x[second];
      }
    }
    return Status();
  });
}

template <bool kMul>
Operator Gradient(std::string_view signature) {
  return {.schema = Signature(signature), .infer = InferGrad<kMul>, .make_kernel = MakeGrad<kMul>};
}

}  // namespace

void RegisterRotaryGradients(OpRegistry& registry) {
  registry.Add(Gradient<true>("RotaryMulGrad(x, r1, r2, dy; need_backward=true) -> dx, dr1, dr2"));
  registry.Add(
      Gradient<false>("RotaryPositionEmbeddingGrad(dy, cos, sin, x?; mode=0) -> dx, dcos, dsin"));
}

}  // namespace npumesh
