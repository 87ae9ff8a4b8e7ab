// GroupedMatmul: one product for each group of rows, of the inner dimension, or of tensors.
//
// Which rows belong to a group is read from group_list at run time. Rows after the last group are
// unspecified; they are zero here. A list of one tensor of shape [0] stands for an absent one.
#include "graph/ops/quant/grouped_matmul.h"

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

void Store(const GroupedPlan& plan, const KernelArgs& args, const Group& group,
           const SumSegment& segment, void* to, int64_t element) {
  if (plan.y_dtype == DataType::kInt32) {
    group.dequant.AddIntegers(args, segment, static_cast<int32_t*>(to) + element);
    return;
  }
  float* row = plan.results(args);
  group.dequant.Apply(args, segment, plan.factors(args), row);
  if (plan.activation != Activation::kNone) {
    for (int64_t i = 0; i < segment.count; ++i) {
      row[i] = static_cast<float>(Activated(plan.activation, static_cast<double>(row[i])));
    }
  }
  StoreNumbers(plan.y_dtype, row, to, element, segment.count);
}

// What is multiplied of a group, and where its results go.
struct PartOfGroup {
  int64_t m = 0, k = 0;
  int64_t x = 0, w = 0;  // elements of the operands of the group where it begins
  int64_t y = 0;         // element of the output where it begins
  int64_t row = 0;       // of the whole x
  size_t port = 0;
};

Status Multiply(const GroupedPlan& plan, const KernelArgs& args, const Group& group,
                const PartOfGroup& part) {
  // A part of the inner dimension has some elements of each row of x.
  const StoredMatrix x = {plan.x_dtype, args.in[group.x_slot], part.x, plan.transposed_x,
                          plan.transposed_x ? 0 : group.k};
  const StoredMatrix w = {plan.w_dtype, args.in[group.w_slot], group.w_first + part.w,
                          plan.transposed_w};
  const auto take = [&](SumSegment segment) {
    const int64_t element = part.y + segment.row * group.n + segment.first;
    segment.row += part.row;
    Store(plan, args, group, segment, args.out[part.port], element);
  };
  return BlockedProduct(part.k, plan.integers)
      .Run(args, part.m, group.n, x, w, group.weight_scale, take);
}

Status RunTensors(const GroupedPlan& plan, const KernelArgs& args) {
  int64_t first = 0;
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const Group& group = plan.groups[i];
    PartOfGroup all = {.m = group.m, .k = group.k};
    all.y = plan.joined ? first : 0;
    all.port = plan.joined ? 0 : i;
    NPUMESH_RETURN_IF_ERROR(Multiply(plan, args, group, all));
    first += group.m * group.n;
  }
  return Status();
}

// `count` rows of x, or elements of the inner dimension, from `first` on, for group `index`.
PartOfGroup PartOf(const GroupedPlan& plan, const Group& group, int64_t index, int64_t first,
                   int64_t count) {
  if (plan.split == Split::kRows) {
    return {.m = count, .k = group.k, .x = first * group.k, .y = first * group.n, .row = first};
  }
  return {.m = group.m,
          .k = count,
          .x = plan.transposed_x ? first * group.m : first,
          .w = first * group.n,
          .y = index * group.m * group.n};
}

// What an entry of group_list says: the group, and how many rows (or elements of k) it has.
struct Entry {
  int64_t group, count;
};

// List types: 0 prefix sums, 1 counts, 2 pairs of a group and its count. `first`: where it begins.
Entry EntryOf(const GroupedPlan& plan, const KernelArgs& args, int64_t entry, int64_t first) {
  const auto at = [&](int64_t index) { return plan.list.At(args, index); };
  if (plan.list_type == 2) return {at(2 * entry), at(2 * entry + 1)};
  return {entry, plan.list_type == 0 ? at(entry) - first : at(entry)};
}

Status RunGrouped(const GroupedPlan& plan, const KernelArgs& args) {
  const ThreadCount threads(plan.threads);
  if (plan.split == Split::kTensors) return RunTensors(plan, args);
  ClearOutput(plan, args, 0);
  const int64_t length = plan.split == Split::kRows ? plan.groups[0].m : plan.groups[0].k;
  int64_t first = 0;
  for (int64_t entry = 0; entry < plan.entries(); ++entry) {
    const auto [group, count] = EntryOf(plan, args, entry, first);
    if (group < 0 || group >= static_cast<int64_t>(plan.groups.size()) || count < 0 ||
        count > length - first) {
      return Error(Code::kInvalidArgument,
                   "{}: entry {} of group_list gives {} to group {} after {}, there are {} and {} "
                   "groups",
                   plan.who, entry, count, group, first, length, plan.groups.size());
    }
    const Group& own = plan.groups[static_cast<size_t>(group)];
    NPUMESH_RETURN_IF_ERROR(Multiply(plan, args, own, PartOf(plan, own, group, first, count)));
    first += count;
  }
  return Status();
}

}  // namespace

void RegisterGroupedMatmulOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kKept);
  registry.Add(Define<PlanGrouped, RunGrouped>(
      "GroupedMatmul(x..., weight..., bias..., scale..., offset..., antiquant_scale..., "
      "antiquant_offset..., group_list?, per_token_scale?; split_item=0, dtype=0, "
      "transpose_weight=false, transpose_x=false, group_type=-1, group_list_type=0, act_type=0, "
      "tuning_config=[0]) -> y..."));
}

}  // namespace npumesh
