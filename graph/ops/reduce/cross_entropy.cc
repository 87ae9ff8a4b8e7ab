// CrossEntropyLoss and CrossEntropyLossGrad: the logarithm of a softmax and the loss of its target
// in one, as the vendor's library has them for torch.
//
//   log_prob[n,c] = x[n,c] - log(sum_c exp(x[n,c]))
//   l[n] = -(1 - s) w[y] log_prob[n,y] - s / C sum_c w[c] log_prob[n,c]       s: label_smoothing
//
// Samples whose target is ignore_index have no loss; the mean is over the weights w[y] of others.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/ops/core/check.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/double_kernel.h"

namespace npumesh {
namespace {

struct CrossEntropyPlan : Planned {
  int64_t samples = 0, classes = 0, ignored = 0;
  double smoothing = 0;
  bool sums = true, means = false;
  size_t weight_slot = 2;
};

// `logits`: a port of [N,C].
CrossEntropyPlan PlanEntropy(const OpContext& op, std::string_view logits, Check& check) {
  CrossEntropyPlan plan;
  const auto [samples, classes] = check.Matrix(logits, kFloatsAndDouble);
  check.TypeAndShape("target", kIndices, {samples});
  check.TypeAndShape("weight", kFloatsAndDouble, {classes});
  check.OneOf("reduction", {"none", "mean", "sum"});
  if (!check.ok()) return plan;
  plan.samples = samples;
  plan.classes = classes;
  plan.ignored = op.attr_int("ignore_index");
  plan.smoothing = static_cast<double>(op.attr_float("label_smoothing"));
  check.That(plan.smoothing >= 0 && plan.smoothing <= 1, "label_smoothing is {}, expected 0 to 1",
             plan.smoothing);
  plan.sums = op.attr_string("reduction") != "none";
  plan.means = op.attr_string("reduction") == "mean";
  plan.weight_slot = static_cast<size_t>(op.slot("weight"));
  return plan;
}

// Calls visit(sample, target, weight of the target) for the samples that are not ignored.
template <typename Visit>
Status ForTargets(const CrossEntropyPlan& plan, const std::vector<double>& targets,
                  const std::vector<double>& weights, Visit visit) {
  for (int64_t n = 0; n < plan.samples; ++n) {
    const auto target = static_cast<int64_t>(targets[static_cast<size_t>(n)]);
    if (target == plan.ignored) continue;
    if (target < 0 || target >= plan.classes) {
      return Error(Code::kInvalidArgument, "{}: target {} of sample {} is not one of {} classes",
                   plan.who, target, n, plan.classes);
    }
    visit(static_cast<size_t>(n), static_cast<size_t>(target),
          weights.empty() ? 1.0 : weights[static_cast<size_t>(target)]);
  }
  return Status();
}

CrossEntropyPlan PlanCrossEntropy(const OpContext& op, Check& check) {
  CrossEntropyPlan plan = PlanEntropy(op, "input", check);
  const TensorType& x = op.in("input");
  const TensorType none = {x.dtype, {0}};  // zloss and what it needs for its gradient
  plan.outputs = {{x.dtype, {plan.sums ? 1 : plan.samples}}, x, none, none};
  return plan;
}

// log_prob of one sample.
void LogSoftmaxOf(const double* x, size_t classes, double* log_prob) {
  const double most = classes > 0 ? *std::max_element(x, x + classes) : 0;
  double sum = 0;
  for (size_t c = 0; c < classes; ++c) sum += std::exp(x[c] - most);
  const double logarithm = most + std::log(sum);
  for (size_t c = 0; c < classes; ++c) log_prob[c] = x[c] - logarithm;
}

Status RunCrossEntropy(const CrossEntropyPlan& plan, RealTensors& t) {
  const auto classes = static_cast<size_t>(plan.classes);
  std::vector<double>& log_prob = t.out[1];
  for (size_t n = 0; n < static_cast<size_t>(plan.samples); ++n) {
    LogSoftmaxOf(t.in[0].data() + n * classes, classes, log_prob.data() + n * classes);
  }
  const std::vector<double>& weights = t.in[plan.weight_slot];
  double sum = 0, total = 0;
  NPUMESH_RETURN_IF_ERROR(
      ForTargets(plan, t.in[1], weights, [&](size_t n, size_t target, double weight) {
        const double* row = log_prob.data() + n * classes;
        const double all = weights.empty()
                               ? std::accumulate(row, row + classes, 0.0)
                               : std::inner_product(row, row + classes, weights.data(), 0.0);
        const double loss = -(1 - plan.smoothing) * weight * row[target] -
                            plan.smoothing / static_cast<double>(classes) * all;
        if (!plan.sums) t.out[0][n] = loss;
        sum += loss;
        total += weight;
      }));
  if (plan.sums) t.out[0][0] = plan.means ? sum / total : sum;
  return Status();
}

CrossEntropyPlan PlanCrossEntropyGrad(const OpContext& op, Check& check) {
  CrossEntropyPlan plan = PlanEntropy(op, "log_prob", check);
  check.Keep(
      ExpectCount(op, "grad_loss", plan.sums ? 1 : plan.samples, plan.sums ? "loss" : "sample"));
  check.NotFed({"grad_zloss", "lse_for_zloss"});
  plan.outputs = {{op.in("grad_loss").dtype, op.in("log_prob").shape}};
  return plan;
}

// Inputs grad_loss, log_prob, target, weight.
Status RunCrossEntropyGrad(const CrossEntropyPlan& plan, RealTensors& t) {
  const auto classes = static_cast<size_t>(plan.classes);
  const std::vector<double>& weights = t.in[plan.weight_slot];
  double total = 0;
  NPUMESH_RETURN_IF_ERROR(
      ForTargets(plan, t.in[2], weights, [&](size_t, size_t, double weight) { total += weight; }));
  const double all = weights.empty() ? static_cast<double>(classes)
                                     : std::accumulate(weights.begin(), weights.end(), 0.0);
  const double share = plan.smoothing / static_cast<double>(classes);
  return ForTargets(plan, t.in[2], weights, [&](size_t n, size_t target, double weight) {
    const double slope = t.in[0][plan.sums ? 0 : n] / (plan.means ? total : 1);
    const double* log_prob = t.in[1].data() + n * classes;
    double* dx = t.out[0].data() + n * classes;
    for (size_t c = 0; c < classes; ++c) {
      const double p = std::exp(log_prob[c]), w = weights.empty() ? 1.0 : weights[c];
      const double hit = c == target ? 1.0 : 0.0;
      dx[c] = slope * ((1 - plan.smoothing) * weight * (p - hit) + share * (all * p - w));
    }
  });
}

}  // namespace

void RegisterCrossEntropyOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kBlack);
  registry.Add(DefineReal<PlanCrossEntropy, RunCrossEntropy>(
      "CrossEntropyLoss(input, target, weight?; reduction=\"mean\", ignore_index=-100, "
      "label_smoothing=0.0, lse_square_scale_for_zloss==0.0, return_zloss==false) -> loss, "
      "log_prob, zloss, lse_for_zloss"));
  registry.Add(DefineReal<PlanCrossEntropyGrad, RunCrossEntropyGrad>(
      "CrossEntropyLossGrad(grad_loss, log_prob, target, weight?, grad_zloss?, lse_for_zloss?; "
      "reduction=\"mean\", ignore_index=-100, label_smoothing=0.0, "
      "lse_square_scale_for_zloss==0.0) -> x_grad"));
}

}  // namespace npumesh
