// HcomAllToAll, HcomAllToAllV, HcomAllToAllVC, HcomAllGatherV and HcomReduceScatterV: tensors made
// of blocks, one for each rank of the group.
#include "graph/ops/collective/collective.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh::hcom {
namespace {

Call PlanAllToAll(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  Call call = CallFor(x, check);
  call.count = Count({x.dtype, DividedByRanks(op, check)});
  call.outputs = {x};
  return call;
}

Status RunAllToAll(const Call& call, const KernelArgs& args) {
  return call.group->AllToAll(args.in[0], args.out[0], call.count, call.wire, call.node);
}

// Blocks of a vector, one for each rank of the group.
struct Blocks {
  std::vector<uint64_t> counts, displacements;
  uint64_t total = 0;  // elements of all
  int64_t end = 0;     // where the last of them ends

  bool have_gaps() const { return total < static_cast<uint64_t>(end); }
};

// Blocks that follow each other.
std::vector<int64_t> Packed(const std::vector<int64_t>& counts) {
  std::vector<int64_t> displacements;
  int64_t next = 0;
  for (const int64_t count : counts) {
    displacements.push_back(next);
    if (__builtin_add_overflow(next, count, &next)) next = INT64_MAX;  // no block fits after it
  }
  return displacements;
}

// Without a displacements input, or with an empty one, as TorchAir writes it for tensors that are
// not cut evenly, the blocks follow each other.
Blocks ReadBlocks(const OpContext& op, std::string_view counts_port,
                  std::string_view displacements_port, Check& check) {
  const auto ranks = static_cast<size_t>(RingOf(op, check).ranks);
  const std::vector<int64_t> counts = check.Take(op.Ints(counts_port));
  const bool packed = !op.has(displacements_port) || op.in(displacements_port).shape == Shape{0};
  const std::vector<int64_t> displacements =
      packed ? Packed(counts) : check.Take(op.Ints(displacements_port));
  check.That(counts.size() == ranks && displacements.size() == ranks,
             "\"{}\" has {} entries and \"{}\" {}, expected one for each of the {} ranks of group "
             "\"{}\"",
             counts_port, counts.size(), displacements_port, displacements.size(), ranks,
             op.attr_string("group"));
  Blocks blocks;
  for (size_t r = 0; r < ranks && check.ok(); ++r) {
    int64_t end = 0;
    const bool fits = counts[r] >= 0 && displacements[r] >= 0 &&
                      !__builtin_add_overflow(counts[r], displacements[r], &end);
    check.That(fits, "{} elements at {} for rank {} of \"{}\" are no block", counts[r],
               displacements[r], r, counts_port);
    blocks.counts.push_back(static_cast<uint64_t>(counts[r]));
    blocks.displacements.push_back(static_cast<uint64_t>(displacements[r]));
    blocks.total += blocks.counts.back();
    blocks.end = std::max(blocks.end, end);
  }
  return blocks;
}

// Objects unless the blocks that are sent lie in `port`.
void CheckFits(const OpContext& op, const Blocks& blocks, std::string_view port, Check& check) {
  const TensorType& data = op.in(port);
  check.That(blocks.end <= data.shape.elements(),
             "the blocks to send end at element {}, but \"{}\" is {}", blocks.end, port, data);
}

struct Exchange : Call {
  Blocks send, receive;
};

Exchange PlanAllToAllV(const OpContext& op, Check& check) {
  Exchange plan{CallFor(op.in("send_data"), check), {}, {}};
  plan.send = ReadBlocks(op, "send_counts", "send_displacements", check);
  plan.receive = ReadBlocks(op, "recv_counts", "recv_displacements", check);
  CheckFits(op, plan.send, "send_data", check);
  plan.outputs = {{op.in("send_data").dtype, {plan.receive.end}}};
  return plan;
}

// Elements between the received blocks are zero, so that the output is the same in every run.
Status RunAllToAllV(const Exchange& plan, const KernelArgs& args) {
  if (plan.receive.have_gaps()) ClearOutput(plan, args, 0);
  return plan.group->AllToAllV(args.in[0], plan.send.counts, plan.send.displacements, args.out[0],
                               plan.receive.counts, plan.receive.displacements, plan.wire,
                               plan.node);
}

struct MatrixCall : Call {
  std::vector<uint64_t> matrix;  // [i * n + j] elements go from rank i to rank j
};

MatrixCall PlanAllToAllVC(const OpContext& op, Check& check) {
  const TensorType& data = op.in("send_data");
  MatrixCall plan{CallFor(data, check), {}};
  CheckFusion(op, check);
  const Ring ring = RingOf(op, check);
  const std::vector<int64_t> values = check.Take(op.Ints("send_count_matrix"));
  const std::string group = op.attr_string("group");
  const auto ranks = static_cast<size_t>(ring.ranks), me = static_cast<size_t>(ring.rank);
  check.That(op.attr_int("rank") == ring.rank, "rank is {}, but this is rank {} of group \"{}\"",
             op.attr_int("rank"), ring.rank, group);
  check.That(values.size() == ranks * ranks,
             "\"send_count_matrix\" has {} entries, expected {} for the {} ranks of group \"{}\"",
             values.size(), ranks * ranks, ranks, group);
  int64_t sent = 0, received = 0;  // by this rank
  for (size_t i = 0; i < values.size() && check.ok(); ++i) {
    const bool fits = values[i] >= 0 &&
                      !(i / ranks == me && __builtin_add_overflow(sent, values[i], &sent)) &&
                      !(i % ranks == me && __builtin_add_overflow(received, values[i], &received));
    check.That(fits, "\"send_count_matrix\" says {} elements from rank {} to rank {}", values[i],
               i / ranks, i % ranks);
    plan.matrix.push_back(static_cast<uint64_t>(values[i]));
  }
  check.That(sent <= data.shape.elements(), "{} elements are to be sent, but \"send_data\" is {}",
             sent, data);
  plan.outputs = {{data.dtype, {received}}};
  return plan;
}

Status RunAllToAllVC(const MatrixCall& plan, const KernelArgs& args) {
  return plan.group->AllToAllVC(args.in[0], plan.matrix, args.out[0], plan.wire, plan.node);
}

// The blocks of all ranks, of which the own one is also given alone.
struct SharedBlocks : Call {
  Blocks blocks;
  int64_t own = 0;
};

SharedBlocks PlanShared(const OpContext& op, std::string_view counts_port,
                        std::string_view displacements_port, std::string_view own_port,
                        Check& check) {
  SharedBlocks plan{CallFor(op.in("x"), check), {}};
  plan.blocks = ReadBlocks(op, counts_port, displacements_port, check);
  plan.own = check.Take(op.Int(own_port));
  if (!check.ok()) return plan;
  const uint64_t listed = plan.blocks.counts[static_cast<size_t>(RingOf(op, check).rank)];
  check.That(plan.own >= 0 && static_cast<uint64_t>(plan.own) == listed,
             "\"{}\" is {}, but \"{}\" says {} for this rank", own_port, plan.own, counts_port,
             listed);
  return plan;
}

SharedBlocks PlanAllGatherV(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  SharedBlocks plan = PlanShared(op, "recv_counts", "recv_displacements", "send_count", check);
  check.That(plan.own <= x.shape.elements(), "\"send_count\" is {}, but \"x\" is {}", plan.own, x);
  plan.outputs = {{x.dtype, {plan.blocks.end}}};
  return plan;
}

// Elements between the blocks are zero, so that the output is the same in every run.
Status RunAllGatherV(const SharedBlocks& plan, const KernelArgs& args) {
  ClearOutput(plan, args, 0);
  return plan.group->AllGatherV(args.in[0], static_cast<uint64_t>(plan.own), args.out[0],
                                plan.blocks.counts, plan.blocks.displacements, plan.wire,
                                plan.node);
}

SharedBlocks PlanReduceScatterV(const OpContext& op, Check& check) {
  SharedBlocks plan = PlanShared(op, "send_counts", "send_displacements", "recv_count", check);
  plan.reduction = Reduction(op, check);
  CheckFits(op, plan.blocks, "x", check);
  plan.outputs = {{op.in("x").dtype, {plan.own}}};
  return plan;
}

Status RunReduceScatterV(const SharedBlocks& plan, const KernelArgs& args) {
  return plan.group->ReduceScatterV(args.in[0], plan.blocks.counts, plan.blocks.displacements,
                                    args.out[0], static_cast<uint64_t>(plan.own), plan.wire,
                                    plan.reduction, plan.node);
}

}  // namespace

}  // namespace npumesh::hcom

namespace npumesh {

void RegisterHcomBlockOps(OpRegistry& registry) {
  using namespace hcom;
  registry.Add(PureCollective<PlanAllToAll, RunAllToAll>(
      "HcomAllToAll(x; group=\"hccl_world_group\") -> y"));
  registry.Add(PureCollective<PlanAllToAllV, RunAllToAllV>(
      "HcomAllToAllV(send_data, send_counts, send_displacements, recv_counts, recv_displacements; "
      "group=\"hccl_world_group\") -> recv_data",
      {}, {"send_counts", "send_displacements", "recv_counts", "recv_displacements"}));
  registry.Add(PureCollective<PlanAllToAllVC, RunAllToAllVC>(
      "HcomAllToAllVC(send_data, send_count_matrix; rank:int, group=\"hccl_world_group\", "
      "fusion=0, fusion_id=-1) -> recv_data",
      {}, {"send_count_matrix"}));
  registry.Add(PureCollective<PlanAllGatherV, RunAllGatherV>(
      "HcomAllGatherV(x, send_count, recv_counts, recv_displacements?; group=\"hccl_world_group\") "
      "-> y",
      {.leaves_equal = true}, {"send_count", "recv_counts", "recv_displacements"}));
  registry.Add(PureCollective<PlanReduceScatterV, RunReduceScatterV>(
      "HcomReduceScatterV(x, recv_count, send_counts, send_displacements?; reduction:string, "
      "group=\"hccl_world_group\") -> y",
      {.reduction = "reduction"}, {"recv_count", "send_counts", "send_displacements"}));
}

}  // namespace npumesh
