#include "graph/ops/collective/collective.h"

namespace npumesh::hcom {

Status Meet(const OpContext& op, Meeting* plan) {
  plan->node = op.node().name;
  NPUMESH_ASSIGN_OR_RETURN(plan->group, GroupOf(op));
  return Status();
}

Result<Communicator*> GroupOf(const OpContext& op, std::string_view attribute) {
  const std::string group = op.attr_string(attribute);
  if (op.groups() == nullptr) {
    return Error(Code::kUnsupported,
                 "{}: group \"{}\" cannot be opened, this graph runs without other ranks", op.Who(),
                 group);
  }
  Result<Communicator*> communicator = op.groups()->Group(group);
  if (!communicator.ok()) return communicator.status().WithContext(op.Who());
  return communicator;
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

Call CallFor(const TensorType& x, Check& check) {
  Call call;
  call.wire = WireType(x.dtype, check);
  call.count = Count(x);
  return call;
}

int RankIn(const OpContext& op, std::string_view attribute, Check& check) {
  const int64_t ranks = RingOf(op, check).ranks, rank = op.attr_int(attribute);
  check.That(rank >= 0 && rank < ranks, "{} {} is outside of group \"{}\" with {} members",
             attribute, rank, op.attr_string("group"), ranks);
  return static_cast<int>(rank);
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

DataType WireType(DataType dtype, Check& check) {
  if (dtype == DataType::kBool) return DataType::kInt8;
  check.Supported(IsInteger(dtype) || IsFloating(dtype), "tensors of {} cannot be sent",
                  Name(dtype));
  return dtype;
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

}  // namespace npumesh::hcom
