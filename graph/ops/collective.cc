// The Hcom operators: collectives over a group of ranks. HCCL reference 5.1.
//
// The communicator of the group is asked for when the kernel is made, which is collective over the
// group; every call carries the node's name, which stands in the messages of all ranks. bool
// travels as int8.
#include <algorithm>
#include <cstring>

#include "graph/ops/infer_checks.h"
#include "graph/ops/op_registry.h"

namespace npumesh {
namespace {

// ---- what the operators have in common ----

Result<Communicator*> GroupOf(const OpContext& op) {
  const std::string group = op.attr_string("group");
  if (op.groups() == nullptr) {
    return Error(Code::kUnsupported,
                 "{}: group \"{}\" cannot be opened, this graph runs without "
                 "other ranks",
                 op.Who(), group);
  }
  Result<Communicator*> communicator = op.groups()->Group(group);
  if (!communicator.ok()) return communicator.status().WithContext(op.Who());
  return communicator;
}

// Members of the node's group, of whom this rank must be one.
Result<GroupProvider::Members> MembersOf(const OpContext& op) {
  const std::string group = op.attr_string("group");
  if (op.groups() == nullptr) {
    return Error(Code::kUnsupported,
                 "{}: the members of group \"{}\" are unknown, this graph runs "
                 "without other ranks",
                 op.Who(), group);
  }
  Result<GroupProvider::Members> members = op.groups()->MembersOf(group);
  if (!members.ok()) return members.status().WithContext(op.Who());
  if (members->rank < 0) {
    return Error(Code::kInvalidArgument, "{}: this rank is no member of group \"{}\"", op.Who(),
                 group);
  }
  return members;
}

// The attribute rank_size, which must be the number of members.
Result<int64_t> RankSize(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersOf(op));
  const int64_t rank_size = op.attr_int("rank_size");
  if (rank_size != static_cast<int64_t>(members.world_ranks.size())) {
    return Error(Code::kCorrupt,
                 "{}: attribute \"rank_size\" is {}, but group \"{}\" has {} members", op.Who(),
                 rank_size, op.attr_string("group"), members.world_ranks.size());
  }
  return rank_size;
}

// Fusion joins collectives on hardware; here it changes nothing but must make sense.
Status CheckFusion(const OpContext& op, bool by_gradients) {
  const int64_t fusion = op.attr_int("fusion");
  const int64_t id = op.attr_int("fusion_id");
  const bool known = fusion == 0 || fusion == 2 || (fusion == 1 && by_gradients);
  if (known && (fusion != 2 || (id >= 0 && id <= INT32_MAX))) return Status();
  return Error(Code::kInvalidArgument,
               "{}: fusion {} with fusion_id {}; expected fusion 0{} or 2, "
               "and for 2 an id of 0 or more",
               op.Who(), fusion, id, by_gradients ? ", 1" : "");
}

Result<ReduceOp> Reduction(const OpContext& op) {
  const std::string name = op.attr_string("reduction");
  if (name == "sum") return ReduceOp::kSum;
  if (name == "prod") return ReduceOp::kProd;
  if (name == "max") return ReduceOp::kMax;
  if (name == "min") return ReduceOp::kMin;
  return Error(Code::kInvalidArgument, "{}: reduction \"{}\", expected sum, prod, max or min",
               op.Who(), name);
}

// The dtype on the wire. Errors: kUnsupported for what collectives cannot carry.
Result<DataType> WireType(const OpContext& op, DataType dtype) {
  if (dtype == DataType::kBool) return DataType::kInt8;
  if (IsInteger(dtype) || IsFloating(dtype)) return dtype;
  return Error(Code::kUnsupported, "{}: tensors of {} cannot be sent", op.Who(), Name(dtype));
}

uint64_t Count(const TensorType& type) {
  return static_cast<uint64_t>(type.shape.elements());
}

// ---- HcomAllReduce ----

Status InferAllReduce(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(WireType(op, x.dtype).status());
  NPUMESH_RETURN_IF_ERROR(Reduction(op).status());
  NPUMESH_RETURN_IF_ERROR(CheckFusion(op, true));
  return SetOutput(op, 0, x.dtype, x.shape);
}

Result<std::unique_ptr<Kernel>> MakeAllReduce(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, WireType(op, op.in("x").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const ReduceOp reduction, Reduction(op));
  const uint64_t count = Count(op.in("x"));
  return MakeKernel([=, node = op.node().name](const KernelArgs& args) {
    return group->AllReduce(args.in[0], args.out[0], count, dtype, reduction, node);
  });
}

// ---- HcomAllGather, HcomReduceScatter ----

Status InferAllGather(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(WireType(op, x.dtype).status());
  NPUMESH_RETURN_IF_ERROR(CheckFusion(op, false));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t ranks, RankSize(op));
  Shape y = x.shape.rank() == 0 ? Shape{1} : x.shape;
  if (__builtin_mul_overflow(y[0], ranks, &y[0])) y[0] = INT64_MAX;  // refused by SetOutput
  return SetOutput(op, 0, x.dtype, std::move(y));
}

Result<std::unique_ptr<Kernel>> MakeAllGather(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, WireType(op, op.in("x").dtype));
  const uint64_t count = Count(op.in("x"));
  return MakeKernel([=, node = op.node().name](const KernelArgs& args) {
    return group->AllGather(args.in[0], args.out[0], count, dtype, node);
  });
}

Status InferReduceScatter(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(WireType(op, x.dtype).status());
  NPUMESH_RETURN_IF_ERROR(Reduction(op).status());
  NPUMESH_RETURN_IF_ERROR(CheckFusion(op, false));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t ranks, RankSize(op));
  if (x.shape.rank() == 0 || x.shape[0] % ranks != 0) {
    return Error(Code::kInvalidArgument,
                 "{}: x is {}; its first dimension must be divisible by the "
                 "{} ranks of group \"{}\"",
                 op.Who(), x.ToString(), ranks, op.attr_string("group"));
  }
  Shape y = x.shape;
  y[0] /= ranks;
  return SetOutput(op, 0, x.dtype, std::move(y));
}

Result<std::unique_ptr<Kernel>> MakeReduceScatter(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, WireType(op, op.in("x").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const ReduceOp reduction, Reduction(op));
  const uint64_t count = Count(op.out(0));
  return MakeKernel([=, node = op.node().name](const KernelArgs& args) {
    return group->ReduceScatter(args.in[0], args.out[0], count, dtype, reduction, node);
  });
}

// ---- HcomBroadcast ----

Status InferBroadcast(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckFusion(op, false));
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersOf(op));
  const int64_t root = op.attr_int("root_rank");
  if (root < 0 || root >= static_cast<int64_t>(members.world_ranks.size())) {
    return Error(Code::kInvalidArgument,
                 "{}: root_rank {} is outside of group \"{}\" with {} "
                 "members",
                 op.Who(), root, op.attr_string("group"), members.world_ranks.size());
  }
  if (op.outputs() != op.slots()) {
    return Error(Code::kCorrupt, "{}: {} inputs but {} outputs", op.Who(), op.slots(),
                 op.outputs());
  }
  for (int i = 0; i < op.slots(); ++i) {
    NPUMESH_RETURN_IF_ERROR(WireType(op, op.in(i).dtype).status());
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, i, op.in(i).dtype, op.in(i).shape));
  }
  return Status();
}

// One tensor of a broadcast.
struct Parcel {
  uint64_t count = 0;
  uint64_t bytes = 0;
  DataType dtype = DataType::kUndefined;
};

Result<std::unique_ptr<Kernel>> MakeBroadcast(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  const auto root = static_cast<int>(op.attr_int("root_rank"));
  std::vector<Parcel> parcels;
  for (int i = 0; i < op.slots(); ++i) {
    NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, WireType(op, op.in(i).dtype));
    parcels.push_back({Count(op.in(i)), op.in(i).bytes(), dtype});
  }
  return MakeKernel([=, node = op.node().name](const KernelArgs& args) {
    for (size_t i = 0; i < parcels.size(); ++i) {
      const Parcel& parcel = parcels[i];
      if (group->rank() == root && parcel.bytes > 0) {
        std::memcpy(args.out[i], args.in[i], parcel.bytes);
      }
      NPUMESH_RETURN_IF_ERROR(
          group->Broadcast(args.out[i], parcel.count, parcel.dtype, root, node));
    }
    return Status();
  });
}

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
  const uint64_t count = Count(op.in("x")) / static_cast<uint64_t>(group->size());
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

Result<Blocks> ReadBlocks(const OpContext& op, std::string_view counts_port,
                          std::string_view displacements_port, size_t ranks) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, op.Ints(counts_port));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> displacements, op.Ints(displacements_port));
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
  const TensorType& data = op.in("send_data");
  if (exchange.send.end > data.shape.elements()) {
    return Error(Code::kInvalidArgument,
                 "{}: the blocks to send end at element {}, but "
                 "\"send_data\" is {}",
                 op.Who(), exchange.send.end, data.ToString());
  }
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

void AddCollective(OpRegistry& registry, OpSchema schema, InferFn infer, MakeKernelFn make,
                   std::vector<std::string_view> value_inputs = {}) {
  registry.Add({.schema = std::move(schema),
                .infer = std::move(infer),
                .make_kernel = std::move(make),
                .value_inputs = std::move(value_inputs),
                .collective = true});
}

}  // namespace

void RegisterCollectiveOps(OpRegistry& registry) {
  const AttrSpec group = {"group", AttrValue::String(std::string(kWorldGroup))};
  const AttrSpec reduction = {"reduction", std::nullopt};
  const AttrSpec rank_size = {"rank_size", std::nullopt};
  const AttrSpec fusion = {"fusion", AttrValue::Int(0)};
  const AttrSpec fusion_by_gradients = {"fusion", AttrValue::Int(1)};
  const AttrSpec fusion_id = {"fusion_id", AttrValue::Int(-1)};
  AddCollective(
      registry,
      {"HcomAllReduce", {{"x"}}, {{"y"}}, {reduction, group, fusion_by_gradients, fusion_id}},
      InferAllReduce, MakeAllReduce);
  AddCollective(registry,
                {"HcomAllGather", {{"x"}}, {{"y"}}, {rank_size, group, fusion, fusion_id}},
                InferAllGather, MakeAllGather);
  AddCollective(
      registry,
      {"HcomReduceScatter", {{"x"}}, {{"y"}}, {reduction, fusion, fusion_id, group, rank_size}},
      InferReduceScatter, MakeReduceScatter);
  AddCollective(registry,
                {"HcomBroadcast",
                 {{"x", PortKind::kDynamic}},
                 {{"y", PortKind::kDynamic}},
                 {{"root_rank", std::nullopt}, group, fusion, fusion_id}},
                InferBroadcast, MakeBroadcast);
  AddCollective(registry, {"HcomAllToAll", {{"x"}}, {{"y"}}, {group}}, InferAllToAll, MakeAllToAll);
  AddCollective(registry,
                {"HcomAllToAllV",
                 {{"send_data"},
                  {"send_counts"},
                  {"send_displacements"},
                  {"recv_counts"},
                  {"recv_displacements"}},
                 {{"recv_data"}},
                 {group}},
                InferAllToAllV, MakeAllToAllV,
                {"send_counts", "send_displacements", "recv_counts", "recv_displacements"});
}

}  // namespace npumesh
