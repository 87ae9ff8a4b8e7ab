// AllGatherMatmul and MatmulReduceScatter: rows of all ranks times this rank's weights, and the
// other way round. Ops reference 5.17.
//
// The product that is summed over the ranks stays float32 on its way and is rounded once. Large
// tensors are cut into chunks of each rank's rows, which travel while others are multiplied.
#include <algorithm>

#include "graph/ops/blocked_product.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/fused_chunks.h"
#include "graph/ops/fused_matmul.h"
#include "graph/ops/infer_checks.h"

namespace npumesh::fused {
namespace {

// The plan of an operator that gathers or scatters rows, and the ranks of its group.
struct RowsPlan {
  Local local;
  int64_t ranks = 0;
  int64_t rank = 0;  // this one
};

Result<RowsPlan> PlanRows(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectFloats(op));
  RowsPlan plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.local, PlanLocal(op));
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, hcom::MembersOf(op));
  plan.ranks = static_cast<int64_t>(members.world_ranks.size());
  plan.rank = members.rank;
  const int64_t rank_size = op.attr_int("rank_size");
  const bool size_fits = rank_size == 0 || rank_size == plan.ranks;
  if (size_fits && op.in("x1").shape.rank() == 2) return plan;
  return Error(Code::kInvalidArgument,
               "{}: rank_size {} in a group of {} ranks, x1 {}; expected equal sizes and a matrix",
               op.Who(), rank_size, plan.ranks, op.in("x1").ToString());
}

// Where a chunk of `rows` rows of `columns` elements lies in each of the ranks' blocks of `stride`
// rows, as a collective with displacements takes it. Relative to the chunk in the first block.
struct ChunkBlocks {
  std::vector<uint64_t> counts;
  std::vector<uint64_t> displacements;

  ChunkBlocks(int64_t ranks, int64_t rows, int64_t columns, int64_t stride) {
    for (int64_t r = 0; r < ranks; ++r) {
      counts.push_back(static_cast<uint64_t>(rows * columns));
      displacements.push_back(static_cast<uint64_t>(r * stride * columns));
    }
  }
};

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

  // The gathered x1 where it is no output, then the product's.
  uint64_t scratch_bytes() const override {
    return own_bytes() + (product_ == nullptr ? 0 : product_->scratch_bytes());
  }

  bool reads(int slot) const override {
    return slot == x1_ || product_ == nullptr || product_->reads(slot);
  }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    auto* const gathered = static_cast<std::byte*>(gives_ ? args.out[1] : args.scratch);
    const auto* const own = static_cast<const std::byte*>(args.in[x1_]);
    if (travel_.chunks() == 1) {
      const auto count = static_cast<uint64_t>(plan_.local.m * plan_.local.k);
      NPUMESH_RETURN_IF_ERROR(group_->AllGather(own, gathered, count, plan_.local.dtype, node_));
      return product_ == nullptr ? Status() : Multiply(args, gathered, 0);
    }
    const auto gather = [&](int64_t chunk) {
      const int64_t at = chunk * rows_ * row_bytes();
      return group_->AllGatherV(own + at, blocks_.counts[0], gathered + at, blocks_.counts,
                                blocks_.displacements, plan_.local.dtype, node_);
    };
    for (int64_t chunk = 0; chunk < travel_.chunks(); ++chunk) travel_.Send(chunk, gather);
    const Status computed = MultiplyAll(args, own, gathered);
    const Status arrived = travel_.AwaitAll();
    return arrived.ok() ? computed : arrived;
  }

 private:
  int64_t row_bytes() const { return plan_.local.k * BitsOf(plan_.local.dtype) / 8; }
  uint64_t own_bytes() const {
    if (gives_) return 0;
    return RoundedUp(static_cast<uint64_t>(plan_.ranks * plan_.local.m * row_bytes()));
  }

  Status MultiplyAll(const KernelArgs& args, const std::byte* own, const std::byte* gathered) {
    const int64_t m = plan_.local.m;
    for (int64_t row = 0; row < m; row += rows_) {
      NPUMESH_RETURN_IF_ERROR(Multiply(args, own + row * row_bytes(), rank_ * m + row));
    }
    for (int64_t chunk = 0; chunk < travel_.chunks(); ++chunk) {
      NPUMESH_RETURN_IF_ERROR(travel_.Await(chunk));
      for (int64_t r = 0; r < plan_.ranks; ++r) {
        const int64_t row = r * m + chunk * rows_;
        if (r == rank_) continue;
        NPUMESH_RETURN_IF_ERROR(Multiply(args, gathered + row * row_bytes(), row));
      }
    }
    return Status();
  }

  // The rows at `x1`, which are those from `row` on of the result.
  Status Multiply(const KernelArgs& args, const std::byte* x1, int64_t row) {
    std::copy_n(args.in, in_.size(), in_.begin());
    in_[static_cast<size_t>(x1_)] = x1;
    const int64_t at = row * plan_.local.n * BitsOf(plan_.local.dtype) / 8;
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
    NPUMESH_ASSIGN_OR_RETURN(product, MakeProduct(op, plan.local, rows, plan.local.dtype));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<GatherMatmulKernel>(op, plan, chunks, group, std::move(product)));
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
    const bool rounds = plan_.local.dtype != DataType::kFloat;
    float* const mine =
        rounds ? sums + plan_.local.m * plan_.local.n : static_cast<float*>(args.out[0]);
    const int64_t count = rows_ * plan_.local.n;
    const auto scatter = [&](int64_t chunk) -> Status {
      const int64_t at = chunk * count;
      NPUMESH_RETURN_IF_ERROR(Scatter(sums + at, mine + at));
      if (rounds) StoreRow(plan_.local.dtype, mine + at, args.out[0], at, count);
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
    const bool rounds = plan_.local.dtype != DataType::kFloat;
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
    x1 = static_cast<const std::byte*>(x1) + row * plan_.local.k * BitsOf(plan_.local.dtype) / 8;
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
    NPUMESH_ASSIGN_OR_RETURN(product, MakeProduct(op, local, rows, DataType::kFloat));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<MatmulScatterKernel>(op, plan, chunks, group, std::move(product)));
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
