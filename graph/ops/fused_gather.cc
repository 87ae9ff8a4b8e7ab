// AllGatherMatmul and AllGatherMatmulV2: the rows of all ranks times this rank's weights. Ops
// reference 5.17.
//
// Large tensors are cut into chunks of each rank's rows, which travel while others are multiplied.
#include <algorithm>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_chunks.h"
#include "graph/ops/fused_rows.h"
#include "graph/ops/infer_checks.h"

namespace npumesh::fused {
namespace {

Status InferGatherMatmul(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const RowsPlan plan, PlanRows(op));
  if (plan.local.transposed1 || op.attr_int("gather_index") != 0) {
    return Error(Code::kUnsupported, "{}: is_trans_a and gather_index {} are not supported",
                 op.Who(), op.attr_int("gather_index"));
  }
  const int64_t rows = plan.local.m * plan.ranks;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.y_dtype, {rows, plan.local.n}));
  const bool gives = op.attr_bool("is_gather_out");
  const Shape gathered = gives ? Shape{rows, plan.local.k} : Shape{0};
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, plan.local.dtype, gathered));
  return op.outputs() < 3 ? Status() : SetOutput(op, 2, DataType::kFloat, {0});
}

// With one chunk: gathers everything, then multiplies it. With several this rank's rows are
// multiplied while the first chunks of the others are on their way.
class GatherMatmulKernel final : public Kernel {
 public:
  // `product` multiplies what is gathered when there is one chunk, otherwise the rows of one rank
  // in one chunk; null: the result has no elements.
  GatherMatmulKernel(const OpContext& op, const RowsPlan& plan, int64_t chunks, Communicator* group,
                     std::unique_ptr<Kernel> product)
      : node_(op.node().name),
        plan_(plan),
        rank_(plan.rank),
        rows_(plan.local.m / chunks),
        blocks_(plan.ranks, rows_, plan.local.k, plan.local.m),
        travel_(chunks),
        group_(group),
        product_(std::move(product)),
        x1_(op.slot("x1")),
        gives_(op.attr_bool("is_gather_out")),
        in_(static_cast<size_t>(op.slots())) {}

  // The gathered x1 where it is no output, scales of all rows, then the product's.
  uint64_t scratch_bytes() const override {
    return own_bytes() + (product_ == nullptr ? 0 : product_->scratch_bytes());
  }

  bool reads(int slot) const override {
    return slot == x1_ || slot == plan_.row_scale || product_ == nullptr || product_->reads(slot);
  }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    auto* const gathered = static_cast<std::byte*>(gives_ ? args.out[1] : args.scratch);
    const auto* const own = static_cast<const std::byte*>(args.in[x1_]);
    if (plan_.scaled) NPUMESH_RETURN_IF_ERROR(GatherScales(args));
    if (travel_.chunks() == 1) {
      const auto count = static_cast<uint64_t>(plan_.local.m * plan_.local.k);
      NPUMESH_RETURN_IF_ERROR(group_->AllGather(own, gathered, count, wire(), node_));
      return product_ == nullptr ? Status() : Multiply(args, gathered, 0);
    }
    const auto gather = [&](int64_t chunk) {
      const int64_t at = chunk * rows_ * plan_.row_bytes();
      return group_->AllGatherV(own + at, blocks_.counts[0], gathered + at, blocks_.counts,
                                blocks_.displacements, wire(), node_);
    };
    for (int64_t chunk = 0; chunk < travel_.chunks(); ++chunk) travel_.Send(chunk, gather);
    const Status computed = MultiplyAll(args, own, gathered);
    const Status arrived = travel_.AwaitAll();
    return arrived.ok() ? computed : arrived;
  }

 private:
  DataType wire() const { return plan_.scaled ? DataType::kInt8 : plan_.local.dtype; }
  uint64_t gathered_bytes() const {
    if (gives_) return 0;
    return RoundedUp(static_cast<uint64_t>(plan_.ranks * plan_.local.m * plan_.row_bytes()));
  }
  // Scales as they are gathered, then one for each row.
  uint64_t scale_bytes() const {
    return plan_.scaled ? RoundedUp(FloatBytes(plan_.ranks * plan_.local.m)) : 0;
  }
  uint64_t own_bytes() const { return gathered_bytes() + 2 * scale_bytes(); }
  float* ScaleAt(const KernelArgs& args, uint64_t bytes) const {
    auto* const room = static_cast<std::byte*>(args.scratch) + gathered_bytes() + bytes;
    return reinterpret_cast<float*>(room);
  }

  // Collective over the group. A rank has a scale for each of its rows, or one for all of them.
  Status GatherScales(const KernelArgs& args) const {
    const int64_t count = plan_.scale_of_rows ? plan_.local.m : 1;
    float* const gathered = ScaleAt(args, 0);
    float* const scales = ScaleAt(args, scale_bytes());
    NPUMESH_RETURN_IF_ERROR(group_->AllGather(
        args.in[plan_.row_scale], gathered, static_cast<uint64_t>(count), DataType::kFloat, node_));
    for (int64_t row = 0; row < plan_.ranks * plan_.local.m; ++row) {
      scales[row] = gathered[plan_.scale_of_rows ? row : row / plan_.local.m];
    }
    return Status();
  }

  Status MultiplyAll(const KernelArgs& args, const std::byte* own, const std::byte* gathered) {
    const int64_t m = plan_.local.m;
    for (int64_t row = 0; row < m; row += rows_) {
      NPUMESH_RETURN_IF_ERROR(Multiply(args, own + row * plan_.row_bytes(), rank_ * m + row));
    }
    for (int64_t chunk = 0; chunk < travel_.chunks(); ++chunk) {
      NPUMESH_RETURN_IF_ERROR(travel_.Await(chunk));
      for (int64_t r = 0; r < plan_.ranks; ++r) {
        const int64_t row = r * m + chunk * rows_;
        if (r == rank_) continue;
        NPUMESH_RETURN_IF_ERROR(Multiply(args, gathered + row * plan_.row_bytes(), row));
      }
    }
    return Status();
  }

  // The rows at `x1`, which are those from `row` on of the result.
  Status Multiply(const KernelArgs& args, const std::byte* x1, int64_t row) {
    std::copy_n(args.in, in_.size(), in_.begin());
    in_[static_cast<size_t>(x1_)] = x1;
    if (plan_.scaled) {
      in_[static_cast<size_t>(plan_.row_scale)] = ScaleAt(args, scale_bytes()) + row;
    }
    const int64_t at = row * plan_.local.n * BitsOf(plan_.y_dtype) / 8;
    void* out[] = {static_cast<std::byte*>(args.out[0]) + at};
    return product_->Run({in_.data(), out, static_cast<std::byte*>(args.scratch) + own_bytes()});
  }

  std::string node_;
  RowsPlan plan_;
  int64_t rank_;  // of this one in the group
  int64_t rows_;  // of each rank in a chunk
  ChunkBlocks blocks_;
  ChunkTravel travel_;
  Communicator* group_;
  std::unique_ptr<Kernel> product_;
  int x1_;
  bool gives_;
  std::vector<const void*> in_;
};

Result<std::unique_ptr<Kernel>> MakeGatherMatmul(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const RowsPlan plan, PlanRows(op));
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, hcom::GroupOf(op));
  std::unique_ptr<Kernel> product;
  int64_t chunks = 1;
  if (op.out(0).shape.elements() > 0) {
    chunks = ChunksOf(plan.local.m, op.in("x1").bytes());
    const int64_t rows = chunks == 1 ? plan.local.m * plan.ranks : plan.local.m / chunks;
    NPUMESH_ASSIGN_OR_RETURN(product, MakeRows(op, plan, rows, plan.y_dtype, true));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<GatherMatmulKernel>(op, plan, chunks, group, std::move(product)));
}

}  // namespace

void RegisterGatherMatmuls(OpRegistry& registry) {
  OpSchema schema = {"AllGatherMatmul",
                     {{"x1"}, {"x2"}, {"bias", PortKind::kOptional}},
                     {{"y"}, {"gather_out"}},
                     {{"group", Required::kString},
                      {"is_trans_a", AttrValue::Bool(false)},
                      {"is_trans_b", AttrValue::Bool(false)},
                      {"gather_index", AttrValue::Int(0)},
                      {"comm_turn", AttrValue::Int(0)},
                      {"rank_size", AttrValue::Int(0)},
                      {"is_gather_out", AttrValue::Bool(true)}}};
  OpSchema second = WithScales(schema, "AllGatherMatmulV2", 0);
  const CollectiveTrait gathers = {.takes = Assembly::kConcatenate};
  hcom::Add(registry, std::move(schema), gathers, InferGatherMatmul, MakeGatherMatmul);
  hcom::Add(registry, std::move(second), gathers, InferGatherMatmul, MakeGatherMatmul);
}

}  // namespace npumesh::fused
