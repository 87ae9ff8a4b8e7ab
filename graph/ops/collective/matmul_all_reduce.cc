// MatmulAllReduce and MatmulAllReduceAddRmsNorm: the sum over the ranks of their products.
//
// Products stay float32 on their way and are rounded once, at the end. Bias and x3 are added on
// every rank, as the operator says, the residual of the second operator once. Chunks of rows are
// summed over the ranks, and rounded or normalised, while the next one is computed.
#include <algorithm>

#include "graph/ops/collective/chunked_exchange.h"
#include "graph/ops/collective/local_product.h"
#include "graph/ops/toolbox/product/blocked_product.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/rms_row.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh::fused {
namespace {

struct AllReducePlan : hcom::Meeting {
  Local local;
  bool quantised = false;  // x1 and x2 are integers
  bool weights = false;    // only x2 is
  Dequant dequant;
  WeightScale weight_scale;
  Factors x3;  // [m, n] or [n], added on every rank
  DataType y_dtype = DataType::kUndefined;
  int residual = -1;  // added to the sum, which is then normalised; -1: it is not
  int gamma = -1;
  double epsilon = 0;
  int threads = 1;
  // From Prepare.
  int64_t rows = 0;       // of a chunk
  Products floats;        // the product of floats
  BlockedProduct blocks;  // that of integers
  std::unique_ptr<ChunkTravel> travel;
  Workspace<float> sums, segment, norm_rows;
  Workspace<std::byte> blocks_room;

  bool blocked() const { return quantised || weights; }
};

// The product, and what both operators have. `by_rows`: sums of integers may have scales of rows.
AllReducePlan PlanSum(const OpContext& op, bool by_rows, Check& check) {
  AllReducePlan plan;
  plan.threads = op.threads();
  plan.local = PlanLocal(op, check);
  ExpectSum(op, check);
  const DataType x = plan.local.x_dtype;
  const bool integers = kQuantised.Contains(plan.local.w_dtype);
  plan.quantised = integers && kQuantised.Contains(x);
  plan.weights = integers && kFloats.Contains(x);
  if (plan.blocked()) ReadBias(check, op, plan.dequant);
  if (plan.quantised) {
    Dequant& dequant = plan.dequant;
    dequant.scale = check.Take(Factors::Of(op, "dequant_scale"));
    if (by_rows) dequant.row_scale = check.Take(Factors::Of(op, "pertoken_scale"));
    check.Keep(CheckFactors(op, dequant.scale, "dequant_scale", plan.local.n));
    check.Keep(CheckFactors(op, dequant.row_scale, "pertoken_scale", plan.local.m));
  }
  if (plan.weights) {
    const Local& local = plan.local;
    plan.weight_scale = WeightScaleOf(check, op, local.k, local.n, local.transposed_w);
  }
  if (!plan.blocked()) ExpectFloats(op, check);
  hcom::RingOf(op, check);
  return plan;
}

// ---- MatmulAllReduce ----

AllReducePlan PlanMatmulAllReduce(const OpContext& op, Check& check) {
  AllReducePlan plan = PlanSum(op, true, check);
  check.NotFed({"comm_quant_scale_1", "comm_quant_scale_2"});
  plan.x3 = check.Take(Factors::Of(op, "x3"));
  const int64_t m = plan.local.m, n = plan.local.n, x3 = plan.x3.count();
  check.That(!plan.x3.given() || x3 == n || x3 == m * n, "x3 is {} for a product of {} x {}",
             op.in("x3"), m, n);
  // As x1; the result of integers is float16 unless the scale or the attribute says otherwise.
  const bool as_scale = plan.dequant.scale.dtype() == DataType::kBfloat16;
  const DataType standard = !plan.quantised ? plan.local.x_dtype
                            : as_scale      ? DataType::kBfloat16
                                            : DataType::kFloat16;
  plan.y_dtype = FloatTypeOf(op, "y_dtype", standard, check);
  if (!check.ok()) return plan;
  const Shape y = plan.local.transposed_x ? Shape{m, n} : WithLast(op.in("x1").shape, n);
  plan.outputs = {{plan.y_dtype, y}};
  return plan;
}

// ---- MatmulAllReduceAddRmsNorm ----

AllReducePlan PlanAddRmsNorm(const OpContext& op, Check& check) {
  AllReducePlan plan = PlanSum(op, false, check);
  plan.residual = op.slot("residual");
  plan.gamma = op.slot("gamma");
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  const TensorType &residual = op.in(plan.residual), &gamma = op.in(plan.gamma);
  plan.y_dtype = residual.dtype;
  const Local& local = plan.local;
  const int rank = residual.shape.rank();
  const bool typed = kFloats.Contains(residual.dtype) && gamma.dtype == residual.dtype &&
                     (plan.quantised || residual.dtype == local.x_dtype);
  const bool fits = rank >= 2 && residual.shape[rank - 1] == local.n &&
                    ElementsBetween(residual.shape, 0, rank - 1) == local.m &&
                    gamma.shape == Shape{local.n};
  check.That(typed && fits,
             "residual is {} and gamma {} for a product of {} x {} in {}; expected floats of one "
             "type, as many as the product has, and a row of them",
             residual, gamma, local.m, local.n, Name(local.x_dtype));
  plan.outputs = {residual, residual};
  return plan;
}

// ---- both ----

Status PrepareMatmulAllReduce(const OpContext& op, AllReducePlan* plan) {
  NPUMESH_RETURN_IF_ERROR(hcom::Meet(op, plan));
  const Local& local = plan->local;
  const int64_t chunks = local.transposed_x ? 1 : ChunksOf(local.m, FloatBytes(local.m * local.n));
  plan->rows = local.m / chunks;
  plan->travel = std::make_unique<ChunkTravel>(chunks);
  plan->sums = plan->scratch.Floats(local.m * local.n);
  plan->segment = plan->scratch.Floats(kBlockColumns);
  if (plan->residual >= 0) plan->norm_rows = plan->scratch.Floats(3 * local.n);
  if (plan->blocked()) {
    plan->blocks = BlockedProduct(local.k, plan->quantised);
    const auto bytes = static_cast<int64_t>(plan->blocks.scratch_bytes());
    plan->blocks_room = plan->scratch.Take<std::byte>(bytes);
    return Status();
  }
  return plan->floats.Make(op, local, plan->rows, DataType::kFloat, plan);
}

// Rows of the product from `first` on, as many as a chunk has.
Status Multiply(const AllReducePlan& plan, const KernelArgs& args, int64_t first) {
  const Local& local = plan.local;
  float* const sums = plan.sums(args);
  if (!plan.blocked()) {
    const std::byte* const x = local.RowsOfX(args, first);
    return plan.floats.Run(args, {{local.x_slot, x}}, sums + first * local.n);
  }
  const ThreadCount threads(plan.threads);
  float* const factors = plan.segment(args);
  const auto take = [&](const SumSegment& segment) {
    SumSegment whole = segment;
    whole.row += first;
    plan.dequant.Apply(args, whole, factors, sums + whole.row * local.n + whole.first);
  };
  return plan.blocks.Run({args.in, args.out, plan.blocks_room(args)}, plan.rows, local.n,
                         {local.x_dtype, local.RowsOfX(args), first * local.k, local.transposed_x},
                         {local.w_dtype, args.in[local.w_slot], 0, local.transposed_w},
                         plan.weight_scale, take);
}

void AddX3(const AllReducePlan& plan, const KernelArgs& args, int64_t first) {
  if (!plan.x3.given()) return;
  const int64_t n = plan.local.n;
  float* const addend = plan.segment(args);
  for (int64_t r = first; r < first + plan.rows; ++r) {
    float* const sums = plan.sums(args) + r * n;
    for (int64_t column = 0; column < n; column += kBlockColumns) {
      const int64_t count = std::min(kBlockColumns, n - column);
      plan.x3.Load(args, (plan.x3.count() == n ? 0 : r * n) + column, count, addend);
      for (int64_t i = 0; i < count; ++i) sums[column + i] += addend[i];
    }
  }
}

// Adds the residual to the rows of a chunk, rounds them and gives their norm, as AddRmsNorm does.
// With several chunks this runs beside the product of the next one.
void Normalise(const AllReducePlan& plan, const KernelArgs& args, int64_t first) {
  const int64_t n = plan.local.n;
  float* const room = plan.norm_rows(args);
  const float* gamma = LoadRow(plan.y_dtype, args.in[plan.gamma], 0, n, room);
  for (int64_t r = first; r < first + plan.rows; ++r) {
    float* sum = plan.sums(args) + r * n;
    const float* residual = LoadRow(plan.y_dtype, args.in[plan.residual], r * n, n, room + n);
    for (int64_t i = 0; i < n; ++i) sum[i] += residual[i];
    StoreRow(plan.y_dtype, sum, args.out[0], r * n, n);
    const float* x = LoadRow(plan.y_dtype, args.out[0], r * n, n, room + n);
    NormaliseRow(plan.y_dtype, x, gamma, n, plan.epsilon, true, room + 2 * n, args.out[1], r * n);
  }
}

// Collective over the group: the sum over the ranks of a chunk, and what follows it.
Status Reduce(const AllReducePlan& plan, const KernelArgs& args, int64_t chunk) {
  const int64_t count = plan.rows * plan.local.n;
  float* const sums = plan.sums(args) + chunk * count;
  const bool direct = plan.y_dtype == DataType::kFloat && plan.residual < 0;
  float* const whole = direct ? static_cast<float*>(args.out[0]) + chunk * count : sums;
  NPUMESH_RETURN_IF_ERROR(plan.group->AllReduce(sums, whole, static_cast<uint64_t>(count),
                                                DataType::kFloat, ReduceOp::kSum, plan.node));
  if (plan.residual >= 0) {
    Normalise(plan, args, chunk * plan.rows);
  } else if (!direct) {
    StoreRow(plan.y_dtype, sums, args.out[0], chunk * count, count);
  }
  return Status();
}

// Collective over the group.
Status RunMatmulAllReduce(const AllReducePlan& plan, const KernelArgs& args) {
  const auto multiply = [&](int64_t chunk) -> Status {
    NPUMESH_RETURN_IF_ERROR(Multiply(plan, args, chunk * plan.rows));
    AddX3(plan, args, chunk * plan.rows);
    return Status();
  };
  const auto reduce = [&](int64_t chunk) { return Reduce(plan, args, chunk); };
  return plan.travel->Run(multiply, reduce);
}

}  // namespace

}  // namespace npumesh::fused

namespace npumesh {

void RegisterAllReduceMatmulOps(OpRegistry& registry) {
  using namespace fused;
  registry.Add(hcom::Collective<PlanMatmulAllReduce, RunMatmulAllReduce, PrepareMatmulAllReduce>(
      "MatmulAllReduce(x1, x2, bias?, x3?, antiquant_scale?, antiquant_offset?, dequant_scale?, "
      "pertoken_scale?, comm_quant_scale_1?, comm_quant_scale_2?; group:string, reduce_op=\"sum\", "
      "is_trans_a=false, is_trans_b=false, comm_turn=0, antiquant_group_size=0, group_size=0, "
      "y_dtype=28, comm_quant_mode=0, comm_mode=\"ai_cpu\") -> y",
      {.leaves_equal = true, .reduction = "reduce_op"}));
  registry.Add(hcom::Collective<PlanAddRmsNorm, RunMatmulAllReduce, PrepareMatmulAllReduce>(
      "MatmulAllReduceAddRmsNorm(x1, x2, bias?, residual, gamma, antiquant_scale?, "
      "antiquant_offset?, dequant_scale?; group:string, reduce_op=\"sum\", is_trans_a=false, "
      "is_trans_b=false, comm_turn=0, antiquant_group_size=0, epsilon=1e-06) -> y, norm_out",
      {.leaves_equal = true, .own_inputs = {"residual", "gamma"}, .reduction = "reduce_op"}));
}

}  // namespace npumesh
