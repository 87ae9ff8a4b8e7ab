// Losses over classes and the gradient of PRelu: NLLLoss, NLLLossGrad,
// SoftmaxCrossEntropyWithLogits, SparseSoftmaxCrossEntropyWithLogits, PReluGrad. Losses of single
// elements are in pointwise_gradient.cc.
#include <algorithm>
#include <cmath>

#include "graph/ops/core/check.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

// ---- NLLLoss ----

// x as [samples / inner, classes, inner]: [C], [N, C] or [N, C, ...].
struct ClassPlan : Planned {
  int64_t classes = 1, inner = 1, samples = 1;
  Shape sample_shape;  // of x without its classes
  int64_t ignored = 0;
  bool sums = true;    // the loss is one number
  bool means = false;  // which is divided by the total weight

  size_t element(int64_t sample, int64_t target) const {
    return static_cast<size_t>((sample / inner * classes + target) * inner + sample % inner);
  }
};

ClassPlan PlanClasses(const OpContext& op, Check& check) {
  const Shape& x = op.in("x").shape;
  const TensorType& target = op.in("target");
  check.Keep(ExpectReal(op, "x"));
  check.Keep(ExpectReal(op, "weight"));
  check.That(x.rank() > 0 && IsInteger(target.dtype),
             "x is {} and target {}; expected classes and integers", x, target);
  check.OneOf("reduction", {"none", "mean", "sum"});
  ClassPlan plan;
  if (!check.ok()) return plan;
  const int axis = x.rank() == 1 ? 0 : 1;
  plan.classes = x[axis];
  plan.inner = ElementsBetween(x, axis + 1, x.rank());
  plan.samples = ElementsBetween(x, 0, axis) * plan.inner;
  plan.ignored = op.attr_int("ignore_index");
  plan.sums = op.attr_string("reduction") != "none";
  plan.means = op.attr_string("reduction") == "mean";
  plan.sample_shape = Spliced(x, axis, axis + 1, {});
  check.That(target.shape == plan.sample_shape || (x.rank() == 1 && target.shape == Shape({1})),
             "\"target\" is {}, expected the shape {} for x {}", target, plan.sample_shape, x);
  check.Keep(ExpectCount(op, "weight", plan.classes, "class"));
  return plan;
}

// Calls visit(sample, target, weight) for the samples that are not ignored.
template <typename Visit>
Status ForSamples(const ClassPlan& plan, const std::vector<double>& targets,
                  const std::vector<double>& weights, Visit visit) {
  for (int64_t sample = 0; sample < plan.samples; ++sample) {
    const auto target = static_cast<int64_t>(targets[static_cast<size_t>(sample)]);
    if (target == plan.ignored) continue;
    if (target < 0 || target >= plan.classes) {
      return Error(Code::kInvalidArgument, "{}: target {} of sample {} is not one of {} classes",
                   plan.who, target, sample, plan.classes);
    }
    visit(sample, target, weights.empty() ? 1.0 : weights[static_cast<size_t>(target)]);
  }
  return Status();
}

ClassPlan PlanNllLoss(const OpContext& op, Check& check) {
  ClassPlan plan = PlanClasses(op, check);
  const DataType dtype = op.in("x").dtype;
  plan.outputs = {{dtype, plan.sums ? Shape() : plan.sample_shape}, {dtype, {}}};
  return plan;
}

Status RunNllLoss(const ClassPlan& plan, RealTensors& t) {
  double sum = 0, total = 0;
  NPUMESH_RETURN_IF_ERROR(
      ForSamples(plan, t.in[1], t.in[2], [&](int64_t sample, int64_t target, double weight) {
        const double loss = -weight * t.in[0][plan.element(sample, target)];
        if (!plan.sums) t.out[0][static_cast<size_t>(sample)] = loss;
        sum += loss;
        total += weight;
      }));
  if (plan.sums) t.out[0][0] = plan.means ? sum / total : sum;
  t.out[1][0] = total;
  return Status();
}

ClassPlan PlanNllLossGrad(const OpContext& op, Check& check) {
  ClassPlan plan = PlanClasses(op, check);
  check.Keep(ExpectReal(op, "y_grad"));
  check.Keep(ExpectReal(op, "total_weight"));
  check.Keep(
      ExpectCount(op, "y_grad", plan.sums ? 1 : plan.samples, plan.sums ? "loss" : "sample"));
  check.Keep(ExpectCount(op, "total_weight", 1, "loss"));
  plan.outputs = {op.in("x")};
  return plan;
}

// Inputs x, y_grad, target, weight, total_weight.
Status RunNllLossGrad(const ClassPlan& plan, RealTensors& t) {
  const double divisor = plan.means ? t.in[4][0] : 1.0;
  return ForSamples(plan, t.in[2], t.in[3], [&](int64_t sample, int64_t target, double weight) {
    const double dy = t.in[1][plan.sums ? 0 : static_cast<size_t>(sample)];
    t.out[0][plan.element(sample, target)] = -weight * dy / divisor;
  });
}

// ---- softmax and cross entropy ----

// Rows of `classes` logits, and how labels are read: one class number a row, or a distribution
// that may be broadcast.
struct EntropyPlan : Planned {
  int64_t rows = 0, classes = 0;
  int64_t row_step = 1;  // between labels
  int64_t class_step = 0;
};

template <bool kSparse>
EntropyPlan PlanEntropy(const OpContext& op, Check& check) {
  const TensorType &x = op.in("features"), &labels = op.in("labels");
  check.Keep(ExpectReal(op, "features"));
  const Shape& given = labels.shape;
  bool fits = x.shape.rank() == 2;
  if (fits && kSparse) fits = IsInteger(labels.dtype) && given == Shape({x.shape[0]});
  if (fits && !kSparse) {
    fits = kFloatsAndDouble.Contains(labels.dtype) && given.rank() == 2;
    for (int i = 0; fits && i < 2; ++i) fits = given[i] == x.shape[i] || given[i] == 1;
  }
  check.That(fits, "features are {} and labels {}; expected [N,C] and {}", x, labels,
             kSparse ? "N integers" : "floats that broadcast to it");
  if (!check.ok()) return {};
  EntropyPlan plan;
  plan.rows = x.shape[0];
  plan.classes = x.shape[1];
  if (!kSparse) {
    plan.row_step = given[0] == 1 ? 0 : given[1];
    plan.class_step = given[1] == 1 ? 0 : 1;
  }
  plan.outputs = {{x.dtype, {plan.rows}}, x};
  return plan;
}

// One row: the loss, and softmax - labels. `label(c)` is the probability of a class; classes
// without one do not count, however unlikely softmax makes them.
template <typename Label>
double EntropyOfRow(const double* x, int64_t classes, Label label, double* backprop) {
  double most = -INFINITY, sum = 0, loss = 0;
  for (int64_t c = 0; c < classes; ++c) most = std::max(most, x[c]);
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - most);
  const double log_of_sum = std::log(sum);
  for (int64_t c = 0; c < classes; ++c) {
    const double log_softmax = x[c] - most - log_of_sum;
    if (label(c) != 0) loss -= label(c) * log_softmax;
    backprop[c] = std::exp(log_softmax) - label(c);
  }
  return loss;
}

template <bool kSparse>
Status RunEntropy(const EntropyPlan& plan, RealTensors& t) {
  for (int64_t row = 0; row < plan.rows; ++row) {
    const double* labels = t.in[1].data() + row * plan.row_step;
    const auto target = kSparse ? static_cast<int64_t>(*labels) : 0;
    if (kSparse && (target < 0 || target >= plan.classes)) {
      return Error(Code::kInvalidArgument, "{}: label {} of row {} is not one of {} classes",
                   plan.who, target, row, plan.classes);
    }
    const auto label = [&](int64_t c) {
      return kSparse ? (c == target ? 1.0 : 0.0) : labels[c * plan.class_step];
    };
    const int64_t first = row * plan.classes;
    t.out[0][static_cast<size_t>(row)] =
        EntropyOfRow(t.in[0].data() + first, plan.classes, label, t.out[1].data() + first);
  }
  return Status();
}

// ---- PReluGrad ----

struct PReluPlan : Planned {
  size_t inner = 1;  // elements that share a weight
};

// One weight for all, or one for each channel (dimension 1).
PReluPlan PlanPReluGrad(const OpContext& op, Check& check) {
  check.Keep(ExpectAllReal(op));
  check.Keep(ExpectSameShape(op, "grads", "features"));
  const Shape& x = op.in("features").shape;
  const TensorType& weights = op.in("weights");
  const bool channels = x.rank() >= 2;
  if (weights.shape.elements() != 1) {
    check.Keep(ExpectCount(op, "weights", channels ? x[1] : 1, "channel"));
  }
  PReluPlan plan;
  if (channels) plan.inner = static_cast<size_t>(ElementsBetween(x, 2, x.rank()));
  plan.outputs = {op.in("grads"), weights};
  return plan;
}

Status RunPReluGrad(const PReluPlan& plan, RealTensors& t) {
  const size_t weights = t.in[2].size();
  for (size_t i = 0; i < t.in[0].size(); ++i) {
    const double g = t.in[0][i], value = t.in[1][i];
    const size_t w = weights == 1 ? 0 : i / plan.inner % weights;
    t.out[0][i] = value > 0 ? g : g * t.in[2][w];
    if (!(value > 0)) t.out[1][w] += g * value;
  }
  return Status();
}

}  // namespace

void RegisterLossOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kBlack);
  registry.Add(DefineReal<PlanNllLoss, RunNllLoss>(
      "NLLLoss(x, target, weight?; reduction=\"mean\", ignore_index=-100) -> y, total_weight"));
  registry.Add(DefineReal<PlanNllLossGrad, RunNllLossGrad>(
      "NLLLossGrad(x, y_grad, target, weight, total_weight; reduction=\"mean\", "
      "ignore_index=-100) -> x_grad"));
  registry.Add(DefineReal<PlanEntropy<false>, RunEntropy<false>>(
      "SoftmaxCrossEntropyWithLogits(features, labels) -> loss, backprop"));
  registry.Add(DefineReal<PlanEntropy<true>, RunEntropy<true>>(
      "SparseSoftmaxCrossEntropyWithLogits(features, labels) -> loss, backprop",
      {.axes = "features[n c@labels], labels[n] -> loss[n], backprop[n c]"}));
  registry.Add(
      DefineReal<PlanPReluGrad, RunPReluGrad>("PReluGrad(grads, features, weights) -> dx, da"));
}

}  // namespace npumesh
