// HcomSend and HcomReceive: one tensor from one rank of a group to another. Messages between two
// ranks pair in the order of the graphs; sr_tag only has to make sense.
#include "graph/ops/collective.h"
#include "graph/ops/infer_checks.h"

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

}  // namespace

void RegisterMessageOps(OpRegistry& registry) {
  const AttrSpec group = {"group", AttrValue::String(std::string(kWorldGroup))};
  const AttrSpec tag = {"sr_tag", std::nullopt};
  registry.Add({.schema = {"HcomSend", {{"x"}}, {}, {group, tag, {"dest_rank", std::nullopt}}},
                .infer = InferSend,
                .make_kernel = MakeSend,
                .collective = true,
                .side_effect = true});
  Add(registry,
      {"HcomReceive",
       {},
       {{"y"}},
       {group, tag, {"src_rank", std::nullopt}, {"shape", std::nullopt}, {"dtype", std::nullopt}}},
      InferReceive, MakeReceive);
}

}  // namespace npumesh::hcom
