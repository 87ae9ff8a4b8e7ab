// GroupedMatmul: one product for each group of rows, of the inner dimension, or of tensors.
//
// Which rows belong to a group is read from group_list at run time. Rows after the last group are
// unspecified; they are zero here. A list of one tensor of shape [0] stands for an absent one.
#include "graph/ops/quant/grouped_matmul.h"

#include "graph/ops/quant/family.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

StoredMatrix X(const GroupedPlan& plan, const KernelArgs& args, const Group& group, int64_t first) {
  return {plan.x_dtype, args.in[group.x_slot], first, plan.transposed_x};
}

StoredMatrix W(const GroupedPlan& plan, const KernelArgs& args, const Group& group, int64_t first) {
  return {plan.w_dtype, args.in[group.w_slot], group.w_first + first, plan.transposed_w};
}

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

// A product of a group, and where its results go.
struct ProductOfGroup {
  int64_t m = 0, k = 0;
  StoredMatrix x, w;
  void* to = nullptr;
  int64_t first = 0;  // element where row 0 begins
  int64_t row = 0;    // of the whole x
};

Status Multiply(const GroupedPlan& plan, const KernelArgs& args, const Group& group,
                const ProductOfGroup& product) {
  const auto take = [&](SumSegment segment) {
    const int64_t element = product.first + segment.row * group.n + segment.first;
    segment.row += product.row;
    Store(plan, args, group, segment, product.to, element);
  };
  return BlockedProduct(product.k, plan.integers)
      .Run(args, product.m, group.n, product.x, product.w, group.weight_scale, take);
}

Status RunTensors(const GroupedPlan& plan, const KernelArgs& args) {
  int64_t first = 0;
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const Group& group = plan.groups[i];
    ProductOfGroup product{group.m, group.k, X(plan, args, group, 0), W(plan, args, group, 0)};
    product.to = args.out[plan.joined ? 0 : i];
    product.first = plan.joined ? first : 0;
    NPUMESH_RETURN_IF_ERROR(Multiply(plan, args, group, product));
    first += group.m * group.n;
  }
  return Status();
}

Status RunRows(const GroupedPlan& plan, const KernelArgs& args, int64_t index, int64_t first,
               int64_t count) {
  const Group& group = plan.groups[static_cast<size_t>(index)];
  return Multiply(plan, args, group,
                  {count, group.k, X(plan, args, group, first * group.k), W(plan, args, group, 0),
                   args.out[0], first * group.n, first});
}

Status RunInner(const GroupedPlan& plan, const KernelArgs& args, int64_t index, int64_t first,
                int64_t count) {
  const Group& group = plan.groups[static_cast<size_t>(index)];
  StoredMatrix x = X(plan, args, group, plan.transposed_x ? first * group.m : first);
  if (!plan.transposed_x) x.stride = group.k;
  return Multiply(plan, args, group,
                  {group.m, count, x, W(plan, args, group, first * group.n), args.out[0],
                   index * group.m * group.n});
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
  const bool by_rows = plan.split == Split::kRows;
  const int64_t length = by_rows ? plan.groups[0].m : plan.groups[0].k;
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
    NPUMESH_RETURN_IF_ERROR(by_rows ? RunRows(plan, args, group, first, count)
                                    : RunInner(plan, args, group, first, count));
    first += count;
  }
  return Status();
}

}  // namespace

void RegisterGroupedMatmulOps(OpRegistry& registry) {
  registry.Add(Define<PlanGrouped, RunGrouped>(
      "GroupedMatmul(x..., weight..., bias..., scale..., offset..., antiquant_scale..., "
      "antiquant_offset..., group_list?, per_token_scale?; split_item=0, dtype=0, "
      "transpose_weight=false, transpose_x=false, group_type=-1, group_list_type=0, act_type=0, "
      "tuning_config=[0]) -> y..."));
}

}  // namespace npumesh
