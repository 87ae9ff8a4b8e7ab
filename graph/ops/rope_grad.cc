// RotaryMulGrad and RotaryPositionEmbeddingGrad.
//
// Forwards, y[j] = x[first(j)] cos[j] + sign(j) x[second(j)] sin[j] for each vector, so backwards
// every dy[j] goes to two elements of dx and to one of each table.
#include "graph/ops/infer_checks.h"
#include "graph/ops/real_kernel.h"
#include "graph/ops/rope.h"
#include "graph/ops/signature.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

struct Source {
  size_t first = 0;
  size_t second = 0;
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
  int x = -1;          // slots; -1: not fed
  int cos_slot = -1;
  int sin_slot = -1;
  int dy = -1;
};

Result<GradPlan> PlanGrad(const OpContext& op, std::string_view cos, std::string_view sin,
                          RotaryMode mode, Check& check) {
  const GradPlan plan = {.mode = mode,
                         .cos = cos,
                         .tables = op.has("x"),
                         .x = op.has("x") ? op.slot("x") : -1,
                         .cos_slot = op.slot(cos),
                         .sin_slot = op.slot(sin),
                         .dy = op.slot("dy")};
  for (const PortSpec& port : op.schema().inputs) check.Keep(ExpectReal(op, port.name));
  if (plan.x >= 0) check.Keep(ExpectSameShape(op, "x", "dy"));
  check.Keep(ExpectSameShape(op, sin, cos));
  CheckRotation(op, "dy", cos, mode, check);
  return check.Done(plan);
}

Result<GradPlan> PlanMul(const OpContext& op) {
  Check check(op);
  NPUMESH_ASSIGN_OR_RETURN(GradPlan plan, PlanGrad(op, "r1", "r2", RotaryMode::kHalf, check));
  plan.tables = op.attr_bool("need_backward");
  return plan;
}

Result<GradPlan> PlanEmbedding(const OpContext& op) {
  Check check(op);
  return PlanGrad(op, "cos", "sin", RotaryModeOf(check), check);
}

template <auto PlanFn>
Status InferGrad(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GradPlan plan, PlanFn(op));
  const TensorType dy = op.in("dy"), table = op.in(plan.cos);
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, dy.dtype, dy.shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, table.dtype, table.shape));
  return SetOutput(op, 2, table.dtype, table.shape);
}

template <auto PlanFn>
Result<std::unique_ptr<Kernel>> MakeGrad(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GradPlan plan, PlanFn(op));
  const TableRows rows(op.in("dy").shape, op.in(plan.cos).shape);
  return MakeRealKernel(
      op, [plan, rows,
           sources = SourcesOf(plan.mode, static_cast<size_t>(rows.width()))](RealTensors& t) {
        const auto in = [&](int slot) -> const std::vector<double>& {
          return t.in[static_cast<size_t>(slot)];
        };
        const auto &dy = in(plan.dy), &cos = in(plan.cos_slot), &sin = in(plan.sin_slot);
        const size_t width = sources.size();
        for (int64_t row = 0; row < rows.rows(); ++row) {
          const auto first_of_table = static_cast<size_t>(rows.Element(row));
          const size_t first_of_x = static_cast<size_t>(row) * width;
          for (size_t j = 0; j < width; ++j) {
            const size_t table = first_of_table + j;
            const size_t first = first_of_x + sources[j].first;
            const size_t second = first_of_x + sources[j].second;
            const double g = dy[first_of_x + j], sign = sources[j].sign;
            t.out[0][first] += g * cos[table];
            t.out[0][second] += sign * g * sin[table];
            if (!plan.tables) continue;
            t.out[1][table] += g * in(plan.x)[first];
            t.out[2][table] += sign * g * in(plan.x)[second];
          }
        }
        return Status();
      });
}

template <auto PlanFn>
Operator Gradient(std::string_view signature) {
  return {
      .schema = Signature(signature), .infer = InferGrad<PlanFn>, .make_kernel = MakeGrad<PlanFn>};
}

}  // namespace

void RegisterRotaryGradients(OpRegistry& registry) {
  registry.Add(
      Gradient<PlanMul>("RotaryMulGrad(x, r1, r2, dy; need_backward=true) -> dx, dr1, dr2"));
  registry.Add(Gradient<PlanEmbedding>(
      "RotaryPositionEmbeddingGrad(dy, cos, sin, x?; mode=0) -> dx, dcos, dsin"));
}

}  // namespace npumesh
