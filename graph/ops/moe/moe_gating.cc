// MoeGatingTopKSoftmax, MoeGatingTopKSoftmaxV2 and MoeGatingTopK: which experts a token goes to,
// and with what weight.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/activations.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// The indices of the `k` largest of `count` values, largest first, a NaN above all. `order` is room
// for `count` of them; the first k are the result. REQUIRES: k <= count.
void LargestFirst(const float* values, int64_t count, int64_t k, int32_t* order) {
  std::iota(order, order + count, 0);
  const auto above = [values](int32_t a, int32_t b) {
    const bool a_nan = std::isnan(values[a]);
    const bool b_nan = std::isnan(values[b]);
    if (a_nan != b_nan) return a_nan;
    if (!a_nan && values[a] != values[b]) return values[a] > values[b];
    return a < b;
  };
  std::partial_sort(order, order + k, order + count, above);
}

// Scores of the experts for each row, and k of them that are chosen.
struct Scores : Planned {
  InputRows from;
  int64_t experts = 0, k = 0;
  // The scores, then their softmax or what stands for it, and that of the chosen ones.
  Workspace<float> p, chosen;
  Workspace<int32_t> order;
};

// x as [.., experts]. The first two outputs are the weights and the experts.
Scores ReadScores(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  Scores plan;
  plan.k = op.attr_int("k");
  const bool fits = kFloats.Contains(x.dtype) && x.shape.rank() >= 2 && plan.k >= 1 &&
                    plan.k <= x.shape.dims().back();
  check.That(fits, "x is {} and k {}; expected {} [..,E] with E of at least k", x, plan.k, kFloats);
  if (!check.ok()) return plan;
  plan.from = InputRows::Of(check, op, "x");
  plan.experts = plan.from.width;
  const Shape chosen = WithLast(x.shape, plan.k);
  plan.outputs = {{x.dtype, chosen}, {DataType::kInt32, chosen}};
  plan.p = plan.scratch.Floats(plan.experts);
  plan.chosen = plan.scratch.Floats(plan.k);
  plan.order = plan.scratch.Take<int32_t>(plan.experts);
  return plan;
}

// Chooses the experts that are largest in `by`; `chosen` gets their p. Returns their ids.
int32_t* Choose(const Scores& plan, const KernelArgs& args, int64_t row, const float* by) {
  auto* const ids = static_cast<int32_t*>(args.out[1]) + row * plan.k;
  LargestFirst(by, plan.experts, plan.k, plan.order(args));
  std::copy_n(plan.order(args), plan.k, ids);
  for (int64_t j = 0; j < plan.k; ++j) plan.chosen(args)[j] = plan.p(args)[ids[j]];
  return ids;
}

// ---- MoeGatingTopKSoftmax, MoeGatingTopKSoftmaxV2 ----

struct SoftmaxGating : Scores {
  int finished = -1;   // slot
  bool late = false;   // softmax of the chosen ones only
  bool keeps = false;  // the softmax of all is output 2, which has no elements otherwise
};

template <bool kSecond>
SoftmaxGating PlanSoftmaxGating(const OpContext& op, Check& check) {
  SoftmaxGating plan{ReadScores(op, check)};
  if (!check.ok()) return plan;
  check.Type("finished", DataType::kBool);
  check.Elements("finished", {plan.from.count});
  plan.finished = SlotIfFed(op, "finished");
  if (kSecond) {
    plan.late = op.attr_int("renorm") == 1;
    plan.keeps = !plan.late && op.attr_bool("output_softmax_result_flag");
    plan.outputs.push_back({DataType::kFloat, plan.keeps ? op.in("x").shape : Shape{0}});
  } else {
    plan.outputs.push_back(plan.outputs[1]);
  }
  return plan;
}

template <bool kSecond>
Status RunSoftmaxGating(const SoftmaxGating& plan, const KernelArgs& args) {
  const int64_t experts = plan.experts, k = plan.k;
  float *p = plan.p(args), *chosen = plan.chosen(args);
  for (int64_t row = 0; row < plan.from.count; ++row) {
    plan.from.Load(args, row, p);
    if (!plan.late) SoftmaxRow(p, experts, p);
    int32_t* const ids = Choose(plan, args, row, p);
    if (plan.late) SoftmaxRow(chosen, k, chosen);
    StoreRow(plan.from.dtype, chosen, args.out[0], row * k, k);
    if (plan.finished >= 0 && static_cast<const uint8_t*>(args.in[plan.finished])[row] != 0) {
      std::fill_n(ids, k, static_cast<int32_t>(experts));
    }
    if constexpr (kSecond) {
      if (plan.keeps) std::copy_n(p, experts, static_cast<float*>(args.out[2]) + row * experts);
    } else {  // numbers of the choices in column order
      int32_t* to = static_cast<int32_t*>(args.out[2]) + row * k;
      for (int64_t j = 0; j < k; ++j) to[j] = static_cast<int32_t>(j * plan.from.count + row);
    }
  }
  return Status();
}

// ---- MoeGatingTopK ----

enum class Norm : uint8_t { kSoftmax, kSigmoid, kSqrtSoftplus };  // norm_type

struct Gating : Scores {
  Factors bias;
  int64_t groups = 1, kept_groups = 1;
  bool two_largest = false;  // a group counts as the sum of its two largest, not as its largest
  Norm norm = Norm::kSoftmax;
  bool divides = false;
  bool keeps = false;  // the normalised scores are output 2
  float factor = 1, epsilon = 0;
  Workspace<float> biased, biases, group_scores;
};

Gating PlanGating(const OpContext& op, Check& check) {
  Gating plan{ReadScores(op, check)};
  if (!check.ok()) return plan;
  const int64_t experts = plan.experts;
  plan.groups = op.attr_int("group_count");
  plan.kept_groups = op.attr_int("k_group");
  const int64_t norm = op.attr_int("norm_type"), mode = op.attr_int("group_select_mode");
  const bool groups_fit = plan.groups >= 1 && experts % plan.groups == 0 && plan.kept_groups >= 1 &&
                          plan.kept_groups <= plan.groups &&
                          plan.k <= plan.kept_groups * (experts / plan.groups);
  check.That(groups_fit && norm >= 0 && norm <= 2 && (mode == 0 || mode == 1),
             "{} of {} groups for {} experts and k {}, norm_type {}, group_select_mode {}",
             plan.kept_groups, plan.groups, experts, plan.k, norm, mode);
  check.Elements("bias", {experts});
  plan.bias = check.Take(Factors::Of(op, "bias"));
  check.NotFed({"input_ids", "tid2eid"});
  plan.two_largest = mode == 1;
  plan.norm = static_cast<Norm>(norm);
  plan.divides = plan.norm != Norm::kSoftmax || op.attr_int("renorm") == 1;
  plan.keeps = op.attr_bool("out_flag");
  plan.factor = op.attr_float("routed_scaling_factor");
  plan.epsilon = op.attr_float("eps");
  plan.outputs.push_back({DataType::kFloat, op.in("x").shape});
  plan.scratch.Take(experts, {&plan.biased, &plan.biases});
  plan.group_scores = plan.scratch.Floats(plan.groups);
  return plan;
}

void Normalise(Norm norm, int64_t count, float* scores) {
  if (norm == Norm::kSoftmax) return SoftmaxRow(scores, count, scores);
  for (int64_t i = 0; i < count; ++i) {
    const auto v = static_cast<double>(scores[i]);
    scores[i] = static_cast<float>(norm == Norm::kSigmoid ? Sigmoid(v) : std::sqrt(Softplus(v)));
  }
}

// Experts of all but the best groups become -inf.
void DropGroups(const Gating& plan, const KernelArgs& args, float* biased) {
  const int64_t size = plan.experts / plan.groups;
  const int64_t count = plan.two_largest ? std::min<int64_t>(2, size) : 1;
  float* const scores = plan.group_scores(args);
  int32_t* const order = plan.order(args);
  for (int64_t g = 0; g < plan.groups; ++g) {
    LargestFirst(biased + g * size, size, count, order);
    scores[g] = 0;
    for (int64_t i = 0; i < count; ++i) scores[g] += biased[g * size + order[i]];
  }
  LargestFirst(scores, plan.groups, plan.kept_groups, order);
  std::fill_n(scores, plan.groups, 0.0f);
  for (int64_t i = 0; i < plan.kept_groups; ++i) scores[order[i]] = 1;
  for (int64_t i = 0; i < plan.experts; ++i) {
    if (scores[i / size] == 0) biased[i] = -std::numeric_limits<float>::infinity();
  }
}

Status RunGating(const Gating& plan, const KernelArgs& args) {
  const int64_t experts = plan.experts, k = plan.k;
  float *p = plan.p(args), *chosen = plan.chosen(args);
  float *biased = plan.biased(args), *bias = plan.biases(args);
  if (plan.bias.given()) plan.bias.Load(args, 0, experts, bias);
  for (int64_t row = 0; row < plan.from.count; ++row) {
    plan.from.Load(args, row, p);
    Normalise(plan.norm, experts, p);
    for (int64_t i = 0; i < experts; ++i) biased[i] = p[i] + (plan.bias.given() ? bias[i] : 0.0f);
    if (plan.groups > 1) DropGroups(plan, args, biased);
    Choose(plan, args, row, biased);
    double sum = 0;
    for (int64_t j = 0; j < k; ++j) sum += static_cast<double>(chosen[j]);
    const float divisor = plan.divides ? static_cast<float>(sum) + plan.epsilon : 1.0f;
    for (int64_t j = 0; j < k; ++j) chosen[j] = chosen[j] / divisor * plan.factor;
    StoreRow(plan.from.dtype, chosen, args.out[0], row * k, k);
    float* out = static_cast<float*>(args.out[2]) + row * experts;
    for (int64_t i = 0; i < experts; ++i) out[i] = plan.keeps ? p[i] : 0.0f;
  }
  return Status();
}

}  // namespace

void RegisterMoeGatingOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kBlack);
  registry.Add(Define<PlanSoftmaxGating<false>, RunSoftmaxGating<false>>(
      "MoeGatingTopKSoftmax(x, finished?; k:int) -> y, expert_idx, row_idx"));
  registry.Add(Define<PlanSoftmaxGating<true>, RunSoftmaxGating<true>>(
      "MoeGatingTopKSoftmaxV2(x, finished?; k:int, renorm=0, output_softmax_result_flag=false) -> "
      "y, expert_idx, softmax_result"));
  registry.Add(Define<PlanGating, RunGating>(
      "MoeGatingTopK(x, bias?, input_ids?, tid2eid?; k:int, k_group=1, group_count=1, "
      "group_select_mode=0, renorm=0, norm_type=0, out_flag=false, routed_scaling_factor=1.0, "
      "eps=1e-20) -> y, expert_idx, out"));
}

}  // namespace npumesh
