// HcomAllToAll, HcomAllToAllV, HcomAllToAllVC, HcomAllGatherV and HcomReduceScatterV: tensors made
// of blocks, one for each rank of the group.
#include <algorithm>
#include <cstring>

#include "graph/ops/collective.h"
#include "graph/ops/infer_checks.h"

namespace npumesh::hcom {
namespace {

// ---- HcomAllToAll, HcomAllToAllV ----

Status InferAllToAll(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(WireType(op, x.dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersOf(op));
  const auto ranks = static_cast<int64_t>(members.world_ranks.size());
  if (x.shape.rank() == 0 || x.shape[0] % ranks != 0) {
    return Error(Code::kInvalidArgument,
                 "{}: x is {}; its first dimension must be divisible by the "
                 "{} ranks of group \"{}\"",
                 op.Who(), x.ToString(), ranks, op.attr_string("group"));
  }
  return SetOutput(op, 0, x.dtype, x.shape);
}

Result<std::unique_ptr<Kernel>> MakeAllToAll(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, WireType(op, op.in("x").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersOf(op));
  const uint64_t count = Count(op.in("x")) / members.world_ranks.size();
  return MakeKernel([=, node = op.node().name](const KernelArgs& args) {
    return group->AllToAll(args.in[0], args.out[0], count, dtype, node);
  });
}

// Blocks of a vector, one for each rank of the group.
struct Blocks {
  std::vector<uint64_t> counts;
  std::vector<uint64_t> displacements;
  int64_t end = 0;  // where the last of them ends
};

// Blocks that follow each other.
std::vector<int64_t> Packed(const std::vector<int64_t>& counts) {
  std::vector<int64_t> displacements;
  int64_t next = 0;
  for (const int64_t count : counts) {
    displacements.push_back(next);
    if (__builtin_add_overflow(next, count, &next)) next = INT64_MAX;  // no block fits behind it
  }
  return displacements;
}

// Without a displacements input, or with an empty one, as TorchAir writes it for tensors that are
// not cut evenly, the blocks follow each other.
bool ArePacked(const OpContext& op, std::string_view displacements_port) {
  return !op.has(displacements_port) || op.in(displacements_port).shape == Shape{0};
}

Result<Blocks> ReadBlocks(const OpContext& op, std::string_view counts_port,
                          std::string_view displacements_port, size_t ranks) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, op.Ints(counts_port));
  std::vector<int64_t> displacements = Packed(counts);
  if (!ArePacked(op, displacements_port)) {
    NPUMESH_ASSIGN_OR_RETURN(displacements, op.Ints(displacements_port));
  }
  if (counts.size() != ranks || displacements.size() != ranks) {
    return Error(Code::kInvalidArgument,
                 "{}: \"{}\" has {} entries and \"{}\" {}, expected one for "
                 "each of the {} ranks of group \"{}\"",
                 op.Who(), counts_port, counts.size(), displacements_port, displacements.size(),
                 ranks, op.attr_string("group"));
  }
  Blocks blocks;
  for (size_t r = 0; r < ranks; ++r) {
    int64_t end = 0;
    const bool fits = counts[r] >= 0 && displacements[r] >= 0 &&
                      !__builtin_add_overflow(counts[r], displacements[r], &end);
    if (!fits) {
      return Error(Code::kInvalidArgument,
                   "{}: {} elements at {} for rank {} of \"{}\" are no block", op.Who(), counts[r],
                   displacements[r], r, counts_port);
    }
    blocks.counts.push_back(static_cast<uint64_t>(counts[r]));
    blocks.displacements.push_back(static_cast<uint64_t>(displacements[r]));
    blocks.end = std::max(blocks.end, end);
  }
  return blocks;
}

Status CheckFits(const OpContext& op, const Blocks& blocks, std::string_view port) {
  const TensorType& data = op.in(port);
  if (blocks.end <= data.shape.elements()) return Status();
  return Error(Code::kInvalidArgument, "{}: the blocks to send end at element {}, but \"{}\" is {}",
               op.Who(), blocks.end, port, data.ToString());
}

struct Exchange {
  Blocks send;
  Blocks receive;
};

Result<Exchange> PlanExchange(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersOf(op));
  const size_t ranks = members.world_ranks.size();
  Exchange exchange;
  NPUMESH_ASSIGN_OR_RETURN(exchange.send,
                           ReadBlocks(op, "send_counts", "send_displacements", ranks));
  NPUMESH_ASSIGN_OR_RETURN(exchange.receive,
                           ReadBlocks(op, "recv_counts", "recv_displacements", ranks));
  NPUMESH_RETURN_IF_ERROR(CheckFits(op, exchange.send, "send_data"));
  return exchange;
}

Status InferAllToAllV(OpContext& op) {
  const DataType dtype = op.in("send_data").dtype;
  NPUMESH_RETURN_IF_ERROR(WireType(op, dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(const Exchange exchange, PlanExchange(op));
  return SetOutput(op, 0, dtype, Shape{exchange.receive.end});
}

// Elements between the received blocks are zero, so that the output is the same in every run.
Result<std::unique_ptr<Kernel>> MakeAllToAllV(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, WireType(op, op.in("send_data").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Exchange exchange, PlanExchange(op));
  uint64_t received = 0;
  for (const uint64_t count : exchange.receive.counts) received += count;
  const bool gaps = received < static_cast<uint64_t>(exchange.receive.end);
  return MakeKernel([=, bytes = op.out(0).bytes(), node = op.node().name](const KernelArgs& args) {
    if (gaps) std::memset(args.out[0], 0, bytes);
    return group->AllToAllV(args.in[0], exchange.send.counts, exchange.send.displacements,
                            args.out[0], exchange.receive.counts, exchange.receive.displacements,
                            dtype, node);
  });
}

// ---- HcomAllToAllVC ----

// Row by row: [i * n + j] elements go from rank i to rank j.
struct CountMatrix {
  std::vector<uint64_t> counts;
  int64_t sent = 0;      // by this rank
  int64_t received = 0;  // by this rank
};

Result<CountMatrix> ReadMatrix(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> values, op.Ints("send_count_matrix"));
  const size_t ranks = members.world_ranks.size();
  if (op.attr_int("rank") != members.rank) {
    return Error(Code::kInvalidArgument, "{}: rank is {}, but this is rank {} of group \"{}\"",
                 op.Who(), op.attr_int("rank"), members.rank, op.attr_string("group"));
  }
  if (values.size() != ranks * ranks) {
    return Error(Code::kInvalidArgument,
                 "{}: \"send_count_matrix\" has {} entries, expected {} for the {} ranks of group "
                 "\"{}\"",
                 op.Who(), values.size(), ranks * ranks, ranks, op.attr_string("group"));
  }
  CountMatrix matrix;
  const auto me = static_cast<size_t>(members.rank);
  for (size_t i = 0; i < values.size(); ++i) {
    const bool fits =
        values[i] >= 0 &&
        !(i / ranks == me && __builtin_add_overflow(matrix.sent, values[i], &matrix.sent)) &&
        !(i % ranks == me && __builtin_add_overflow(matrix.received, values[i], &matrix.received));
    if (!fits) {
      return Error(Code::kInvalidArgument,
                   "{}: \"send_count_matrix\" says {} elements from rank {} to rank {}", op.Who(),
                   values[i], i / ranks, i % ranks);
    }
    matrix.counts.push_back(static_cast<uint64_t>(values[i]));
  }
  const TensorType& data = op.in("send_data");
  if (matrix.sent > data.shape.elements()) {
    return Error(Code::kInvalidArgument, "{}: {} elements are to be sent, but \"send_data\" is {}",
                 op.Who(), matrix.sent, data.ToString());
  }
  return matrix;
}

Status InferAllToAllVC(OpContext& op) {
  const DataType dtype = op.in("send_data").dtype;
  NPUMESH_RETURN_IF_ERROR(WireType(op, dtype).status());
  NPUMESH_RETURN_IF_ERROR(CheckFusion(op, false));
  NPUMESH_ASSIGN_OR_RETURN(const CountMatrix matrix, ReadMatrix(op));
  return SetOutput(op, 0, dtype, Shape{matrix.received});
}

Result<std::unique_ptr<Kernel>> MakeAllToAllVC(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, WireType(op, op.in("send_data").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const CountMatrix matrix, ReadMatrix(op));
  return MakeKernel([=, node = op.node().name](const KernelArgs& args) {
    return group->AllToAllVC(args.in[0], matrix.counts, args.out[0], dtype, node);
  });
}

// ---- HcomAllGatherV, HcomReduceScatterV ----

// The blocks of an operator whose own block is also given alone, in `own_port`.
Result<Blocks> ReadSharedBlocks(const OpContext& op, std::string_view counts_port,
                                std::string_view displacements_port, std::string_view own_port) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(op, counts_port, displacements_port,
                                                           members.world_ranks.size()));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t own, op.Int(own_port));
  const uint64_t listed = blocks.counts[static_cast<size_t>(members.rank)];
  if (own >= 0 && static_cast<uint64_t>(own) == listed) return blocks;
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, but \"{}\" says {} for this rank",
               op.Who(), own_port, own, counts_port, listed);
}

Result<Blocks> GatheredBlocks(const OpContext& op) {
  return ReadSharedBlocks(op, "recv_counts", "recv_displacements", "send_count");
}

Status InferAllGatherV(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(WireType(op, x.dtype).status());
  NPUMESH_ASSIGN_OR_RETURN(const Blocks blocks, GatheredBlocks(op));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t own, op.Int("send_count"));
  if (own > x.shape.elements()) {
    return Error(Code::kInvalidArgument, "{}: \"send_count\" is {}, but \"x\" is {}", op.Who(), own,
                 x.ToString());
  }
  return SetOutput(op, 0, x.dtype, Shape{blocks.end});
}

// Elements between the blocks are zero, so that the output is the same in every run.
Result<std::unique_ptr<Kernel>> MakeAllGatherV(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, WireType(op, op.in("x").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Blocks blocks, GatheredBlocks(op));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t own, op.Int("send_count"));
  return MakeKernel([=, bytes = op.out(0).bytes(), node = op.node().name](const KernelArgs& args) {
    if (bytes > 0) std::memset(args.out[0], 0, bytes);
    return group->AllGatherV(args.in[0], static_cast<uint64_t>(own), args.out[0], blocks.counts,
                             blocks.displacements, dtype, node);
  });
}

Result<Blocks> ScatteredBlocks(const OpContext& op) {
  return ReadSharedBlocks(op, "send_counts", "send_displacements", "recv_count");
}

Status InferReduceScatterV(OpContext& op) {
  const DataType dtype = op.in("x").dtype;
  NPUMESH_RETURN_IF_ERROR(WireType(op, dtype).status());
  NPUMESH_RETURN_IF_ERROR(Reduction(op).status());
  NPUMESH_ASSIGN_OR_RETURN(const Blocks blocks, ScatteredBlocks(op));
  NPUMESH_RETURN_IF_ERROR(CheckFits(op, blocks, "x"));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t own, op.Int("recv_count"));
  return SetOutput(op, 0, dtype, Shape{own});
}

Result<std::unique_ptr<Kernel>> MakeReduceScatterV(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, WireType(op, op.in("x").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const ReduceOp reduction, Reduction(op));
  NPUMESH_ASSIGN_OR_RETURN(const Blocks blocks, ScatteredBlocks(op));
  const uint64_t count = Count(op.out(0));
  return MakeKernel([=, node = op.node().name](const KernelArgs& args) {
    return group->ReduceScatterV(args.in[0], blocks.counts, blocks.displacements, args.out[0],
                                 count, dtype, reduction, node);
  });
}

}  // namespace

void RegisterBlockOps(OpRegistry& registry) {
  const AttrSpec group = {"group", AttrValue::String(std::string(kWorldGroup))};
  Add(registry, {"HcomAllToAll", {{"x"}}, {{"y"}}, {group}}, {}, InferAllToAll, MakeAllToAll);
  Add(registry,
      {"HcomAllToAllV",
       {{"send_data"},
        {"send_counts"},
        {"send_displacements"},
        {"recv_counts"},
        {"recv_displacements"}},
       {{"recv_data"}},
       {group}},
      {}, InferAllToAllV, MakeAllToAllV,
      {"send_counts", "send_displacements", "recv_counts", "recv_displacements"});
  Add(registry,
      {"HcomAllToAllVC",
       {{"send_data"}, {"send_count_matrix"}},
       {{"recv_data"}},
       {{"rank", Required::kInt},
        group,
        {"fusion", AttrValue::Int(0)},
        {"fusion_id", AttrValue::Int(-1)}}},
      {}, InferAllToAllVC, MakeAllToAllVC, {"send_count_matrix"});
  Add(registry,
      {"HcomAllGatherV",
       {{"x"}, {"send_count"}, {"recv_counts"}, {"recv_displacements", PortKind::kOptional}},
       {{"y"}},
       {group}},
      {.leaves_equal = true}, InferAllGatherV, MakeAllGatherV,
      {"send_count", "recv_counts", "recv_displacements"});
  Add(registry,
      {"HcomReduceScatterV",
       {{"x"}, {"recv_count"}, {"send_counts"}, {"send_displacements", PortKind::kOptional}},
       {{"y"}},
       {{"reduction", Required::kString}, group}},
      {.reduction = "reduction"}, InferReduceScatterV, MakeReduceScatterV,
      {"recv_count", "send_counts", "send_displacements"});
}

}  // namespace npumesh::hcom
