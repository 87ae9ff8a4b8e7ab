// GroupedMatmul: one product for each group of rows, of the inner dimension, or of tensors. Ops
// reference 5.6.
//
// Which rows belong to a group is read from group_list at run time. Rows behind the last group are
// unspecified; they are zero here. A list of one tensor of shape [0] stands for an absent one.
#include "graph/ops/grouped_matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

Status InferGrouped(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Grouped plan, PlanGrouped(op));
  const Group& first = plan.groups[0];
  if (plan.split == Split::kInner) {
    return SetOutput(op, 0, plan.y_dtype,
                     {static_cast<int64_t>(plan.groups.size()), first.m, first.n});
  }
  if (plan.split == Split::kRows) return SetOutput(op, 0, plan.y_dtype, {first.m, first.n});
  int64_t rows = 0;
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const Group& group = plan.groups[i];
    rows += group.m;
    if (plan.joined && group.n != first.n) {
      return Error(Code::kInvalidArgument, "{}: groups of {} and {} columns cannot be joined",
                   op.Who(), first.n, group.n);
    }
    if (plan.joined) continue;
    Shape y = op.in(group.x_slot).shape;
    if (plan.transposed_x) y = {group.m, group.n};
    y.mutable_dims().back() = group.n;
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, static_cast<int>(i), plan.y_dtype, std::move(y)));
  }
  return plan.joined ? SetOutput(op, 0, plan.y_dtype, {rows, first.n}) : Status();
}

// The activations of act_type on a segment.
void Activate(int64_t type, float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto v = static_cast<double>(x[i]);
    double y = v;
    if (type == 1) y = v < 0 ? 0 : v;
    if (type == 2) y = v / (1 + std::exp(-2 * 0.7978845608028654 * (v + 0.044715 * v * v * v)));
    if (type == 4)
      y = v * std::exp(0.851 * (v - std::fabs(v))) / (1 + std::exp(-1.702 * std::fabs(v)));
    if (type == 5) y = v / (1 + std::exp(-v));
    x[i] = static_cast<float>(y);
  }
}

class GroupedKernel final : public Kernel {
 public:
  GroupedKernel(const OpContext& op, Grouped plan)
      : who_(op.Who()), plan_(std::move(plan)), threads_(op.threads()) {
    for (const Group& group : plan_.groups) {
      product_bytes_ = std::max(product_bytes_, BlockedProduct(group.k, true).scratch_bytes());
    }
    for (int i = 0; i < op.outputs(); ++i) out_bytes_.push_back(op.out(i).bytes());
    if (plan_.list_slot >= 0) entries_ = op.in(plan_.list_slot).shape.elements();
    if (plan_.list_type == 2) entries_ /= 2;
  }

  // The product's, and two segments: factors and results.
  uint64_t scratch_bytes() const override {
    return product_bytes_ + 2 * kBlockColumns * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const ProductThreads threads(threads_);
    if (plan_.split == Split::kTensors) return RunTensors(args);
    if (out_bytes_[0] > 0) std::memset(args.out[0], 0, out_bytes_[0]);
    const Group& any = plan_.groups[0];
    const int64_t room = plan_.split == Split::kRows ? any.m : any.k;
    int64_t first = 0;
    for (int64_t entry = 0; entry < entries_; ++entry) {
      const int64_t group = plan_.list_type == 2 ? Entry(args, 2 * entry) : entry;
      const int64_t count = plan_.list_type == 0   ? Entry(args, entry) - first
                            : plan_.list_type == 1 ? Entry(args, entry)
                                                   : Entry(args, 2 * entry + 1);
      const bool fits = group >= 0 && group < static_cast<int64_t>(plan_.groups.size()) &&
                        count >= 0 && count <= room - first;
      if (!fits) {
        return Error(
            Code::kInvalidArgument,
            "{}: entry {} of group_list gives {} to group {} after {}, there are {} and {} "
            "groups",
            who_, entry, count, group, first, room, plan_.groups.size());
      }
      NPUMESH_RETURN_IF_ERROR(plan_.split == Split::kRows ? RunRows(args, group, first, count)
                                                          : RunInner(args, group, first, count));
      first += count;
    }
    return Status();
  }

 private:
  int64_t Entry(const KernelArgs& args, int64_t index) const {
    return IntegerAt(plan_.list_dtype, args.in[plan_.list_slot], index);
  }

  StoredMatrix X(const KernelArgs& args, const Group& group, int64_t first) const {
    return {plan_.x_dtype, args.in[group.x_slot], first, plan_.transposed_x};
  }
  StoredMatrix W(const KernelArgs& args, const Group& group, int64_t first) const {
    return {plan_.w_dtype, args.in[group.w_slot], group.w_first + first, plan_.transposed_w};
  }

  Status RunTensors(const KernelArgs& args) const {
    int64_t first = 0;
    for (size_t i = 0; i < plan_.groups.size(); ++i) {
      const Group& group = plan_.groups[i];
      const Target target{args.out[plan_.joined ? 0 : i], plan_.joined ? first : 0, 0};
      NPUMESH_RETURN_IF_ERROR(
          Multiply(args, group, group.m, group.k, X(args, group, 0), W(args, group, 0), target));
      first += group.m * group.n;
    }
    return Status();
  }

  Status RunRows(const KernelArgs& args, int64_t index, int64_t first, int64_t count) const {
    const Group& group = plan_.groups[static_cast<size_t>(index)];
    return Multiply(args, group, count, group.k, X(args, group, first * group.k), W(args, group, 0),
                    {args.out[0], first * group.n, first});
  }

  Status RunInner(const KernelArgs& args, int64_t index, int64_t first, int64_t count) const {
    const Group& group = plan_.groups[static_cast<size_t>(index)];
    StoredMatrix x = X(args, group, plan_.transposed_x ? first * group.m : first);
    if (!plan_.transposed_x) x.stride = group.k;
    return Multiply(args, group, group.m, count, x, W(args, group, first * group.n),
                    {args.out[0], index * group.m * group.n, 0});
  }

  // Where results go: element of row 0, and the row of the whole x that row 0 is.
  struct Target {
    void* data;
    int64_t first;
    int64_t row;
  };

  Status Multiply(const KernelArgs& args, const Group& group, int64_t m, int64_t k,
                  const StoredMatrix& x, const StoredMatrix& w, const Target& target) const {
    const BlockedProduct product(k, plan_.integers);
    const auto take = [&](SumSegment segment) {
      const int64_t element = target.first + segment.row * group.n + segment.first;
      segment.row += target.row;
      Store(args, group, segment, target.data, element);
    };
    return product.Run(args, m, group.n, x, w, group.weight_scale, take);
  }

  void Store(const KernelArgs& args, const Group& group, const SumSegment& segment, void* to,
             int64_t element) const {
    if (plan_.y_dtype == DataType::kInt32) {
      group.dequant.AddIntegers(args, segment, static_cast<int32_t*>(to) + element);
      return;
    }
    auto* room = reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + product_bytes_);
    float* row = room + kBlockColumns;
    group.dequant.Apply(args, segment, room, row);
    if (plan_.activation != 0) Activate(plan_.activation, row, segment.count);
    StoreNumbers(plan_.y_dtype, row, to, element, segment.count);
  }

  std::string who_;
  Grouped plan_;
  int threads_;
  uint64_t product_bytes_ = 0;
  std::vector<uint64_t> out_bytes_;
  int64_t entries_ = 0;
};

Result<std::unique_ptr<Kernel>> MakeGrouped(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Grouped plan, PlanGrouped(op));
  return std::unique_ptr<Kernel>(std::make_unique<GroupedKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterGroupedMatmulOps(OpRegistry& registry) {
  const auto list = [](std::string_view name) { return PortSpec{name, PortKind::kDynamic}; };
  registry.Add({.schema = {"GroupedMatmul",
                           {list("x"),
                            list("weight"),
                            list("bias"),
                            list("scale"),
                            list("offset"),
                            list("antiquant_scale"),
                            list("antiquant_offset"),
                            {"group_list", PortKind::kOptional},
                            {"per_token_scale", PortKind::kOptional}},
                           {{"y", PortKind::kDynamic}},
                           {{"split_item", AttrValue::Int(0)},
                            {"dtype", AttrValue::Int(0)},
                            {"transpose_weight", AttrValue::Bool(false)},
                            {"transpose_x", AttrValue::Bool(false)},
                            {"group_type", AttrValue::Int(-1)},
                            {"group_list_type", AttrValue::Int(0)},
                            {"act_type", AttrValue::Int(0)},
                            {"tuning_config", AttrValue::Ints({0})}}},
                .infer = InferGrouped,
                .make_kernel = MakeGrouped});
}

}  // namespace npumesh
