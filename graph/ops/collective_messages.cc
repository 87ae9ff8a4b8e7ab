// HcomSend and HcomReceive: one tensor from one rank of a group to another. Messages between two
// ranks pair in the order of the graphs; sr_tag only has to make sense. And DistributeBarrier,
// which all ranks reach before one of them goes on.
#include <cstring>

#include "graph/ops/collective.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"

namespace npumesh::hcom {
namespace {

// The other rank of a message.
Result<int> PeerOf(const OpContext& op, std::string_view attribute) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const int peer, RankIn(op, attribute));
  if (op.attr_int("sr_tag") < 0) {
    return Error(Code::kInvalidArgument, "{}: sr_tag is {}, expected 0 or more", op.Who(),
                 op.attr_int("sr_tag"));
  }
  if (peer == members.rank) {
    return Error(Code::kInvalidArgument, "{}: {} {} is this rank itself", op.Who(), attribute,
                 peer);
  }
  return peer;
}

Status InferSend(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(WireType(op, op.in("x").dtype).status());
  return PeerOf(op, "dest_rank").status();
}

Result<std::unique_ptr<Kernel>> MakeSend(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, WireType(op, op.in("x").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const int peer, PeerOf(op, "dest_rank"));
  const uint64_t count = Count(op.in("x"));
  return MakeKernel([=, node = op.node().name](const KernelArgs& args) {
    return group->Send(args.in[0], count, dtype, peer, node);
  });
}

Status InferReceive(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(PeerOf(op, "src_rank").status());
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype("dtype"));
  NPUMESH_RETURN_IF_ERROR(WireType(op, dtype).status());
  const std::vector<int64_t> shape = op.attr_ints("shape");
  for (const int64_t dimension : shape) {
    if (dimension > 0) continue;
    return Error(Code::kInvalidArgument, "{}: shape has a dimension of {}, expected 1 or more",
                 op.Who(), dimension);
  }
  return SetOutput(op, 0, dtype, Shape(shape));
}

Result<std::unique_ptr<Kernel>> MakeReceive(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, WireType(op, op.out(0).dtype));
  NPUMESH_ASSIGN_OR_RETURN(const int peer, PeerOf(op, "src_rank"));
  const uint64_t count = Count(op.out(0));
  return MakeKernel([=, node = op.node().name](const KernelArgs& args) {
    return group->Recv(args.out[0], count, dtype, peer, node);
  });
}

// The limit of time_out is that of every collective, HCCL_EXEC_TIMEOUT.
Status InferBarrier(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersOf(op));
  const auto ranks = static_cast<int64_t>(members.world_ranks.size());
  if (op.attr_int("world_size") != ranks) {
    return Error(Code::kInvalidArgument, "{}: world_size {}, but group \"{}\" has {} ranks",
                 op.Who(), op.attr_int("world_size"), op.attr_string("group"), ranks);
  }
  if (SlotIfFed(op, "elastic_info") >= 0) {
    return Error(Code::kUnsupported, "{}: the input \"elastic_info\" is not supported", op.Who());
  }
  return SetOutput(op, 0, op.in("x_ref").dtype, op.in("x_ref").shape);
}

Result<std::unique_ptr<Kernel>> MakeBarrier(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  const uint64_t bytes = op.out(0).bytes();
  return MakeKernel([=, node = op.node().name](const KernelArgs& args) {
    NPUMESH_RETURN_IF_ERROR(group->Barrier(node));
    if (bytes > 0) std::memcpy(args.out[0], args.in[0], bytes);
    return Status();
  });
}

}  // namespace

void RegisterMessageOps(OpRegistry& registry) {
  const AttrSpec group = {"group", AttrValue::String(std::string(kWorldGroup))};
  const AttrSpec tag = {"sr_tag", Required::kInt};
  registry.Add({.schema = {"HcomSend", {{"x"}}, {}, {group, tag, {"dest_rank", Required::kInt}}},
                .infer = InferSend,
                .make_kernel = MakeSend,
                .collective = CollectiveTrait{.peer = "dest_rank"},
                .side_effect = true});
  Add(registry,
      {"HcomReceive",
       {},
       {{"y"}},
       {group,
        tag,
        {"src_rank", Required::kInt},
        {"shape", Required::kInts},
        {"dtype", Required::kType}}},
      {.peer = "src_rank"}, InferReceive, MakeReceive);
  registry.Add({.schema = {"DistributeBarrier",
                           {{"x_ref"},
                            {"time_out", PortKind::kOptional},
                            {"elastic_info", PortKind::kOptional}},
                           {{"x_ref"}},
                           {{"group", Required::kString}, {"world_size", Required::kInt}}},
                .infer = InferBarrier,
                .make_kernel = MakeBarrier,
                .collective = CollectiveTrait(),
                .side_effect = true});
}

}  // namespace npumesh::hcom
