// QuantAllReduce and QuantReduceScatter: the sum over the ranks of 8-bit tensors with scales.
//
// Rows travel as 8-bit numbers, each with its scales after it, to the ranks that want their sum,
// and are widened and summed there in the order of the ranks, rounded once. Large tensors go in
// chunks of rows: one is packed, or summed, while others are on their way.
#include <algorithm>

#include "graph/ops/collective/chunked_exchange.h"
#include "graph/ops/collective/local_product.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh::fused {
namespace {

constexpr int64_t kGroup = 128;      // elements with one float32 scale
constexpr int64_t kSmallGroup = 32;  // elements with one power of two (FLOAT8 E8M0)

struct ReducePlan : hcom::Meeting {
  Ring ring;
  bool scatters = false;
  int64_t rows = 0, width = 0;
  DataType x_dtype = DataType::kUndefined, y_dtype = DataType::kUndefined;
  DataType scale_dtype = DataType::kUndefined;
  // From Prepare.
  int64_t chunk_rows = 0;  // of each block in a chunk
  std::unique_ptr<RowTravel> travel;
  Workspace<std::byte> send, recv;
  Workspace<float> sum, term, scales;  // a row each

  bool powers() const { return scale_dtype == DataType::kFloat8E8M0; }  // scales are powers of two
  int64_t group_size() const { return powers() ? kSmallGroup : kGroup; }
  // Bytes of a row's scales are the same in both forms.
  int64_t scale_bytes() const { return width / kSmallGroup; }
  int64_t record_bytes() const { return width + scale_bytes(); }
  int64_t block() const { return scatters ? rows / ring.ranks : rows; }  // rows of y
};

// [.., H/128] float32, or [.., H/64, 2] powers of two.
Shape ScalesOf(const Shape& x, bool powers) {
  Shape shape = x;
  shape.mutable_dims().back() /= powers ? 2 * kSmallGroup : kGroup;
  if (powers) shape.mutable_dims().push_back(2);
  return shape;
}

template <bool kScatters>
ReducePlan PlanQuantReduce(const OpContext& op, Check& check) {
  ExpectSum(op, check);
  ReducePlan plan;
  plan.scatters = kScatters;
  plan.ring = RingOf(op, "world_size", check);
  plan.y_dtype = check.Take(op.attr_dtype("output_dtype"));
  const TensorType &x = op.in("x"), &scales = op.in("scales");
  plan.x_dtype = x.dtype;
  plan.scale_dtype = scales.dtype;
  const bool typed =
      (x.dtype == DataType::kInt8 || kEightBitFloats.Contains(x.dtype)) &&
      (scales.dtype == DataType::kFloat || (plan.powers() && kFloat8.Contains(x.dtype)));
  check.Supported(typed && kFloats.Contains(plan.y_dtype),
                  "x is {}, scales {} and output_dtype {}; expected int8 or an 8-bit float "
                  "with float32 scales, or float8 with float8_e8m0 ones, and a float type",
                  Name(x.dtype), Name(scales.dtype), Name(plan.y_dtype));
  const int rank = x.shape.rank();
  bool fits = rank >= 2 && rank <= 3 && x.shape[rank - 1] % kGroup == 0 &&
              scales.shape == ScalesOf(x.shape, plan.powers());
  if (fits) {
    plan.width = x.shape[rank - 1];
    plan.rows = ElementsBetween(x.shape, 0, rank - 1);
    fits = !kScatters || plan.rows % plan.ring.ranks == 0;
  }
  check.That(fits,
             "x is {} and scales {} on {} ranks; expected [rows,H] or [b,s,H], H a multiple of {}, "
             "scales for {} elements each{}",
             x, scales, plan.ring.ranks, kGroup, plan.group_size(),
             kScatters ? ", and rows that the ranks can divide" : "");
  plan.outputs = {{plan.y_dtype, kScatters ? Shape{plan.block(), plan.width} : x.shape}};
  return plan;
}

// First of the rows of a chunk for a rank. All ranks get the same ones unless they are scattered.
int64_t FirstRow(const ReducePlan& plan, int64_t chunk, int64_t rank) {
  return (plan.scatters ? rank * plan.block() : 0) + chunk * plan.chunk_rows;
}

Status PrepareQuantReduce(const OpContext& op, ReducePlan* plan) {
  NPUMESH_RETURN_IF_ERROR(hcom::Meet(op, plan));
  const int64_t bytes = plan->rows * plan->record_bytes(), ranks = plan->ring.ranks;
  const int64_t chunks = ChunksOf(plan->block(), static_cast<uint64_t>(bytes));
  plan->chunk_rows = plan->block() / chunks;
  plan->travel = std::make_unique<RowTravel>(ranks, chunks, plan->record_bytes());
  plan->travel->SetBlocks(
      plan->chunk_rows,
      [&](int64_t chunk, int64_t r) { return (plan->scatters ? r * chunks : 0) + chunk; },
      [&](int64_t chunk, int64_t r) { return chunk * ranks + r; });
  plan->send = plan->scratch.Take<std::byte>(bytes);
  plan->recv = plan->scratch.Take<std::byte>(ranks * plan->block() * plan->record_bytes());
  plan->scratch.Take(plan->width, {&plan->sum, &plan->term, &plan->scales});
  return Status();
}

// A chunk's rows, each with its scales after it.
void Pack(const ReducePlan& plan, const KernelArgs& args, int64_t chunk) {
  const auto* x = static_cast<const std::byte*>(args.in[0]);
  const auto* scales = static_cast<const std::byte*>(args.in[1]);
  for (int64_t r = 0; r < (plan.scatters ? plan.ring.ranks : 1); ++r) {
    const int64_t first = FirstRow(plan, chunk, r);
    for (int64_t row = first; row < first + plan.chunk_rows; ++row) {
      std::byte* to = plan.send(args) + row * plan.record_bytes();
      to = std::copy_n(x + row * plan.width, plan.width, to);
      std::copy_n(scales + row * plan.scale_bytes(), plan.scale_bytes(), to);
    }
  }
}

// Adds a row with its scales after it.
void Add(const ReducePlan& plan, const KernelArgs& args, const std::byte* record, float* sum) {
  const int64_t width = plan.width, group = plan.group_size();
  float *term = plan.term(args), *scales = plan.scales(args);
  LoadNumbers(plan.x_dtype, record, 0, width, term);
  LoadNumbers(plan.scale_dtype, record + width, 0, width / group, scales);
  for (int64_t i = 0; i < width; i += group) {
    const float scale = scales[i / group];
    for (int64_t j = i; j < i + group; ++j) sum[j] += term[j] * scale;
  }
}

// A chunk's rows, summed in the order of the ranks.
void Sum(const ReducePlan& plan, const KernelArgs& args, int64_t chunk) {
  float* const sum = plan.sum(args);
  for (int64_t row = 0; row < plan.chunk_rows; ++row) {
    std::fill_n(sum, plan.width, 0.0f);
    for (int64_t r = 0; r < plan.ring.ranks; ++r) {
      const std::byte* block = plan.recv(args) + plan.travel->recv_at(chunk, r);
      Add(plan, args, block + row * plan.record_bytes(), sum);
    }
    StoreRow(plan.y_dtype, sum, args.out[0], (chunk * plan.chunk_rows + row) * plan.width,
             plan.width);
  }
}

// Collective over the group.
Status RunQuantReduce(const ReducePlan& plan, const KernelArgs& args) {
  const auto pack = [&](int64_t chunk) { Pack(plan, args, chunk); };
  const auto sum = [&](int64_t chunk) { Sum(plan, args, chunk); };
  return plan.travel->Run(*plan.group, plan.node, plan.send(args), plan.recv(args), pack, sum);
}

}  // namespace

}  // namespace npumesh::fused

namespace npumesh {

void RegisterQuantReductionOps(OpRegistry& registry) {
  using namespace fused;
  registry.Add(hcom::Collective<PlanQuantReduce<false>, RunQuantReduce, PrepareQuantReduce>(
      "QuantAllReduce(x, scales; group:string, reduce_op=\"sum\", output_dtype=27, world_size:int) "
      "-> out_put",
      {.leaves_equal = true, .reduction = "reduce_op"}));
  // Its prototype says that world_size is a string.
  registry.Add(hcom::Collective<PlanQuantReduce<true>, RunQuantReduce, PrepareQuantReduce>(
      "QuantReduceScatter(x, scales; group:string, reduce_op=\"sum\", output_dtype=27, "
      "world_size:any) -> out_put",
      {.gives = Assembly::kConcatenate, .reduction = "reduce_op"}));
}

}  // namespace npumesh
