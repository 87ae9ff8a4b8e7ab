// AllGatherMatmul and MatmulReduceScatter: rows of all ranks times this rank's weights, and the
// other way round. Ops reference 5.17.
//
// The product that is summed over the ranks stays float32 on its way and is rounded once.
#include <algorithm>

#include "graph/ops/blocked_product.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/fused_matmul.h"
#include "graph/ops/infer_checks.h"

namespace npumesh::fused {
namespace {

// The plan of an operator that gathers or scatters rows, and the ranks of its group.
struct RowsPlan {
  Local local;
  int64_t ranks = 0;
};

Result<RowsPlan> PlanRows(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectFloats(op));
  RowsPlan plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.local, PlanLocal(op));
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, hcom::MembersOf(op));
  plan.ranks = static_cast<int64_t>(members.world_ranks.size());
  const int64_t rank_size = op.attr_int("rank_size");
  const bool size_fits = rank_size == 0 || rank_size == plan.ranks;
  if (size_fits && op.in("x1").shape.rank() == 2) return plan;
  return Error(Code::kInvalidArgument,
               "{}: rank_size {} in a group of {} ranks, x1 {}; expected equal sizes and a matrix",
               op.Who(), rank_size, plan.ranks, op.in("x1").ToString());
}

Status InferGatherMatmul(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const RowsPlan plan, PlanRows(op));
  if (plan.local.transposed1 || op.attr_int("gather_index") != 0) {
    return Error(Code::kUnsupported, "{}: is_trans_a and gather_index {} are not supported",
                 op.Who(), op.attr_int("gather_index"));
  }
  const int64_t rows = plan.local.m * plan.ranks;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.local.dtype, {rows, plan.local.n}));
  const bool gives = op.attr_bool("is_gather_out");
  return SetOutput(op, 1, plan.local.dtype, gives ? Shape{rows, plan.local.k} : Shape{0});
}

class GatherMatmulKernel final : public Kernel {
 public:
  GatherMatmulKernel(const OpContext& op, const RowsPlan& plan, Communicator* group,
                     std::unique_ptr<Kernel> product)
      : node_(op.node().name),
        plan_(plan),
        group_(group),
        product_(std::move(product)),
        x1_(op.slot("x1")),
        gives_(op.attr_bool("is_gather_out")),
        in_(static_cast<size_t>(op.slots())) {}

  // The gathered x1 where it is no output, then the product's.
  uint64_t scratch_bytes() const override {
    return own_bytes() + (product_ == nullptr ? 0 : product_->scratch_bytes());
  }

  bool reads(int slot) const override {
    return slot == x1_ || product_ == nullptr || product_->reads(slot);
  }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    void* gathered = gives_ ? args.out[1] : args.scratch;
    const auto count = static_cast<uint64_t>(plan_.local.m * plan_.local.k);
    NPUMESH_RETURN_IF_ERROR(
        group_->AllGather(args.in[x1_], gathered, count, plan_.local.dtype, node_));
    if (product_ == nullptr) return Status();
    std::copy_n(args.in, in_.size(), in_.begin());
    in_[static_cast<size_t>(x1_)] = gathered;
    return product_->Run(
        {in_.data(), args.out, static_cast<std::byte*>(args.scratch) + own_bytes()});
  }

 private:
  uint64_t own_bytes() const {
    if (gives_) return 0;
    const auto elements = static_cast<uint64_t>(plan_.ranks * plan_.local.m * plan_.local.k);
    return RoundedUp(elements * static_cast<uint64_t>(BitsOf(plan_.local.dtype)) / 8);
  }

  std::string node_;
  RowsPlan plan_;
  Communicator* group_;
  std::unique_ptr<Kernel> product_;  // null: the result has no elements
  int x1_;
  bool gives_;
  std::vector<const void*> in_;
};

Result<std::unique_ptr<Kernel>> MakeGatherMatmul(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const RowsPlan plan, PlanRows(op));
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, hcom::GroupOf(op));
  std::unique_ptr<Kernel> product;
  if (op.out(0).shape.elements() > 0) {
    NPUMESH_ASSIGN_OR_RETURN(
        product, MakeProduct(op, plan.local, plan.local.m * plan.ranks, plan.local.dtype));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<GatherMatmulKernel>(op, plan, group, std::move(product)));
}

Status InferMatmulScatter(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const RowsPlan plan, PlanRows(op));
  NPUMESH_RETURN_IF_ERROR(ExpectSum(op));
  if (plan.local.m % plan.ranks != 0) {
    return Error(Code::kInvalidArgument,
                 "{}: the {} rows of the product cannot be divided by the {} ranks of group \"{}\"",
                 op.Who(), plan.local.m, plan.ranks, op.attr_string("group"));
  }
  return SetOutput(op, 0, plan.local.dtype, {plan.local.m / plan.ranks, plan.local.n});
}

class MatmulScatterKernel final : public Kernel {
 public:
  MatmulScatterKernel(const OpContext& op, const RowsPlan& plan, Communicator* group,
                      std::unique_ptr<Kernel> product)
      : node_(op.node().name), plan_(plan), group_(group), product_(std::move(product)) {}

  // The product and this rank's rows of the sum as float32, then the product's.
  uint64_t scratch_bytes() const override {
    return own_bytes() + (product_ == nullptr ? 0 : product_->scratch_bytes());
  }

  bool reads(int slot) const override { return product_ == nullptr || product_->reads(slot); }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    auto* sums = static_cast<float*>(args.scratch);
    const int64_t all = plan_.local.m * plan_.local.n;
    const int64_t mine = all / plan_.ranks;
    void* out[] = {sums};
    if (product_ != nullptr) {
      NPUMESH_RETURN_IF_ERROR(
          product_->Run({args.in, out, static_cast<std::byte*>(args.scratch) + own_bytes()}));
    }
    NPUMESH_RETURN_IF_ERROR(group_->ReduceScatter(sums, sums + all, static_cast<uint64_t>(mine),
                                                  DataType::kFloat, ReduceOp::kSum, node_));
    StoreRow(plan_.local.dtype, sums + all, args.out[0], 0, mine);
    return Status();
  }

 private:
  uint64_t own_bytes() const {
    const int64_t all = plan_.local.m * plan_.local.n;
    return RoundedUp(static_cast<uint64_t>(all + all / plan_.ranks) * sizeof(float));
  }

  std::string node_;
  RowsPlan plan_;
  Communicator* group_;
  std::unique_ptr<Kernel> product_;  // null: the result has no elements
};

Result<std::unique_ptr<Kernel>> MakeMatmulScatter(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const RowsPlan plan, PlanRows(op));
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, hcom::GroupOf(op));
  std::unique_ptr<Kernel> product;
  if (op.out(0).shape.elements() > 0) {
    NPUMESH_ASSIGN_OR_RETURN(product, MakeProduct(op, plan.local, plan.local.m, DataType::kFloat));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<MatmulScatterKernel>(op, plan, group, std::move(product)));
}

}  // namespace

void RegisterRowMatmuls(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  const AttrSpec group = {"group", std::nullopt};
  const AttrSpec reduce = {"reduce_op", AttrValue::String("sum")};
  const AttrSpec trans_a = {"is_trans_a", AttrValue::Bool(false)};
  const AttrSpec trans_b = {"is_trans_b", AttrValue::Bool(false)};
  const AttrSpec turn = {"comm_turn", AttrValue::Int(0)};
  const AttrSpec ranks = {"rank_size", AttrValue::Int(0)};
  hcom::Add(registry,
            {"AllGatherMatmul",
             {{"x1"}, {"x2"}, optional("bias")},
             {{"y"}, {"gather_out"}},
             {group,
              trans_a,
              trans_b,
              {"gather_index", AttrValue::Int(0)},
              turn,
              ranks,
              {"is_gather_out", AttrValue::Bool(true)}}},
            InferGatherMatmul, MakeGatherMatmul);
  hcom::Add(registry,
            {"MatmulReduceScatter",
             {{"x1"}, {"x2"}, optional("bias")},
             {{"y"}},
             {group, reduce, trans_a, trans_b, turn, ranks}},
            InferMatmulScatter, MakeMatmulScatter);
}

}  // namespace npumesh::fused
