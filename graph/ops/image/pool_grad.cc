// Gradients of pooling: AvgPoolV2Grad, AdaptiveAvgPool2dGrad and MaxPoolGradWithArgmaxV1.
#include "graph/ops/image/family.h"
#include "graph/ops/image/pool.h"
#include "graph/ops/toolbox/rows/double_kernel.h"

namespace npumesh {
namespace {

// Objects unless the gradient that comes in has the shape of what the pooling gives.
void CheckGradient(const OpContext& op, std::string_view port, const PoolPlan& plan, Check& check) {
  check.Keep(ExpectReal(op, port));
  check.That(op.in(port).shape == plan.y, "\"{}\" is {}, but pooling gives {}", port, op.in(port),
             plan.y);
}

// ---- averages ----

// `image` is the shape of what was pooled.
PoolPlan PlanAverage(const OpContext& op, PoolForm form, const Shape& image, Check& check) {
  check.Keep(image.Check().WithContext(op.Who()));
  const int slot = op.slot("input_grad");
  const Shape& grad = op.in(slot).shape;
  check.That(image.is_static() && image.rank() == grad.rank() && grad.rank() >= 3,
             "the image is {} and the gradient {}", image, grad);
  if (!check.ok()) return PoolPlan();
  PoolPlan plan = PlanPool(op, form, slot, image, check);
  CheckGradient(op, "input_grad", plan, check);
  plan.outputs = {{op.in(slot).dtype, image}};
  return plan;
}

PoolPlan PlanAveragePoolGrad(const OpContext& op, Check& check) {
  const Shape image(check.Take(op.Ints("orig_input_shape")));
  PoolPlan plan = PlanAverage(op, PoolForm::kLong, image, check);
  ReadDivisor(op, plan);
  return plan;
}

PoolPlan PlanAdaptiveGrad(const OpContext& op, Check& check) {
  const Shape image(op.attr_ints("orig_input_shape"));
  return PlanAverage(op, PoolForm::kAdaptiveGrad, image, check);
}

template <size_t kSlot>
Status RunAverage(const PoolPlan& plan, RealTensors& t) {
  size_t next = 0;
  ForOutputs(plan, [&](int64_t outer, const PoolBox& box, int64_t inner) {
    const double part = t.in[kSlot][next++] / DivisorOf(plan, box);
    double* dx = t.out[0].data();
    const int64_t first = ElementAt(plan, outer, 0, inner);
    ForPlaces(plan, box, [&](int64_t place) { dx[first + place * plan.inner] += part; });
  });
  return Status();
}

// ---- maximum ----

PoolPlan PlanMaximum(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  check.Keep(ExpectReal(op, "x"));
  PoolPlan plan = PlanPool(op, PoolForm::kArgmax, op.slot("x"), x, check);
  CheckTouched(plan, check);
  CheckGradient(op, "grad", plan, check);
  if (check.ok()) check.Keep(ExpectCount(op, "argmax", plan.y.elements(), "window"));
  plan.outputs = {{op.in("grad").dtype, x}};
  return plan;
}

// The element of x that a window took: the one `told` names, a place in the plane of the image, if
// it lies in the window and holds the maximum. Graphs of TorchAir hand on the pooled values in
// place of the indices; then it is the first maximum.
int64_t TakenElement(const PoolPlan& plan, const std::vector<double>& x, int64_t outer,
                     const PoolBox& box, int64_t inner, double told) {
  int64_t best = -1, named = -1;
  double most = 0, at_named = 0;
  ForPlaces(plan, box, [&](int64_t place) {
    const double value = x[static_cast<size_t>(ElementAt(plan, outer, place, inner))];
    if (static_cast<double>(place) == told) {
      named = place;
      at_named = value;
    }
    if (best >= 0 && !Exceeds(value, most)) return;
    best = place;
    most = value;
  });
  const bool holds = named >= 0 && (at_named == most || (at_named != at_named && most != most));
  return ElementAt(plan, outer, holds ? named : best, inner);
}

// Inputs x, grad, argmax.
Status RunMaximum(const PoolPlan& plan, RealTensors& t) {
  size_t next = 0;
  ForOutputs(plan, [&](int64_t outer, const PoolBox& box, int64_t inner) {
    const int64_t taken = TakenElement(plan, t.in[0], outer, box, inner, t.in[2][next]);
    t.out[0][static_cast<size_t>(taken)] += t.in[1][next++];
  });
  return Status();
}

}  // namespace

void RegisterPoolGradients(OpRegistry& registry) {
  registry.Add(DefineReal<PlanAveragePoolGrad, RunAverage<1>>(
      "AvgPoolV2Grad(orig_input_shape, input_grad; ksize:ints, strides:ints, "
      "padding_mode=\"CALCULATED\", pads=[0,0,0,0], data_format=\"NCHW\", global_pooling=false, "
      "ceil_mode=false, exclusive=true, divisor_override=0) -> out_grad",
      {.value_inputs = {"orig_input_shape"}}));
  registry.Add(DefineReal<PlanAdaptiveGrad, RunAverage<0>>(
      "AdaptiveAvgPool2dGrad(input_grad; orig_input_shape:ints) -> output_grad"));
  registry.Add(DefineReal<PlanMaximum, RunMaximum>(
      "MaxPoolGradWithArgmaxV1(x, grad, argmax; ksize:ints, strides:ints, pads:ints, dtype=3, "
      "dilation=[1,1,1,1], ceil_mode=false) -> y"));
}

}  // namespace npumesh
