// AlltoAllMatmul and MatmulAlltoAll: rows for columns between the ranks, before a product or after
// it.
//
// Before: a rank keeps one block of rows and gets these rows' columns of all ranks. After: it keeps
// one block of columns and gets all rows of it. Large tensors go in chunks of rows, which travel
// while others are multiplied.
#include <algorithm>

#include "graph/ops/collective/chunked_exchange.h"
#include "graph/ops/collective/local_product.h"

namespace npumesh::fused {
namespace {

struct ExchangePlan : hcom::Meeting {
  Local local;  // the product of this rank; m is that of x1
  Ring ring;
  DataType y_dtype = DataType::kUndefined;
  bool gives = false;  // what the product multiplies is output 1
  // From Prepare.
  int64_t rows = 0;   // of each block in a chunk
  int64_t slice = 0;  // bytes of a row on its way
  Products product;   // of a chunk
  std::unique_ptr<RowTravel> travel;
  Workspace<std::byte> send, arrived, joined, made;

  int64_t y_row_bytes() const { return local.n * BitsOf(y_dtype) / 8; }
};

// `kJoins`: the exchange comes first and joins the columns of the ranks.
template <bool kJoins>
ExchangePlan PlanExchange(const OpContext& op, Check& check) {
  check.NotFed({"x1_scale", "x2_scale", "comm_scale", "x1_offset", "x2_offset"});
  check.OnlyZero({"x1_quant_mode", "x2_quant_mode", "comm_quant_mode"});
  ExpectFloats(op, check);
  ExchangePlan plan;
  plan.ring = RingOf(op, "world_size", check);
  plan.local = PlanLocal(op, check,
                         {.transposed_x = "transpose_x1",
                          .transposed_w = "transpose_x2",
                          .joined = kJoins ? plan.ring.ranks : 1});
  const std::vector<int64_t> told = op.attr_ints("all2all_axes");
  const std::vector<int64_t> axes = {kJoins ? -2 : -1, kJoins ? -1 : -2};
  check.Supported(!plan.local.transposed_x && (told.empty() || told == axes),
                  "transpose_x1 {} and all2all_axes {}; expected no and {}",
                  plan.local.transposed_x ? "yes" : "no", Shape(told), Shape(axes));
  plan.y_dtype = FloatTypeOf(op, "y_dtype", plan.local.x_dtype, check);
  const bool typed = plan.y_dtype == plan.local.x_dtype || plan.y_dtype == DataType::kFloat;
  const int64_t m = plan.local.m, n = plan.local.n, ranks = plan.ring.ranks;
  const int64_t split = kJoins ? m : n;
  check.That(typed && op.in("x1").shape.rank() == 2 && split % ranks == 0,
             "y_dtype {}, x1 {}, x2 {}; expected the type of x1 or float32, a matrix, and {} {} "
             "that the {} ranks can divide",
             Name(plan.y_dtype), op.in("x1"), op.in("x2"), split, kJoins ? "rows" : "columns",
             ranks);
  plan.outputs = {{plan.y_dtype, kJoins ? Shape{m / ranks, n} : Shape{m * ranks, n / ranks}}};
  if (kJoins) {
    plan.gives = op.attr_bool("alltoall_out_flag");
    const Shape joined = plan.gives ? Shape{m / ranks, plan.local.k} : Shape{0};
    plan.outputs.push_back({plan.local.x_dtype, joined});
  }
  return plan;
}

// Blocks as they lie in a tensor: by rank, then by chunk.
auto ByRank(int64_t chunks) {
  return [chunks](int64_t chunk, int64_t rank) { return rank * chunks + chunk; };
}

// Blocks as they travel: by chunk, then by rank.
auto ByChunk(int64_t ranks) {
  return [ranks](int64_t chunk, int64_t rank) { return chunk * ranks + rank; };
}

// What both Prepares do: meets the group, cuts blocks of `block` rows into chunks of together
// `bytes`, and makes the product of one.
Status PrepareChunks(const OpContext& op, int64_t block, uint64_t bytes, ExchangePlan* plan) {
  NPUMESH_RETURN_IF_ERROR(hcom::Meet(op, plan));
  const int64_t chunks = ChunksOf(block, bytes);
  plan->rows = block / chunks;
  plan->travel = std::make_unique<RowTravel>(plan->ring.ranks, chunks, plan->slice);
  return plan->product.Make(op, plan->local, plan->rows, plan->y_dtype, plan);
}

// ---- AlltoAllMatmul ----

// x1 travels from where it is; a chunk is some rows of every block.
Status PrepareExchangeMatmul(const OpContext& op, ExchangePlan* plan) {
  const int64_t ranks = plan->ring.ranks, block = plan->local.m / ranks;
  plan->slice = plan->local.x_row_bytes() / ranks;
  plan->arrived = plan->scratch.Take<std::byte>(block * ranks * plan->slice);
  if (!plan->gives) plan->joined = plan->scratch.Take<std::byte>(block * ranks * plan->slice);
  NPUMESH_RETURN_IF_ERROR(PrepareChunks(op, block, op.in("x1").bytes(), plan));
  plan->travel->SetBlocks(plan->rows, ByRank(plan->travel->chunks()), ByChunk(ranks));
  return Status();
}

// Row after row of a chunk, the slices of all ranks.
void Join(const ExchangePlan& plan, int64_t chunk, const std::byte* arrived, std::byte* to) {
  for (int64_t row = 0; row < plan.rows; ++row) {
    for (int64_t r = 0; r < plan.ring.ranks; ++r, to += plan.slice) {
      std::copy_n(arrived + plan.travel->recv_at(chunk, r) + row * plan.slice, plan.slice, to);
    }
  }
}

// Collective over the group.
Status RunExchangeMatmul(const ExchangePlan& plan, const KernelArgs& args) {
  std::byte* const arrived = plan.arrived(args);
  std::byte* const joined = plan.gives ? static_cast<std::byte*>(args.out[1]) : plan.joined(args);
  const auto multiply = [&](int64_t chunk) {
    const int64_t row = chunk * plan.rows;
    std::byte* const x = joined + row * plan.ring.ranks * plan.slice;
    Join(plan, chunk, arrived, x);
    return plan.product.Run(args, {{plan.local.x_slot, x}},
                            static_cast<std::byte*>(args.out[0]) + row * plan.y_row_bytes());
  };
  return plan.travel->Run(*plan.group, plan.node, plan.local.RowsOfX(args), arrived, Nothing(),
                          multiply);
}

// ---- MatmulAlltoAll ----

// Rows of the product are cut into the ranks' columns, and arrive where they belong.
Status PrepareMatmulExchange(const OpContext& op, ExchangePlan* plan) {
  const int64_t ranks = plan->ring.ranks, m = plan->local.m;
  plan->slice = plan->y_row_bytes() / ranks;
  NPUMESH_RETURN_IF_ERROR(PrepareChunks(op, m, op.out(0).bytes(), plan));
  plan->travel->SetBlocks(plan->rows, ByChunk(ranks), ByRank(plan->travel->chunks()));
  plan->send = plan->scratch.Take<std::byte>(m * ranks * plan->slice);
  plan->made = plan->scratch.Take<std::byte>(plan->rows * ranks * plan->slice);
  return Status();
}

// Collective over the group.
Status RunMatmulExchange(const ExchangePlan& plan, const KernelArgs& args) {
  std::byte* const send = plan.send(args);
  const auto multiply = [&](int64_t chunk) -> Status {
    const std::byte* const x = plan.local.RowsOfX(args, chunk * plan.rows);
    const std::byte* from = plan.made(args);
    NPUMESH_RETURN_IF_ERROR(plan.product.Run(args, {{plan.local.x_slot, x}}, plan.made(args)));
    for (int64_t row = 0; row < plan.rows; ++row) {
      for (int64_t r = 0; r < plan.ring.ranks; ++r, from += plan.slice) {
        std::copy_n(from, plan.slice, send + plan.travel->send_at(chunk, r) + row * plan.slice);
      }
    }
    return Status();
  };
  return plan.travel->Run(*plan.group, plan.node, send, static_cast<std::byte*>(args.out[0]),
                          multiply, Nothing());
}

}  // namespace

}  // namespace npumesh::fused

namespace npumesh {

void RegisterAllToAllMatmulOps(OpRegistry& registry) {
  using namespace fused;
  registry.Add(hcom::Collective<PlanExchange<true>, RunExchangeMatmul, PrepareExchangeMatmul>(
      "AlltoAllMatmul(x1, x2, bias?, x1_scale?, x2_scale?, comm_scale?, x1_offset?, x2_offset?; "
      "group:string, world_size:int, all2all_axes=[-2,-1], y_dtype=28, x1_quant_mode=0, "
      "x2_quant_mode=0, comm_quant_mode=0, comm_quant_dtype=28, transpose_x1=false, "
      "transpose_x2=false, group_size=0, comm_mode=\"\", x1_quant_dtype=28, "
      "alltoall_out_flag=true) -> y, all2all_out"));
  registry.Add(hcom::Collective<PlanExchange<false>, RunMatmulExchange, PrepareMatmulExchange>(
      "MatmulAlltoAll(x1, x2, bias?, x1_scale?, x2_scale?, comm_scale?, x1_offset?, x2_offset?; "
      "group:string, world_size:int, all2all_axes=[-1,-2], y_dtype=28, x1_quant_mode=0, "
      "x2_quant_mode=0, comm_quant_mode=0, comm_quant_dtype=28, transpose_x1=false, "
      "transpose_x2=false, group_size=0, comm_mode=\"\") -> y"));
}

}  // namespace npumesh
