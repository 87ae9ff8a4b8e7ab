// AllGatherMatmul, MatmulReduceScatter and their second versions: the rows of all ranks times this
// rank's weights, and this rank's rows of the sum of all products.
//
// What is summed stays float32 on its way and is rounded once. Large tensors are cut into chunks of
// each rank's rows, which travel while others are multiplied.
#include "graph/ops/collective/chunked_exchange.h"
#include "graph/ops/collective/local_product.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh::fused {
namespace {

// Where a chunk of `rows` rows of `columns` elements lies in each of the ranks' blocks of `stride`
// rows, as a collective with displacements takes it. Relative to the chunk in the first block.
struct ChunkBlocks {
  std::vector<uint64_t> counts, displacements;

  ChunkBlocks() = default;
  ChunkBlocks(int64_t ranks, int64_t rows, int64_t columns, int64_t stride)
      : counts(static_cast<size_t>(ranks), static_cast<uint64_t>(rows * columns)) {
    for (int64_t r = 0; r < ranks; ++r) {
      displacements.push_back(static_cast<uint64_t>(r * stride * columns));
    }
  }
};

// An operator that gathers or scatters rows, and the ranks of its group.
struct RowsPlan : hcom::Meeting {
  Local local;
  Ring ring;
  DataType y_dtype = DataType::kUndefined;
  // From Prepare.
  int64_t rows = 0;  // of one rank in a chunk
  ChunkBlocks blocks;
  std::unique_ptr<ChunkTravel> travel;
  Products product;  // of all rows when there is one chunk, else of `rows`
};

// Scales of the 8-bit operands: of x1 one or one for each row, of x2 one or one for each column.
void ReadScales(const OpContext& op, Check& check, RowsPlan& plan) {
  check.Keep(ExpectEightBits(op, "x1", "x2"));
  Local& local = plan.local;
  const int slot = SlotIfFed(op, "x1_scale");
  const int64_t rows = slot < 0 ? 0 : op.in(slot).shape.elements();
  local.column_scale = check.Take(Factors::Of(op, "x2_scale"));
  const int64_t columns = local.column_scale.count();
  const bool fits = slot >= 0 && op.in(slot).dtype == DataType::kFloat &&
                    (rows == 1 || rows == local.m) && (columns == 1 || columns == local.n) &&
                    local.column_scale.given() && !local.transposed_x;
  check.Supported(fits,
                  "{} x1_scale and {} x2_scale for a product of {} x {}{}; expected float32, 1 or "
                  "{} and 1 or {}, and x1 not transposed; scales of blocks are not supported",
                  rows, columns, local.m, local.n, local.transposed_x ? " with x1 transposed" : "",
                  local.m, local.n);
  local.row_scale_slot = slot;
  local.scale_of_rows = rows == local.m && rows > 1;
  plan.y_dtype = FloatTypeOf(op, "y_dtype", DataType::kFloat16, check);
}

// `second`: the second version, which knows scales of 8-bit operands, the type of the result and
// its largest element.
void ReadRows(const OpContext& op, bool second, Check& check, RowsPlan& plan) {
  const TensorType& x1 = op.in("x1");
  const bool floats = !second || kFloats.Contains(x1.dtype);
  if (floats) ExpectFloats(op, check);
  plan.local = PlanLocal(op, check);
  plan.ring = RingOf(op, "rank_size", check);
  plan.y_dtype = plan.local.x_dtype;
  if (second) {
    check.NotFed({"quant_scale"});
    check.Supported(!op.attr_bool("is_amax_out"), "is_amax_out is not supported");
    if (floats) check.NotFed({"x1_scale", "x2_scale"});
    if (!floats) ReadScales(op, check, plan);
  }
  check.That(x1.shape.rank() == 2, "x1 is {}, expected a matrix", x1);
}

// ---- AllGatherMatmul ----

struct GatherPlan : RowsPlan {
  bool gives = true;  // the gathered x1 is output 1
  // From Prepare.
  Workspace<std::byte> gathered;
  Workspace<float> told_scales, scales;  // as they are gathered; one for each row

  DataType wire() const { return local.scaled() ? DataType::kInt8 : local.x_dtype; }
};

template <bool kSecond>
GatherPlan PlanGather(const OpContext& op, Check& check) {
  GatherPlan plan;
  ReadRows(op, kSecond, check, plan);
  const int64_t index = op.attr_int("gather_index");
  check.Supported(!plan.local.transposed_x && index == 0,
                  "is_trans_a and gather_index {} are not supported", index);
  plan.gives = op.attr_bool("is_gather_out");
  const int64_t rows = plan.local.m * plan.ring.ranks;
  plan.outputs = {{plan.y_dtype, {rows, plan.local.n}},
                  {plan.local.x_dtype, plan.gives ? Shape{rows, plan.local.k} : Shape{0}}};
  if (kSecond) plan.outputs.push_back({DataType::kFloat, {0}});
  return plan;
}

Status PrepareGather(const OpContext& op, GatherPlan* plan) {
  NPUMESH_RETURN_IF_ERROR(hcom::Meet(op, plan));
  const int64_t ranks = plan->ring.ranks, m = plan->local.m;
  const bool empty = op.out(0).shape.elements() == 0;
  const int64_t chunks = empty ? 1 : ChunksOf(m, op.in("x1").bytes());
  plan->rows = m / chunks;
  plan->blocks = ChunkBlocks(ranks, plan->rows, plan->local.k, m);
  plan->travel = std::make_unique<ChunkTravel>(chunks);
  if (!plan->gives) {
    plan->gathered = plan->scratch.Take<std::byte>(ranks * m * plan->local.x_row_bytes());
  }
  if (plan->local.scaled()) {
    plan->scratch.Take(ranks * m, {&plan->told_scales, &plan->scales});
  }
  Local local = plan->local;
  local.scale_of_rows = true;
  const int64_t rows = chunks == 1 ? m * ranks : plan->rows;
  return plan->product.Make(op, local, rows, plan->y_dtype, plan);
}

// Collective over the group. A rank has a scale for each of its rows, or one for all of them.
Status GatherScales(const GatherPlan& plan, const KernelArgs& args) {
  const int64_t m = plan.local.m, count = plan.local.scale_of_rows ? m : 1;
  float *told = plan.told_scales(args), *scales = plan.scales(args);
  NPUMESH_RETURN_IF_ERROR(plan.group->AllGather(args.in[plan.local.row_scale_slot], told,
                                                static_cast<uint64_t>(count), DataType::kFloat,
                                                plan.node));
  for (int64_t row = 0; row < plan.ring.ranks * m; ++row) {
    scales[row] = told[plan.local.scale_of_rows ? row : row / m];
  }
  return Status();
}

// The rows at `x`, which are those from `row` on of the result.
Status MultiplyFrom(const GatherPlan& plan, const KernelArgs& args, const std::byte* x,
                    int64_t row) {
  const int64_t y_row_bytes = plan.local.n * BitsOf(plan.y_dtype) / 8;
  auto* const y = static_cast<std::byte*>(args.out[0]) + row * y_row_bytes;
  if (!plan.local.scaled()) return plan.product.Run(args, {{plan.local.x_slot, x}}, y);
  const float* const scales = plan.scales(args) + row;
  return plan.product.Run(args, {{plan.local.x_slot, x}, {plan.local.row_scale_slot, scales}}, y);
}

Status MultiplyOwn(const GatherPlan& plan, const KernelArgs& args) {
  const int64_t m = plan.local.m;
  for (int64_t row = 0; row < m; row += plan.rows) {
    NPUMESH_RETURN_IF_ERROR(
        MultiplyFrom(plan, args, plan.local.RowsOfX(args, row), plan.ring.rank * m + row));
  }
  return Status();
}

Status MultiplyOthers(const GatherPlan& plan, const KernelArgs& args, const std::byte* gathered,
                      int64_t chunk) {
  for (int64_t r = 0; r < plan.ring.ranks; ++r) {
    if (r == plan.ring.rank) continue;
    const int64_t row = r * plan.local.m + chunk * plan.rows;
    NPUMESH_RETURN_IF_ERROR(
        MultiplyFrom(plan, args, gathered + row * plan.local.x_row_bytes(), row));
  }
  return Status();
}

// Collective over the group. With one chunk: gathers everything, then multiplies it. Else
// multiplies this rank's rows while the first chunks of the others are on their way, then these.
Status RunGather(const GatherPlan& plan, const KernelArgs& args) {
  auto* const gathered = plan.gives ? static_cast<std::byte*>(args.out[1]) : plan.gathered(args);
  const std::byte* const own = plan.local.RowsOfX(args);
  if (plan.local.scaled()) NPUMESH_RETURN_IF_ERROR(GatherScales(plan, args));
  if (plan.travel->chunks() == 1) {
    NPUMESH_RETURN_IF_ERROR(
        plan.group->AllGather(own, gathered, plan.blocks.counts[0], plan.wire(), plan.node));
    return MultiplyFrom(plan, args, gathered, 0);
  }
  const auto gather = [&](int64_t chunk) {
    const int64_t at = chunk * plan.rows * plan.local.x_row_bytes();
    return plan.group->AllGatherV(own + at, plan.blocks.counts[0], gathered + at,
                                  plan.blocks.counts, plan.blocks.displacements, plan.wire(),
                                  plan.node);
  };
  const auto others = [&](int64_t chunk) { return MultiplyOthers(plan, args, gathered, chunk); };
  const auto mine = [&] { return MultiplyOwn(plan, args); };
  return plan.travel->Run(Nothing(), gather, others, mine);
}

// ---- MatmulReduceScatter ----

struct ScatterPlan : RowsPlan {
  // From Prepare.
  int64_t block = 0;         // rows of the product for one rank
  Workspace<float> sums;     // the product
  Workspace<float> rounded;  // this rank's rows of the sum where they are rounded

  bool rounds() const { return y_dtype != DataType::kFloat; }
};

template <bool kSecond>
ScatterPlan PlanScatter(const OpContext& op, Check& check) {
  ScatterPlan plan;
  ReadRows(op, kSecond, check, plan);
  ExpectSum(op, check);
  const int64_t m = plan.local.m, ranks = plan.ring.ranks;
  check.That(m % ranks == 0,
             "the {} rows of the product cannot be divided by the {} ranks of group \"{}\"", m,
             ranks, op.attr_string("group"));
  plan.outputs = {{plan.y_dtype, {m / ranks, plan.local.n}}};
  if (kSecond) plan.outputs.push_back({DataType::kFloat, {0}});
  return plan;
}

// A chunk is the same rows of every rank's block.
Status PrepareScatter(const OpContext& op, ScatterPlan* plan) {
  NPUMESH_RETURN_IF_ERROR(hcom::Meet(op, plan));
  const Local& local = plan->local;
  const int64_t elements = local.m * local.n;
  plan->block = local.m / plan->ring.ranks;
  const bool whole = elements == 0 || local.transposed_x;
  const int64_t chunks = whole ? 1 : ChunksOf(plan->block, FloatBytes(elements));
  plan->rows = plan->block / chunks;
  plan->blocks = ChunkBlocks(plan->ring.ranks, plan->rows, local.n, plan->block);
  plan->travel = std::make_unique<ChunkTravel>(chunks);
  plan->sums = plan->scratch.Floats(elements);
  if (plan->rounds()) plan->rounded = plan->scratch.Floats(elements / plan->ring.ranks);
  const int64_t rows = chunks == 1 ? local.m : plan->rows;
  return plan->product.Make(op, local, rows, DataType::kFloat, plan);
}

// The rows of the product from `row` on.
Status MultiplyFrom(const ScatterPlan& plan, const KernelArgs& args, int64_t row) {
  const Local& local = plan.local;
  const std::byte* const x = local.RowsOfX(args, row);
  float* const y = plan.sums(args) + row * local.n;
  if (!local.scale_of_rows) return plan.product.Run(args, {{local.x_slot, x}}, y);
  const auto* scale = static_cast<const float*>(args.in[local.row_scale_slot]) + row;
  return plan.product.Run(args, {{local.x_slot, x}, {local.row_scale_slot, scale}}, y);
}

Status Multiply(const ScatterPlan& plan, const KernelArgs& args, int64_t chunk) {
  if (plan.travel->chunks() == 1) return MultiplyFrom(plan, args, 0);
  for (int64_t r = 0; r < plan.ring.ranks; ++r) {
    NPUMESH_RETURN_IF_ERROR(MultiplyFrom(plan, args, r * plan.block + chunk * plan.rows));
  }
  return Status();
}

// Collective over the group: sums a chunk from all blocks.
Status Scatter(const ScatterPlan& plan, const float* from, float* to) {
  const ChunkBlocks& blocks = plan.blocks;
  if (plan.travel->chunks() == 1) {
    return plan.group->ReduceScatter(from, to, blocks.counts[0], DataType::kFloat, ReduceOp::kSum,
                                     plan.node);
  }
  return plan.group->ReduceScatterV(from, blocks.counts, blocks.displacements, to, blocks.counts[0],
                                    DataType::kFloat, ReduceOp::kSum, plan.node);
}

// Collective over the group.
Status RunScatter(const ScatterPlan& plan, const KernelArgs& args) {
  float* const sums = plan.sums(args);
  float* const mine = plan.rounds() ? plan.rounded(args) : static_cast<float*>(args.out[0]);
  const int64_t count = plan.rows * plan.local.n;
  const auto multiply = [&](int64_t chunk) { return Multiply(plan, args, chunk); };
  const auto scatter = [&](int64_t chunk) -> Status {
    const int64_t at = chunk * count;
    NPUMESH_RETURN_IF_ERROR(Scatter(plan, sums + at, mine + at));
    if (plan.rounds()) StoreRow(plan.y_dtype, mine + at, args.out[0], at, count);
    return Status();
  };
  return plan.travel->Run(multiply, scatter);
}

}  // namespace

}  // namespace npumesh::fused

namespace npumesh {

void RegisterRowMatmulOps(OpRegistry& registry) {
  using namespace fused;
  const CollectiveTrait gathers = {.takes = Assembly::kConcatenate};
  registry.Add(hcom::Collective<PlanGather<false>, RunGather, PrepareGather>(
      "AllGatherMatmul(x1, x2, bias?; group:string, is_trans_a=false, is_trans_b=false, "
      "gather_index=0, comm_turn=0, rank_size=0, is_gather_out=true) -> y, gather_out",
      gathers));
  registry.Add(hcom::Collective<PlanGather<true>, RunGather, PrepareGather>(
      "AllGatherMatmulV2(x1, x2, bias?, x1_scale?, x2_scale?, quant_scale?; group:string, "
      "is_trans_a=false, is_trans_b=false, gather_index=0, comm_turn=0, rank_size=0, "
      "is_gather_out=true, block_size=0, group_size=0, is_amax_out=false, y_dtype=0, "
      "comm_mode=\"\") -> y, gather_out, amax_out",
      gathers));
  const CollectiveTrait scatters = {.gives = Assembly::kConcatenate, .reduction = "reduce_op"};
  registry.Add(hcom::Collective<PlanScatter<false>, RunScatter, PrepareScatter>(
      "MatmulReduceScatter(x1, x2, bias?; group:string, reduce_op=\"sum\", is_trans_a=false, "
      "is_trans_b=false, comm_turn=0, rank_size=0) -> y",
      scatters));
  registry.Add(hcom::Collective<PlanScatter<true>, RunScatter, PrepareScatter>(
      "MatmulReduceScatterV2(x1, x2, bias?, x1_scale?, x2_scale?, quant_scale?; group:string, "
      "reduce_op=\"sum\", is_trans_a=false, is_trans_b=false, comm_turn=0, rank_size=0, "
      "block_size=0, group_size=0, is_amax_out=false, y_dtype=28, comm_mode=\"\") -> y, amax_out",
      scatters));
}

}  // namespace npumesh
