// HcomAllReduce, HcomAllGather, HcomReduceScatter, HcomReduce and HcomBroadcast: every rank has a
// tensor of the same type.
#include "graph/ops/collective/collective.h"

#include <cstring>

namespace npumesh::hcom {
namespace {

// The members of the group, as many as the attribute rank_size says.
int64_t RankSize(const OpContext& op, Check& check) {
  const int64_t ranks = RingOf(op, check).ranks, told = op.attr_int("rank_size");
  if (told == ranks) return ranks;
  check.Keep(Error(Code::kCorrupt,
                   "{}: attribute \"rank_size\" is {}, but group \"{}\" has {} members", op.Who(),
                   told, op.attr_string("group"), ranks));
  return ranks;
}

// ---- HcomAllReduce ----

Result<Call> PlanAllReduce(const OpContext& op) {
  Check check(op);
  Call call = CallFor(op.in("x"), check);
  call.reduction = Reduction(op, check);
  CheckFusion(op, check, true);
  call.outputs = {op.in("x")};
  return check.Done(std::move(call));
}

Status RunAllReduce(const Call& call, const KernelArgs& args) {
  return call.group->AllReduce(args.in[0], args.out[0], call.count, call.wire, call.reduction,
                               call.node);
}

// ---- HcomAllGather ----

Result<Call> PlanAllGather(const OpContext& op) {
  Check check(op);
  const TensorType& x = op.in("x");
  Call call = CallFor(x, check);
  CheckFusion(op, check);
  const int64_t ranks = RankSize(op, check);
  Shape y = x.shape.rank() == 0 ? Shape{1} : x.shape;
  if (__builtin_mul_overflow(y[0], ranks, &y[0])) y[0] = INT64_MAX;  // SetOutput refuses it
  call.outputs = {{x.dtype, std::move(y)}};
  return check.Done(std::move(call));
}

Status RunAllGather(const Call& call, const KernelArgs& args) {
  return call.group->AllGather(args.in[0], args.out[0], call.count, call.wire, call.node);
}

// ---- HcomReduceScatter ----

Result<Call> PlanReduceScatter(const OpContext& op) {
  Check check(op);
  Call call = CallFor(op.in("x"), check);
  call.reduction = Reduction(op, check);
  CheckFusion(op, check);
  RankSize(op, check);
  call.outputs = {{op.in("x").dtype, DividedByRanks(op, check)}};
  return check.Done(std::move(call));
}

Status RunReduceScatter(const Call& call, const KernelArgs& args) {
  return call.group->ReduceScatter(args.in[0], args.out[0], Count(call.outputs[0]), call.wire,
                                   call.reduction, call.node);
}

// ---- HcomReduce ----

Result<Call> PlanReduce(const OpContext& op) {
  Check check(op);
  Call call = CallFor(op.in("x"), check);
  call.reduction = Reduction(op, check);
  CheckFusion(op, check);
  call.rank = RankIn(op, "root_rank", check);
  call.outputs = {op.in("x")};
  return check.Done(std::move(call));
}

// Elsewhere than at the root the output is zero, so that it is the same in every run.
Status RunReduce(const Call& call, const KernelArgs& args) {
  const uint64_t bytes = call.outputs[0].bytes();
  if (call.group->rank() != call.rank && bytes > 0) std::memset(args.out[0], 0, bytes);
  return call.group->Reduce(args.in[0], args.out[0], call.count, call.wire, call.reduction,
                            call.rank, call.node);
}

// ---- HcomBroadcast ----

struct Broadcast : Meeting {
  int root = 0;
  std::vector<DataType> wires;  // by tensor
};

Result<Broadcast> PlanBroadcast(const OpContext& op) {
  Check check(op);
  Broadcast plan;
  CheckFusion(op, check);
  plan.root = RankIn(op, "root_rank", check);
  if (op.outputs() != op.slots()) {
    check.Keep(
        Error(Code::kCorrupt, "{}: {} inputs but {} outputs", op.Who(), op.slots(), op.outputs()));
  }
  for (int i = 0; i < op.slots(); ++i) {
    plan.wires.push_back(WireType(op.in(i).dtype, check));
    plan.outputs.push_back(op.in(i));
  }
  return check.Done(std::move(plan));
}

Status RunBroadcast(const Broadcast& plan, const KernelArgs& args) {
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const TensorType& type = plan.outputs[i];
    if (plan.group->rank() == plan.root && type.bytes() > 0) {
      std::memcpy(args.out[i], args.in[i], type.bytes());
    }
    NPUMESH_RETURN_IF_ERROR(
        plan.group->Broadcast(args.out[i], Count(type), plan.wires[i], plan.root, plan.node));
  }
  return Status();
}

}  // namespace

void RegisterSameTypeOps(OpRegistry& registry) {
  registry.Add(Collective<PlanAllReduce, RunAllReduce>(
      "HcomAllReduce(x; reduction:string, group=\"hccl_world_group\", fusion=1, fusion_id=-1) -> y",
      {.leaves_equal = true, .takes = Assembly::kReduce, .reduction = "reduction"}));
  registry.Add(Collective<PlanAllGather, RunAllGather>(
      "HcomAllGather(x; rank_size:int, group=\"hccl_world_group\", fusion=0, fusion_id=-1) -> y",
      {.leaves_equal = true, .takes = Assembly::kConcatenate}));
  registry.Add(Collective<PlanReduceScatter, RunReduceScatter>(
      "HcomReduceScatter(x; reduction:string, fusion=0, fusion_id=-1, group=\"hccl_world_group\", "
      "rank_size:int) -> y",
      {.takes = Assembly::kReduce, .gives = Assembly::kConcatenate, .reduction = "reduction"}));
  registry.Add(Collective<PlanBroadcast, RunBroadcast>(
      "HcomBroadcast(x...; root_rank:int, group=\"hccl_world_group\", fusion=0, fusion_id=-1) -> "
      "y...",
      {.source = "root_rank"}));
  registry.Add(
      Collective<PlanReduce, RunReduce>("HcomReduce(x; root_rank:int, reduction:string, "
                                        "group=\"hccl_world_group\", fusion=0, fusion_id=-1) -> y",
                                        {.takes = Assembly::kReduce, .reduction = "reduction"}));
}

}  // namespace npumesh::hcom
