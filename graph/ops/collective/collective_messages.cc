// HcomSend and HcomReceive: one tensor from one rank of a group to another. Messages between two
// ranks pair in the order of the graphs; sr_tag only has to make sense. And DistributeBarrier,
// which all ranks reach before one of them goes on.
#include <cstring>

#include "graph/ops/collective/collective.h"

namespace npumesh::hcom {
namespace {

// The other rank of a message.
int PeerOf(const OpContext& op, std::string_view attribute, Check& check) {
  const int peer = RankIn(op, attribute, check);
  check.That(op.attr_int("sr_tag") >= 0, "sr_tag is {}, expected 0 or more", op.attr_int("sr_tag"));
  check.That(peer != RingOf(op, check).rank, "{} {} is this rank itself", attribute, peer);
  return peer;
}

Result<Call> PlanSend(const OpContext& op) {
  Check check(op);
  Call call = CallFor(op.in("x"), check);
  call.rank = PeerOf(op, "dest_rank", check);
  return check.Done(std::move(call));
}

Status RunSend(const Call& call, const KernelArgs& args) {
  return call.group->Send(args.in[0], call.count, call.wire, call.rank, call.node);
}

Result<Call> PlanReceive(const OpContext& op) {
  Check check(op);
  Call call;
  call.rank = PeerOf(op, "src_rank", check);
  const DataType dtype = check.Take(op.attr_dtype("dtype"));
  call.wire = WireType(dtype, check);
  const std::vector<int64_t> shape = op.attr_ints("shape");
  for (const int64_t dimension : shape) {
    check.That(dimension > 0, "shape has a dimension of {}, expected 1 or more", dimension);
  }
  call.outputs = {{dtype, Shape(shape)}};
  return check.Done(std::move(call));
}

Status RunReceive(const Call& call, const KernelArgs& args) {
  return call.group->Recv(args.out[0], Count(call.outputs[0]), call.wire, call.rank, call.node);
}

// The limit of time_out is that of every collective, HCCL_EXEC_TIMEOUT.
Result<Meeting> PlanBarrier(const OpContext& op) {
  Check check(op);
  const int64_t ranks = RingOf(op, check).ranks;
  check.That(op.attr_int("world_size") == ranks, "world_size {}, but group \"{}\" has {} ranks",
             op.attr_int("world_size"), op.attr_string("group"), ranks);
  check.NotFed({"elastic_info"});
  Meeting plan;
  plan.outputs = {op.in("x_ref")};
  return check.Done(std::move(plan));
}

Status RunBarrier(const Meeting& plan, const KernelArgs& args) {
  NPUMESH_RETURN_IF_ERROR(plan.group->Barrier(plan.node));
  const uint64_t bytes = plan.outputs[0].bytes();
  if (bytes > 0) std::memcpy(args.out[0], args.in[0], bytes);
  return Status();
}

}  // namespace

void RegisterMessageOps(OpRegistry& registry) {
  Operator send = Collective<PlanSend, RunSend>(
      "HcomSend(x; group=\"hccl_world_group\", sr_tag:int, dest_rank:int) ->",
      {.peer = "dest_rank"});
  send.side_effect = true;
  registry.Add(std::move(send));
  registry.Add(
      Collective<PlanReceive, RunReceive>("HcomReceive(; group=\"hccl_world_group\", sr_tag:int, "
                                          "src_rank:int, shape:ints, dtype:type) -> y",
                                          {.peer = "src_rank"}));
  Operator barrier = Collective<PlanBarrier, RunBarrier>(
      "DistributeBarrier(x_ref, time_out?, elastic_info?; group:string, world_size:int) -> x_ref");
  barrier.side_effect = true;
  registry.Add(std::move(barrier));
}

}  // namespace npumesh::hcom
