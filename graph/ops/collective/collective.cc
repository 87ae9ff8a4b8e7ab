// HcomAllReduce, HcomAllGather, HcomReduceScatter, HcomReduce and HcomBroadcast: every rank has a
// tensor of the same type. HcomSend and HcomReceive: one tensor from one rank of a group to
// another. And DistributeBarrier, which all ranks reach before one of them goes on.
#include "graph/ops/collective/collective.h"

#include <cstring>

#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh::hcom {

Status Meet(const OpContext& op, Meeting* plan) {
  return MeetGroup(op, "group", plan);
}

Status MeetGroup(const OpContext& op, std::string_view attribute, Meeting* plan) {
  plan->node = op.node().name;
  const std::string group = op.attr_string(attribute);
  if (op.groups() == nullptr) {
    return Error(Code::kUnsupported,
                 "{}: group \"{}\" cannot be opened, this graph runs without other ranks", op.Who(),
                 group);
  }
  const Result<Communicator*> communicator = op.groups()->Group(group);
  if (!communicator.ok()) return communicator.status().WithContext(op.Who());
  plan->group = *communicator;
  return Status();
}

Ring RingOf(const OpContext& op, Check& check, std::string_view attribute) {
  const std::string group = op.attr_string(attribute);
  check.Supported(op.groups() != nullptr,
                  "the members of group \"{}\" are unknown, this graph runs without other ranks",
                  group);
  if (!check.ok()) return {};
  const Result<GroupProvider::Members> members = op.groups()->MembersOf(group);
  if (!members.ok()) check.Keep(members.status().WithContext(op.Who()));
  check.That(!members.ok() || members->rank >= 0, "this rank is no member of group \"{}\"", group);
  if (!check.ok()) return {};
  return {static_cast<int64_t>(members->world_ranks.size()), members->rank};
}

DataType WireType(DataType dtype, Check& check) {
  if (dtype == DataType::kBool) return DataType::kInt8;
  check.Supported(IsInteger(dtype) || IsFloating(dtype), "tensors of {} cannot be sent",
                  Name(dtype));
  return dtype;
}

Call CallFor(const TensorType& x, Check& check) {
  Call call;
  call.wire = WireType(x.dtype, check);
  call.count = Count(x);
  return call;
}

void CheckFusion(const OpContext& op, Check& check, bool by_gradients) {
  const int64_t fusion = op.attr_int("fusion"), id = op.attr_int("fusion_id");
  const bool known = fusion == 0 || fusion == 2 || (fusion == 1 && by_gradients);
  check.That(known && (fusion != 2 || (id >= 0 && id <= INT32_MAX)),
             "fusion {} with fusion_id {}; expected fusion 0{} or 2, and for 2 an id of 0 or more",
             fusion, id, by_gradients ? ", 1" : "");
}

ReduceOp Reduction(const OpContext& op, Check& check) {
  const std::string name = op.attr_string("reduction");
  if (name == "prod") return ReduceOp::kProd;
  if (name == "max") return ReduceOp::kMax;
  if (name == "min") return ReduceOp::kMin;
  check.That(name == "sum", "reduction \"{}\", expected sum, prod, max or min", name);
  return ReduceOp::kSum;
}

Shape DividedByRanks(const OpContext& op, Check& check) {
  const int64_t ranks = RingOf(op, check).ranks;
  Shape shape = op.in("x").shape;
  const bool fits = shape.rank() > 0 && shape[0] % ranks == 0;
  check.That(fits, "x is {}; its first dimension must be divisible by the {} ranks of group \"{}\"",
             op.in("x"), ranks, op.attr_string("group"));
  if (fits) shape[0] /= ranks;
  return shape;
}

uint64_t Count(const TensorType& type) {
  return static_cast<uint64_t>(type.shape.elements());
}

namespace {

// A rank of the group in an attribute.
int RankIn(const OpContext& op, std::string_view attribute, Check& check) {
  const int64_t ranks = RingOf(op, check).ranks, rank = op.attr_int(attribute);
  check.That(rank >= 0 && rank < ranks, "{} {} is outside of group \"{}\" with {} members",
             attribute, rank, op.attr_string("group"), ranks);
  return static_cast<int>(rank);
}

// The members of the group, as many as the attribute rank_size says.
int64_t RankSize(const OpContext& op, Check& check) {
  const int64_t ranks = RingOf(op, check).ranks, told = op.attr_int("rank_size");
  check.Consistent(told == ranks, "attribute \"rank_size\" is {}, but group \"{}\" has {} members",
                   told, op.attr_string("group"), ranks);
  return ranks;
}

Call PlanAllReduce(const OpContext& op, Check& check) {
  Call call = CallFor(op.in("x"), check);
  call.reduction = Reduction(op, check);
  CheckFusion(op, check, true);
  call.outputs = {op.in("x")};
  return call;
}

Status RunAllReduce(const Call& call, const KernelArgs& args) {
  return call.group->AllReduce(args.in[0], args.out[0], call.count, call.wire, call.reduction,
                               call.node);
}

Call PlanAllGather(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  Call call = CallFor(x, check);
  CheckFusion(op, check);
  const int64_t ranks = RankSize(op, check);
  Shape y = x.shape.rank() == 0 ? Shape{1} : x.shape;
  if (__builtin_mul_overflow(y[0], ranks, &y[0])) y[0] = INT64_MAX;  // SetOutput refuses it
  call.outputs = {{x.dtype, std::move(y)}};
  return call;
}

Status RunAllGather(const Call& call, const KernelArgs& args) {
  return call.group->AllGather(args.in[0], args.out[0], call.count, call.wire, call.node);
}

Call PlanReduceScatter(const OpContext& op, Check& check) {
  Call call = CallFor(op.in("x"), check);
  call.reduction = Reduction(op, check);
  CheckFusion(op, check);
  RankSize(op, check);
  call.outputs = {{op.in("x").dtype, DividedByRanks(op, check)}};
  return call;
}

Status RunReduceScatter(const Call& call, const KernelArgs& args) {
  return call.group->ReduceScatter(args.in[0], args.out[0], Count(call.outputs[0]), call.wire,
                                   call.reduction, call.node);
}

Call PlanReduce(const OpContext& op, Check& check) {
  Call call = CallFor(op.in("x"), check);
  call.reduction = Reduction(op, check);
  CheckFusion(op, check);
  call.rank = RankIn(op, "root_rank", check);
  call.outputs = {op.in("x")};
  return call;
}

// Elsewhere than at the root the output is zero, so that it is the same in every run.
Status RunReduce(const Call& call, const KernelArgs& args) {
  if (call.group->rank() != call.rank) ClearOutput(call, args, 0);
  return call.group->Reduce(args.in[0], args.out[0], call.count, call.wire, call.reduction,
                            call.rank, call.node);
}

struct Broadcast : Meeting {
  int root = 0;
  std::vector<DataType> wires;  // by tensor
};

Broadcast PlanBroadcast(const OpContext& op, Check& check) {
  Broadcast plan;
  CheckFusion(op, check);
  plan.root = RankIn(op, "root_rank", check);
  check.Consistent(op.outputs() == op.slots(), "{} inputs but {} outputs", op.slots(),
                   op.outputs());
  for (int i = 0; i < op.slots(); ++i) {
    plan.wires.push_back(WireType(op.in(i).dtype, check));
    plan.outputs.push_back(op.in(i));
  }
  return plan;
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

// The other rank of a message. Messages between two ranks pair in the order of the graphs; sr_tag
// only has to make sense.
int PeerOf(const OpContext& op, std::string_view attribute, Check& check) {
  const int peer = RankIn(op, attribute, check);
  check.That(op.attr_int("sr_tag") >= 0, "sr_tag is {}, expected 0 or more", op.attr_int("sr_tag"));
  check.That(peer != RingOf(op, check).rank, "{} {} is this rank itself", attribute, peer);
  return peer;
}

Call PlanSend(const OpContext& op, Check& check) {
  Call call = CallFor(op.in("x"), check);
  call.rank = PeerOf(op, "dest_rank", check);
  return call;
}

Status RunSend(const Call& call, const KernelArgs& args) {
  return call.group->Send(args.in[0], call.count, call.wire, call.rank, call.node);
}

Call PlanReceive(const OpContext& op, Check& check) {
  Call call;
  call.rank = PeerOf(op, "src_rank", check);
  const DataType dtype = check.Take(op.attr_dtype("dtype"));
  call.wire = WireType(dtype, check);
  const std::vector<int64_t> shape = op.attr_ints("shape");
  for (const int64_t dimension : shape) {
    check.That(dimension >= 0, "shape has a dimension of {}, expected 0 or more", dimension);
  }
  call.outputs = {{dtype, Shape(shape)}};
  return call;
}

Status RunReceive(const Call& call, const KernelArgs& args) {
  return call.group->Recv(args.out[0], Count(call.outputs[0]), call.wire, call.rank, call.node);
}

// The limit of time_out is that of every collective, HCCL_EXEC_TIMEOUT.
Meeting PlanBarrier(const OpContext& op, Check& check) {
  const int64_t ranks = RingOf(op, check).ranks;
  check.That(op.attr_int("world_size") == ranks, "world_size {}, but group \"{}\" has {} ranks",
             op.attr_int("world_size"), op.attr_string("group"), ranks);
  check.NotFed({"elastic_info"});
  Meeting plan;
  plan.outputs = {op.in("x_ref")};
  return plan;
}

Status RunBarrier(const Meeting& plan, const KernelArgs& args) {
  NPUMESH_RETURN_IF_ERROR(plan.group->Barrier(plan.node));
  const uint64_t bytes = plan.outputs[0].bytes();
  if (bytes > 0) std::memcpy(args.out[0], args.in[0], bytes);
  return Status();
}

}  // namespace

}  // namespace npumesh::hcom

namespace npumesh {

void RegisterHcomTensorOps(OpRegistry& registry) {
  using namespace hcom;
  registry.Add(PureCollective<PlanAllReduce, RunAllReduce>(
      "HcomAllReduce(x; reduction:string, group=\"hccl_world_group\", fusion=1, fusion_id=-1) -> y",
      {.leaves_equal = true, .takes = Assembly::kReduce, .reduction = "reduction"}));
  registry.Add(PureCollective<PlanAllGather, RunAllGather>(
      "HcomAllGather(x; rank_size:int, group=\"hccl_world_group\", fusion=0, fusion_id=-1) -> y",
      {.leaves_equal = true, .takes = Assembly::kConcatenate}));
  registry.Add(PureCollective<PlanReduceScatter, RunReduceScatter>(
      "HcomReduceScatter(x; reduction:string, fusion=0, fusion_id=-1, group=\"hccl_world_group\", "
      "rank_size:int) -> y",
      {.takes = Assembly::kReduce, .gives = Assembly::kConcatenate, .reduction = "reduction"}));
  registry.Add(PureCollective<PlanBroadcast, RunBroadcast>(
      "HcomBroadcast(x...; root_rank:int, group=\"hccl_world_group\", fusion=0, fusion_id=-1) -> "
      "y...",
      {.source = "root_rank"}));
  registry.Add(PureCollective<PlanReduce, RunReduce>(
      "HcomReduce(x; root_rank:int, reduction:string, "
      "group=\"hccl_world_group\", fusion=0, fusion_id=-1) -> y",
      {.takes = Assembly::kReduce, .reduction = "reduction"}));
  Operator send = PureCollective<PlanSend, RunSend>(
      "HcomSend(x; group=\"hccl_world_group\", sr_tag:int, dest_rank:int) ->",
      {.peer = "dest_rank"});
  send.side_effect = true;
  registry.Add(std::move(send));
  registry.Add(PureCollective<PlanReceive, RunReceive>(
      "HcomReceive(; group=\"hccl_world_group\", sr_tag:int, "
      "src_rank:int, shape:ints, dtype:type) -> y",
      {.peer = "src_rank"}));
  Operator barrier = PureCollective<PlanBarrier, RunBarrier>(
      "DistributeBarrier(x_ref, time_out?, elastic_info?; group:string, world_size:int) -> x_ref");
  barrier.side_effect = true;
  registry.Add(std::move(barrier));
}

}  // namespace npumesh
