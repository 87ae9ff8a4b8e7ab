// MatmulReduceScatter and MatmulReduceScatterV2: this rank's rows of the sum of all products. Ops
// reference 5.17.
//
// The product stays float32 on its way and is rounded once. Large ones are cut into chunks of each
// rank's rows, which travel while others are multiplied.
#include <algorithm>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_chunks.h"
#include "graph/ops/fused_rows.h"
#include "graph/ops/infer_checks.h"

namespace npumesh::fused {
namespace {

Status InferMatmulScatter(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const RowsPlan plan, PlanRows(op));
  NPUMESH_RETURN_IF_ERROR(ExpectSum(op));
  if (plan.local.m % plan.ranks != 0) {
    return Error(Code::kInvalidArgument,
                 "{}: the {} rows of the product cannot be divided by the {} ranks of group \"{}\"",
                 op.Who(), plan.local.m, plan.ranks, op.attr_string("group"));
  }
  const Shape y = {plan.local.m / plan.ranks, plan.local.n};
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.y_dtype, y));
  return op.outputs() < 2 ? Status() : SetOutput(op, 1, DataType::kFloat, {0});
}

// A chunk is the same rows of every rank's block.
class MatmulScatterKernel final : public Kernel {
 public:
  // `product` multiplies everything when there is one chunk, otherwise the rows for one rank in one
  // chunk; null: the result has no elements.
  MatmulScatterKernel(const OpContext& op, const RowsPlan& plan, int64_t chunks,
                      Communicator* group, std::unique_ptr<Kernel> product)
      : node_(op.node().name),
        plan_(plan),
        block_(plan.local.m / plan.ranks),
        rows_(block_ / chunks),
        blocks_(plan.ranks, rows_, plan.local.n, block_),
        travel_(chunks),
        group_(group),
        product_(std::move(product)),
        x1_(op.slot("x1")),
        in_(static_cast<size_t>(op.slots())) {}

  // The product as float32, this rank's rows of the sum where they have to be rounded, then the
  // product's.
  uint64_t scratch_bytes() const override {
    return own_bytes() + (product_ == nullptr ? 0 : product_->scratch_bytes());
  }

  bool reads(int slot) const override { return product_ == nullptr || product_->reads(slot); }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    auto* const sums = static_cast<float*>(args.scratch);
    const bool rounds = plan_.y_dtype != DataType::kFloat;
    float* const mine =
        rounds ? sums + plan_.local.m * plan_.local.n : static_cast<float*>(args.out[0]);
    const int64_t count = rows_ * plan_.local.n;
    const auto scatter = [&](int64_t chunk) -> Status {
      const int64_t at = chunk * count;
      NPUMESH_RETURN_IF_ERROR(Scatter(sums + at, mine + at));
      if (rounds) StoreRow(plan_.y_dtype, mine + at, args.out[0], at, count);
      return Status();
    };
    Status computed;
    for (int64_t chunk = 0; chunk < travel_.chunks() && computed.ok(); ++chunk) {
      if (product_ != nullptr) computed = Multiply(args, chunk, sums);
      if (computed.ok()) travel_.Send(chunk, scatter);
    }
    const Status arrived = travel_.AwaitAll();
    return computed.ok() ? arrived : computed;
  }

 private:
  uint64_t own_bytes() const {
    const int64_t all = plan_.local.m * plan_.local.n;
    const bool rounds = plan_.y_dtype != DataType::kFloat;
    return RoundedUp(FloatBytes(all + (rounds ? all / plan_.ranks : 0)));
  }

  Status Multiply(const KernelArgs& args, int64_t chunk, float* sums) {
    if (travel_.chunks() == 1) return MultiplyFrom(args, 0, sums);
    for (int64_t r = 0; r < plan_.ranks; ++r) {
      NPUMESH_RETURN_IF_ERROR(MultiplyFrom(args, r * block_ + chunk * rows_, sums));
    }
    return Status();
  }

  Status MultiplyFrom(const KernelArgs& args, int64_t row, float* sums) {
    std::copy_n(args.in, in_.size(), in_.begin());
    const void*& x1 = in_[static_cast<size_t>(x1_)];
    x1 = static_cast<const std::byte*>(x1) + row * plan_.row_bytes();
    if (plan_.scale_of_rows) {
      const void*& scale = in_[static_cast<size_t>(plan_.row_scale)];
      scale = static_cast<const float*>(scale) + row;
    }
    void* out[] = {sums + row * plan_.local.n};
    return product_->Run({in_.data(), out, static_cast<std::byte*>(args.scratch) + own_bytes()});
  }

  Status Scatter(const float* from, float* to) {
    if (travel_.chunks() == 1) {
      return group_->ReduceScatter(from, to, blocks_.counts[0], DataType::kFloat, ReduceOp::kSum,
                                   node_);
    }
    return group_->ReduceScatterV(from, blocks_.counts, blocks_.displacements, to,
                                  blocks_.counts[0], DataType::kFloat, ReduceOp::kSum, node_);
  }

  std::string node_;
  RowsPlan plan_;
  int64_t block_;  // rows for one rank
  int64_t rows_;   // of these in a chunk
  ChunkBlocks blocks_;
  ChunkTravel travel_;
  Communicator* group_;
  std::unique_ptr<Kernel> product_;
  int x1_;
  std::vector<const void*> in_;
};

Result<std::unique_ptr<Kernel>> MakeMatmulScatter(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const RowsPlan plan, PlanRows(op));
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, hcom::GroupOf(op));
  const Local& local = plan.local;
  std::unique_ptr<Kernel> product;
  int64_t chunks = 1;
  if (op.out(0).shape.elements() > 0) {
    const int64_t block = local.m / plan.ranks;
    if (!local.transposed1) chunks = ChunksOf(block, FloatBytes(local.m * local.n));
    const int64_t rows = chunks == 1 ? local.m : block / chunks;
    NPUMESH_ASSIGN_OR_RETURN(product,
                             MakeRows(op, plan, rows, DataType::kFloat, plan.scale_of_rows));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<MatmulScatterKernel>(op, plan, chunks, group, std::move(product)));
}

}  // namespace

void RegisterScatterMatmuls(OpRegistry& registry) {
  OpSchema schema = {"MatmulReduceScatter",
                     {{"x1"}, {"x2"}, {"bias", PortKind::kOptional}},
                     {{"y"}},
                     {{"group", Required::kString},
                      {"reduce_op", AttrValue::String("sum")},
                      {"is_trans_a", AttrValue::Bool(false)},
                      {"is_trans_b", AttrValue::Bool(false)},
                      {"comm_turn", AttrValue::Int(0)},
                      {"rank_size", AttrValue::Int(0)}}};
  OpSchema second = WithScales(schema, "MatmulReduceScatterV2", 28);
  const CollectiveTrait scatters = {.gives = Assembly::kConcatenate, .reduction = "reduce_op"};
  hcom::Add(registry, std::move(schema), scatters, InferMatmulScatter, MakeMatmulScatter);
  hcom::Add(registry, std::move(second), scatters, InferMatmulScatter, MakeMatmulScatter);
}

}  // namespace npumesh::fused
