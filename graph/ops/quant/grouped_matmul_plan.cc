#include <algorithm>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/quant/grouped_matmul.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

// The tensors of a dynamic input. One vector without elements stands for an empty list. A matrix
// without rows does not: it is the x of a rank to which no token went.
std::vector<int> SlotsOf(const OpContext& op, std::string_view port) {
  std::vector<int> slots;
  for (int i = 0; i < op.count(port); ++i) slots.push_back(op.slot(port) + i);
  if (slots.size() != 1) return slots;
  const Shape& shape = op.in(slots[0]).shape;
  if (shape.rank() < 2 && shape.elements() == 0) slots.clear();
  return slots;
}

// The factors of each group: from a tensor for each, or equal parts of one.
std::vector<Factors> FactorsOfGroups(Check& check, const OpContext& op, std::string_view port,
                                     size_t groups) {
  const std::vector<int> slots = SlotsOf(op, port);
  std::vector<Factors> factors(groups);
  const bool shared = slots.size() == 1;
  check.That(slots.empty() || shared || slots.size() == groups, "{} has {} tensors for {} groups",
             port, slots.size(), groups);
  if (!check.ok() || slots.empty()) return factors;
  for (size_t i = 0; i < groups; ++i) {
    const Factors all = check.Take(Factors::OfSlot(op, slots[shared ? 0 : i]));
    factors[i] = shared ? all.Part(static_cast<int64_t>(i), static_cast<int64_t>(groups)) : all;
  }
  return factors;
}

// ---- sizes ----

void ReadSplit(Check& check, const OpContext& op, GroupedPlan& plan) {
  const int64_t type = op.attr_int("group_type"), item = op.attr_int("split_item");
  plan.transposed_x = op.attr_bool("transpose_x");
  plan.transposed_w = op.attr_bool("transpose_weight");
  plan.split = type == 0 ? Split::kRows : type == 2 ? Split::kInner : Split::kTensors;
  plan.joined = item >= 2 || plan.split == Split::kInner;
  check.Type("group_list", kIndices);
  plan.list = Integers::Of(op, "group_list");
  plan.list_type = op.attr_int("group_list_type");
  const bool known = (type == -1 || type == 0 || type == 2) && item >= 0 && item <= 3 &&
                     plan.list_type >= 0 && plan.list_type <= 2;
  const bool listed = plan.split == Split::kTensors || plan.list.given();
  const bool turned = (plan.split == Split::kRows && plan.transposed_x) ||
                      (plan.split == Split::kInner && plan.transposed_w);
  check.Supported(
      known && listed && !turned && (plan.split != Split::kRows || plan.joined),
      "group_type {}, split_item {}, group_list_type {}{}{}; expected group_type -1, 0 or 2, "
      "for 0 a split_item of 2 or 3, a group_list where one tensor is split, and the split "
      "dimension not transposed away",
      type, item, plan.list_type, listed ? "" : " without group_list",
      turned ? " with a transposed operand" : "");
}

// Weights: [K, N] each, or one [E, K, N].
void AddWeights(Check& check, const OpContext& op, const std::vector<int>& slots,
                GroupedPlan& plan) {
  const bool stacked =
      plan.split == Split::kRows && slots.size() == 1 && op.in(slots[0]).shape.rank() == 3;
  const int64_t count = stacked ? op.in(slots[0]).shape[0] : static_cast<int64_t>(slots.size());
  for (int64_t i = 0; i < count; ++i) {
    Group group;
    group.w_slot = slots[stacked ? 0 : static_cast<size_t>(i)];
    const TensorType& w = op.in(group.w_slot);
    const int front = stacked ? 1 : 0;
    check.That(w.shape.rank() == 2 + front, "weight {} is {}, expected a matrix", i, w);
    if (!check.ok()) return;
    const int64_t columns = w.shape[front + 1] * (w.dtype == DataType::kInt32 ? 8 : 1);
    group.k = plan.transposed_w ? columns : w.shape[front];
    group.n = plan.transposed_w ? w.shape[front] : columns;
    group.w_first = stacked ? i * group.k * group.n : 0;
    plan.groups.push_back(group);
  }
  // Groups of the inner dimension share both operands; their number is that of group_list.
  if (plan.split != Split::kInner || plan.groups.empty()) return;
  plan.groups.resize(static_cast<size_t>(plan.entries()), plan.groups[0]);
}

// The dimensions in front of the last one are rows.
void AddInputs(Check& check, const OpContext& op, const std::vector<int>& slots,
               GroupedPlan& plan) {
  const bool each = plan.split == Split::kTensors;
  check.Supported(
      slots.size() == (each ? plan.groups.size() : 1),
      "group_type {} with {} tensors x and {} weights; expected as many, or one x to be "
      "split",
      op.attr_int("group_type"), slots.size(), plan.groups.size());
  for (size_t i = 0; check.ok() && i < plan.groups.size(); ++i) {
    Group& group = plan.groups[i];
    group.x_slot = slots[each ? i : 0];
    const TensorType& x = op.in(group.x_slot);
    check.That(x.shape.rank() >= 2, "x {} is {}, expected a matrix", i, x);
    if (!check.ok()) return;
    int64_t columns = x.shape.dims().back();
    group.m = ElementsBetween(x.shape, 0, x.shape.rank() - 1);
    if (plan.transposed_x) std::swap(group.m, columns);
    check.That(columns == group.k, "x {} and weight {} of group {} cannot be multiplied", x,
               op.in(group.w_slot), i);
  }
}

// ---- types and factors ----

// The private numbering of the attribute dtype.
DataType OutputType(Check& check, const GroupedPlan& plan) {
  constexpr DataType kTypes[] = {DataType::kFloat16, DataType::kBfloat16, DataType::kInt32,
                                 DataType::kFloat};
  if (!plan.integers) return plan.x_dtype;
  const int64_t number = check.Between("dtype", -1, 3);
  return check.ok() && number >= 0 ? kTypes[number] : plan.x_dtype;
}

void ReadTypes(Check& check, const OpContext& op, DataType x, DataType w, GroupedPlan& plan) {
  constexpr Activation kActivations[] = {Activation::kNone,     Activation::kRelu,
                                         Activation::kGelu,     Activation::kNone,
                                         Activation::kFastGelu, Activation::kSilu};
  plan.x_dtype = x;
  plan.w_dtype = w == DataType::kInt32 ? DataType::kInt4 : w;
  plan.integers = kQuantised.Contains(x) && kQuantised.Contains(plan.w_dtype);
  const bool floats = kFloats.Contains(x) && (w == x || kQuantised.Contains(plan.w_dtype));
  check.Supported(plan.integers || floats, "products of {} and {} are not available", Name(x),
                  Name(plan.w_dtype));
  const int64_t type = op.attr_int("act_type");
  const bool known = type >= 0 && type <= 5 && type != 3;
  check.Supported(known, "act_type {}, expected 0, 1, 2, 4 or 5", type);
  plan.activation = kActivations[known ? type : 0];
  plan.y_dtype = OutputType(check, plan);
}

void SetWeightScale(Check& check, const Factors& scale, const Factors& offset, bool transposed,
                    Group& group) {
  const int64_t parts = group.n == 0 ? 1 : std::max<int64_t>(scale.count() / group.n, 1);
  check.That(scale.given() && scale.count() == parts * group.n && group.k % parts == 0 &&
                 (!offset.given() || offset.count() == scale.count()),
             "{} antiquant scales and {} offsets for weights of {} x {}", scale.count(),
             offset.count(), group.k, group.n);
  group.weight_scale = {.scale = scale,
                        .offset = offset,
                        .rows = group.k / parts,
                        .by_rows = transposed ? 1 : group.n,
                        .by_column = transposed ? parts : 1};
}

void ReadFactors(Check& check, const OpContext& op, GroupedPlan& plan) {
  const size_t count = plan.groups.size();
  const auto bias = FactorsOfGroups(check, op, "bias", count);
  const auto scale = FactorsOfGroups(check, op, "scale", count);
  const auto offset = FactorsOfGroups(check, op, "offset", count);
  const auto weight_scale = FactorsOfGroups(check, op, "antiquant_scale", count);
  const auto weight_offset = FactorsOfGroups(check, op, "antiquant_offset", count);
  const Factors row_scale = check.Take(Factors::Of(op, "per_token_scale"));
  const bool widens = kFloats.Contains(plan.x_dtype) && kQuantised.Contains(plan.w_dtype);
  for (size_t i = 0; i < count; ++i) {
    Group& group = plan.groups[i];
    Dequant& dequant = group.dequant;
    dequant.scale = scale[i];
    dequant.row_scale = row_scale;
    const bool integer_bias = bias[i].given() && bias[i].dtype() == DataType::kInt32;
    (integer_bias ? dequant.before : dequant.after) = bias[i];
    if (!dequant.after.given()) dequant.after = offset[i];
    check.Keep(CheckFactors(op, bias[i], "bias", group.n));
    check.Keep(CheckFactors(op, dequant.scale, "scale", group.n));
    check.Keep(CheckFactors(op, offset[i], "offset", group.n));
    if (plan.split == Split::kRows) {
      check.Keep(CheckFactors(op, row_scale, "per_token_scale", group.m));
    }
    if (widens) SetWeightScale(check, weight_scale[i], weight_offset[i], plan.transposed_w, group);
  }
}

// ---- outputs ----

void SetOutputTypes(Check& check, const OpContext& op, GroupedPlan& plan) {
  const Group& first = plan.groups[0];
  const auto groups = static_cast<int64_t>(plan.groups.size());
  if (plan.split == Split::kInner) {
    plan.outputs = {{plan.y_dtype, {groups, first.m, first.n}}};
    return;
  }
  int64_t rows = plan.split == Split::kRows ? first.m : 0;
  for (const Group& group : plan.groups) {
    if (plan.split == Split::kRows) break;
    rows += group.m;
    check.That(!plan.joined || group.n == first.n, "groups of {} and {} columns cannot be joined",
               first.n, group.n);
    Shape y = op.in(group.x_slot).shape;
    if (plan.transposed_x) y = {group.m, group.n};
    y.mutable_dims().back() = group.n;
    if (!plan.joined) plan.outputs.push_back({plan.y_dtype, std::move(y)});
  }
  if (plan.joined) plan.outputs = {{plan.y_dtype, {rows, first.n}}};
}

}  // namespace

GroupedPlan PlanGrouped(const OpContext& op, Check& check) {
  GroupedPlan plan;
  ReadSplit(check, op, plan);
  const std::vector<int> x = SlotsOf(op, "x"), w = SlotsOf(op, "weight");
  check.That(!x.empty() && !w.empty() && (plan.split != Split::kInner || w.size() == 1),
             "{} tensors x and {} weights", x.size(), w.size());
  if (!check.ok()) return plan;
  ReadTypes(check, op, op.in(x[0]).dtype, op.in(w[0]).dtype, plan);
  AddWeights(check, op, w, plan);
  AddInputs(check, op, x, plan);
  const auto groups = static_cast<int64_t>(plan.groups.size());
  if (plan.split != Split::kTensors) {
    const int64_t numbers = plan.list.count();
    check.That(plan.list_type == 2 ? numbers % 2 == 0 : numbers <= groups,
               "group_list is {} for {} groups", op.in(plan.list.slot()), groups);
  }
  check.That(groups > 0, "no groups");
  if (!check.ok()) return plan;
  ReadFactors(check, op, plan);
  SetOutputTypes(check, op, plan);
  uint64_t product = 0;
  for (const Group& group : plan.groups) {
    product = std::max(product, BlockedProduct(group.k, true).scratch_bytes());
  }
  plan.TakeRoom(op, product);
  return plan;
}

}  // namespace npumesh
