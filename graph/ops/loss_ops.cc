// Losses over classes and the gradient of PRelu: NLLLoss, NLLLossGrad,
// SoftmaxCrossEntropyWithLogits, SparseSoftmaxCrossEntropyWithLogits, PReluGrad. Ops reference 5.14
// and 5.19. Losses of single elements are in pointwise_gradient.cc.
#include <algorithm>
#include <cmath>

#include "graph/ops/infer_checks.h"
#include "graph/ops/real_kernel.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

// ---- NLLLoss ----

enum class Reduction { kNone, kMean, kSum };

Result<Reduction> ReductionOf(const OpContext& op) {
  const std::string name = op.attr_string("reduction");
  if (name == "none") return Reduction::kNone;
  if (name == "mean") return Reduction::kMean;
  if (name == "sum") return Reduction::kSum;
  return Error(Code::kInvalidArgument, "{}: reduction is \"{}\", expected none, mean or sum",
               op.Who(), name);
}

// x as [samples / inner, classes, inner]: [C], [N, C] or [N, C, ...].
struct ClassPlan {
  std::string who;
  int64_t classes = 1;
  int64_t inner = 1;
  int64_t samples = 1;
  Shape sample_shape;  // of x without its classes
  int64_t ignored = 0;
  Reduction reduction = Reduction::kMean;

  size_t element(int64_t sample, int64_t target) const {
    return static_cast<size_t>((sample / inner * classes + target) * inner + sample % inner);
  }
};

Result<ClassPlan> PlanClasses(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  for (const std::string_view port : {"x", "weight"}) {
    NPUMESH_RETURN_IF_ERROR(ExpectReal(op, port));
  }
  const DataType target = op.in("target").dtype;
  if (x.rank() == 0 || !IsInteger(target)) {
    return Error(Code::kInvalidArgument, "{}: x is {} and target {}; expected classes and integers",
                 op.Who(), x.ToString(), op.in("target").ToString());
  }
  ClassPlan plan;
  plan.who = op.Who();
  const int axis = x.rank() == 1 ? 0 : 1;
  plan.classes = x[axis];
  plan.inner = ElementsBetween(x, axis + 1, x.rank());
  plan.samples = ElementsBetween(x, 0, axis) * plan.inner;
  plan.ignored = op.attr_int("ignore_index");
  NPUMESH_ASSIGN_OR_RETURN(plan.reduction, ReductionOf(op));
  plan.sample_shape = x;
  plan.sample_shape.mutable_dims().erase(plan.sample_shape.mutable_dims().begin() + axis);
  const Shape& samples = op.in("target").shape;
  if (samples != plan.sample_shape && !(x.rank() == 1 && samples == Shape({1}))) {
    return Error(Code::kInvalidArgument, "{}: \"target\" is {}, expected the shape {} for x {}",
                 op.Who(), op.in("target").ToString(), plan.sample_shape.ToString(), x.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(ExpectCount(op, "weight", plan.classes, "class"));
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

Status InferNllLoss(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const ClassPlan plan, PlanClasses(op));
  const DataType dtype = op.in("x").dtype;
  const bool single = plan.reduction != Reduction::kNone;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, dtype, single ? Shape() : plan.sample_shape));
  return SetOutput(op, 1, dtype, Shape());
}

Result<std::unique_ptr<Kernel>> MakeNllLoss(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(ClassPlan plan, PlanClasses(op));
  return MakeRealKernel(op, [plan = std::move(plan)](RealTensors& t) {
    double sum = 0, total = 0;
    NPUMESH_RETURN_IF_ERROR(
        ForSamples(plan, t.in[1], t.in[2], [&](int64_t sample, int64_t target, double weight) {
          const double loss = -weight * t.in[0][plan.element(sample, target)];
          if (plan.reduction == Reduction::kNone) t.out[0][static_cast<size_t>(sample)] = loss;
          sum += loss;
          total += weight;
        }));
    if (plan.reduction == Reduction::kSum) t.out[0][0] = sum;
    if (plan.reduction == Reduction::kMean) t.out[0][0] = sum / total;
    t.out[1][0] = total;
    return Status();
  });
}

Status InferNllLossGrad(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const ClassPlan plan, PlanClasses(op));
  const bool single = plan.reduction != Reduction::kNone;
  NPUMESH_RETURN_IF_ERROR(ExpectReal(op, "y_grad"));
  NPUMESH_RETURN_IF_ERROR(
      ExpectCount(op, "y_grad", single ? 1 : plan.samples, single ? "loss" : "sample"));
  NPUMESH_RETURN_IF_ERROR(ExpectReal(op, "total_weight"));
  NPUMESH_RETURN_IF_ERROR(ExpectCount(op, "total_weight", 1, "loss"));
  return SetOutput(op, 0, op.in("x").dtype, op.in("x").shape);
}

// Inputs x, y_grad, target, weight, total_weight.
Result<std::unique_ptr<Kernel>> MakeNllLossGrad(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(ClassPlan plan, PlanClasses(op));
  return MakeRealKernel(op, [plan = std::move(plan)](RealTensors& t) {
    const double divisor = plan.reduction == Reduction::kMean ? t.in[4][0] : 1.0;
    return ForSamples(plan, t.in[2], t.in[3], [&](int64_t sample, int64_t target, double weight) {
      const bool single = plan.reduction != Reduction::kNone;
      const double dy = t.in[1][single ? 0 : static_cast<size_t>(sample)];
      t.out[0][plan.element(sample, target)] = -weight * dy / divisor;
    });
  });
}

// ---- softmax and cross entropy ----

// Rows of `classes` logits, and how labels are read: one class number a row, or a distribution
// that may be broadcast.
struct EntropyPlan {
  std::string who;
  int64_t rows = 0;
  int64_t classes = 0;
  bool sparse = false;
  int64_t row_step = 0;
  int64_t class_step = 0;
};

Result<EntropyPlan> PlanEntropy(const OpContext& op) {
  const Shape &x = op.in("features").shape, &labels = op.in("labels").shape;
  NPUMESH_RETURN_IF_ERROR(ExpectReal(op, "features"));
  EntropyPlan plan;
  plan.who = op.Who();
  plan.sparse = op.schema().type == "SparseSoftmaxCrossEntropyWithLogits";
  const bool typed =
      plan.sparse ? IsInteger(op.in("labels").dtype) : IsRealType(op.in("labels").dtype);
  bool fits = typed && x.rank() == 2;
  if (fits) {
    plan.rows = x[0];
    plan.classes = x[1];
    fits = plan.sparse ? labels == Shape({x[0]})
                       : labels.rank() == 2 && (labels[0] == x[0] || labels[0] == 1) &&
                             (labels[1] == x[1] || labels[1] == 1);
  }
  if (!fits) {
    return Error(Code::kInvalidArgument, "{}: features are {} and labels {}; expected [N,C] and {}",
                 op.Who(), op.in("features").ToString(), op.in("labels").ToString(),
                 plan.sparse ? "N integers" : "floats that broadcast to it");
  }
  if (!plan.sparse) {
    plan.row_step = labels[0] == 1 ? 0 : labels[1];
    plan.class_step = labels[1] == 1 ? 0 : 1;
  }
  return plan;
}

Status InferEntropy(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const EntropyPlan plan, PlanEntropy(op));
  const TensorType& x = op.in("features");
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, x.dtype, {plan.rows}));
  return SetOutput(op, 1, x.dtype, x.shape);
}

// One row: the loss, and softmax - labels. `label(c)` is the probability of a class; classes
// without one do not count, however unlikely softmax makes them.
template <typename Label>
double EntropyOfRow(const double* x, int64_t classes, Label label, double* backprop) {
  double most = -INFINITY, sum = 0, loss = 0;
  for (int64_t c = 0; c < classes; ++c) most = std::max(most, x[c]);
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - most);
  for (int64_t c = 0; c < classes; ++c) {
    const double log_softmax = x[c] - most - std::log(sum);
    if (label(c) != 0) loss -= label(c) * log_softmax;
    backprop[c] = std::exp(log_softmax) - label(c);
  }
  return loss;
}

Result<std::unique_ptr<Kernel>> MakeEntropy(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(EntropyPlan plan, PlanEntropy(op));
  return MakeRealKernel(op, [plan = std::move(plan)](RealTensors& t) {
    for (int64_t row = 0; row < plan.rows; ++row) {
      const double* x = t.in[0].data() + row * plan.classes;
      double* backprop = t.out[1].data() + row * plan.classes;
      double& loss = t.out[0][static_cast<size_t>(row)];
      if (!plan.sparse) {
        const double* labels = t.in[1].data() + row * plan.row_step;
        const auto label = [&](int64_t c) { return labels[c * plan.class_step]; };
        loss = EntropyOfRow(x, plan.classes, label, backprop);
        continue;
      }
      const auto target = static_cast<int64_t>(t.in[1][static_cast<size_t>(row)]);
      if (target < 0 || target >= plan.classes) {
        return Error(Code::kInvalidArgument, "{}: label {} of row {} is not one of {} classes",
                     plan.who, target, row, plan.classes);
      }
      const auto label = [&](int64_t c) { return c == target ? 1.0 : 0.0; };
      loss = EntropyOfRow(x, plan.classes, label, backprop);
    }
    return Status();
  });
}

// ---- PReluGrad ----

// One weight for all, or one for each channel (dimension 1).
Status InferPReluGrad(OpContext& op) {
  for (const PortSpec& port : op.schema().inputs) {
    NPUMESH_RETURN_IF_ERROR(ExpectReal(op, port.name));
  }
  NPUMESH_RETURN_IF_ERROR(ExpectSameShape(op, "grads", "features"));
  const Shape& x = op.in("features").shape;
  const TensorType& weights = op.in("weights");
  if (weights.shape.elements() != 1) {
    NPUMESH_RETURN_IF_ERROR(ExpectCount(op, "weights", x.rank() < 2 ? 1 : x[1], "channel"));
  }
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("grads").dtype, x));
  return SetOutput(op, 1, weights.dtype, weights.shape);
}

Result<std::unique_ptr<Kernel>> MakePReluGrad(const OpContext& op) {
  const Shape& x = op.in("features").shape;
  const int64_t inner = x.rank() < 2 ? 1 : ElementsBetween(x, 2, x.rank());
  return MakeRealKernel(op, [inner = static_cast<size_t>(inner)](RealTensors& t) {
    const size_t weights = t.in[2].size();
    for (size_t i = 0; i < t.in[0].size(); ++i) {
      const double g = t.in[0][i], value = t.in[1][i];
      const size_t w = weights == 1 ? 0 : i / inner % weights;
      t.out[0][i] = value > 0 ? g : g * t.in[2][w];
      if (!(value > 0)) t.out[1][w] += g * value;
    }
    return Status();
  });
}

}  // namespace

void RegisterLossOps(OpRegistry& registry) {
  const std::vector<AttrSpec> nll = {{"reduction", AttrValue::String("mean")},
                                     {"ignore_index", AttrValue::Int(-100)}};
  registry.Add({.schema = {"NLLLoss",
                           {{"x"}, {"target"}, {"weight", PortKind::kOptional}},
                           {{"y"}, {"total_weight"}},
                           nll},
                .infer = InferNllLoss,
                .make_kernel = MakeNllLoss});
  registry.Add({.schema = {"NLLLossGrad",
                           {{"x"}, {"y_grad"}, {"target"}, {"weight"}, {"total_weight"}},
                           {{"x_grad"}},
                           nll},
                .infer = InferNllLossGrad,
                .make_kernel = MakeNllLossGrad});
  for (const std::string_view type :
       {"SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"}) {
    registry.Add({.schema = {type, {{"features"}, {"labels"}}, {{"loss"}, {"backprop"}}, {}},
                  .infer = InferEntropy,
                  .make_kernel = MakeEntropy});
  }
  registry.Add(
      {.schema = {"PReluGrad", {{"grads"}, {"features"}, {"weights"}}, {{"dx"}, {"da"}}, {}},
       .infer = InferPReluGrad,
       .make_kernel = MakePReluGrad});
}

}  // namespace npumesh
