// Gradients of pooling: AvgPoolV2Grad, AdaptiveAvgPool2dGrad and MaxPoolGradWithArgmaxV1. Ops
// reference 5.14 and 5.19.
#include <algorithm>

#include "graph/ops/infer_checks.h"
#include "graph/ops/pool.h"
#include "graph/ops/real_kernel.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

// Error unless the gradient that comes in has the shape of what the pooling gives.
Status CheckGradient(const OpContext& op, std::string_view port, const PoolPlan& plan) {
  NPUMESH_RETURN_IF_ERROR(ExpectReal(op, port));
  if (op.in(port).shape == plan.y) return Status();
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, but pooling gives {}", op.Who(), port,
               op.in(port).ToString(), plan.y.ToString());
}

// ---- averages ----

// Shape of the image that was pooled, an input or an attribute.
Result<std::vector<int64_t>> ImageOf(const OpContext& op) {
  if (op.schema().type == "AvgPoolV2Grad") return op.Ints("orig_input_shape");
  return op.attr_ints("orig_input_shape");
}

struct AveragePlan {
  Shape image;
  PoolPlan pool;
};

Result<AveragePlan> PlanAverage(const OpContext& op) {
  const int slot = op.slot("input_grad");
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int64_t> dims, ImageOf(op));
  AveragePlan plan;
  plan.image = Shape(std::move(dims));
  NPUMESH_RETURN_IF_ERROR(plan.image.Check().WithContext(op.Who()));
  const Shape& grad = op.in(slot).shape;
  if (!plan.image.is_static() || plan.image.rank() != grad.rank() || grad.rank() < 3) {
    return Error(Code::kInvalidArgument, "{}: the image is {} and the gradient {}", op.Who(),
                 plan.image.ToString(), grad.ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.pool, PlanPool(op, plan.image, slot));
  NPUMESH_RETURN_IF_ERROR(CheckGradient(op, "input_grad", plan.pool));
  return plan;
}

Status InferAverage(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(AveragePlan plan, PlanAverage(op));
  return SetOutput(op, 0, op.in("input_grad").dtype, std::move(plan.image));
}

Result<std::unique_ptr<Kernel>> MakeAverage(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(AveragePlan plan, PlanAverage(op));
  return MakeRealKernel(op, [plan = std::move(plan.pool), rule = AverageRuleOf(op),
                             slot = static_cast<size_t>(op.slot("input_grad"))](RealTensors& t) {
    size_t next = 0;
    ForOutputs(plan, [&](int64_t outer, const Window& rows, const Window& columns, int64_t inner) {
      const double part = t.in[slot][next++] / DivisorOf(plan, rule, rows, columns);
      ForWindow(plan, rows, columns, [&](int64_t r, int64_t c) {
        t.out[0][static_cast<size_t>(ElementAt(plan, outer, r, c, inner))] += part;
      });
    });
    return Status();
  });
}

// ---- maximum ----

Result<PoolPlan> PlanMaximum(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectReal(op, "x"));
  NPUMESH_ASSIGN_OR_RETURN(const PoolPlan plan, PlanPool(op, op.in("x").shape, op.slot("x")));
  NPUMESH_RETURN_IF_ERROR(CheckTouched(op, plan.rows));
  NPUMESH_RETURN_IF_ERROR(CheckTouched(op, plan.columns));
  NPUMESH_RETURN_IF_ERROR(CheckGradient(op, "grad", plan));
  NPUMESH_RETURN_IF_ERROR(ExpectCount(op, "argmax", plan.y.elements(), "window"));
  return plan;
}

Status InferMaximum(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(PlanMaximum(op).status());
  return SetOutput(op, 0, op.in("grad").dtype, op.in("x").shape);
}

// The element of x that a window took: the one `told` names, a place in the plane of the image, if
// it lies in the window and holds the maximum. Graphs of TorchAir hand on the pooled values in
// place of the indices; then it is the first maximum.
int64_t TakenElement(const PoolPlan& plan, const std::vector<double>& x, int64_t outer,
                     const Window& rows, const Window& columns, int64_t inner, double told) {
  int64_t best = -1, named = -1;
  double most = 0, at_named = 0;
  ForWindow(plan, rows, columns, [&](int64_t r, int64_t c) {
    const int64_t element = ElementAt(plan, outer, r, c, inner);
    const double value = x[static_cast<size_t>(element)];
    if (static_cast<double>(r * plan.width + c) == told) {
      named = element;
      at_named = value;
    }
    if (best >= 0 && !(value > most) && !(value != value && most == most)) return;
    best = element;
    most = value;
  });
  const bool holds = named >= 0 && (at_named == most || (at_named != at_named && most != most));
  return holds ? named : best;
}

Result<std::unique_ptr<Kernel>> MakeMaximum(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(PoolPlan plan, PlanMaximum(op));
  return MakeRealKernel(op, [plan = std::move(plan)](RealTensors& t) {
    size_t next = 0;
    ForOutputs(plan, [&](int64_t outer, const Window& rows, const Window& columns, int64_t inner) {
      const int64_t taken = TakenElement(plan, t.in[0], outer, rows, columns, inner, t.in[2][next]);
      t.out[0][static_cast<size_t>(taken)] += t.in[1][next++];
    });
    return Status();
  });
}

}  // namespace

void RegisterPoolGradients(OpRegistry& registry) {
  const AttrSpec ksize = {"ksize", Required::kInts}, strides = {"strides", Required::kInts};
  registry.Add({.schema = {"AvgPoolV2Grad",
                           {{"orig_input_shape"}, {"input_grad"}},
                           {{"out_grad"}},
                           {ksize,
                            strides,
                            {"padding_mode", AttrValue::String("CALCULATED")},
                            {"pads", AttrValue::Ints({0, 0, 0, 0})},
                            {"data_format", AttrValue::String("NCHW")},
                            {"global_pooling", AttrValue::Bool(false)},
                            {"ceil_mode", AttrValue::Bool(false)},
                            {"exclusive", AttrValue::Bool(true)},
                            {"divisor_override", AttrValue::Int(0)}}},
                .infer = InferAverage,
                .make_kernel = MakeAverage,
                .value_inputs = {"orig_input_shape"}});
  registry.Add({.schema = {"AdaptiveAvgPool2dGrad",
                           {{"input_grad"}},
                           {{"output_grad"}},
                           {{"orig_input_shape", Required::kInts}}},
                .infer = InferAverage,
                .make_kernel = MakeAverage});
  registry.Add({.schema = {"MaxPoolGradWithArgmaxV1",
                           {{"x"}, {"grad"}, {"argmax"}},
                           {{"y"}},
                           {ksize,
                            strides,
                            {"pads", Required::kInts},
                            {"dtype", AttrValue::Int(3)},
                            {"dilation", AttrValue::Ints({1, 1, 1, 1})},
                            {"ceil_mode", AttrValue::Bool(false)}}},
                .infer = InferMaximum,
                .make_kernel = MakeMaximum});
}

}  // namespace npumesh
