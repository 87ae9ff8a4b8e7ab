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

Result<GroupProvider::Members> MembersOf(const OpContext& op, std::string_view attribute) {
  const std::string group = op.attr_string(attribute);
  if (op.groups() == nullptr) {
    return Error(Code::kUnsupported,
                 "{}: the members of group \"{}\" are unknown, this graph runs without other ranks",
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

Call CallFor(const OpContext& op, const TensorType& x, Check& check) {
  Call call;
  call.wire = check.Take(WireType(op, x.dtype));
  call.count = Count(x);
  return call;
}

Result<int> RankIn(const OpContext& op, std::string_view attribute) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersOf(op));
  const int64_t rank = op.attr_int(attribute);
  if (rank >= 0 && rank < static_cast<int64_t>(members.world_ranks.size())) {
    return static_cast<int>(rank);
  }
  return Error(Code::kInvalidArgument, "{}: {} {} is outside of group \"{}\" with {} members",
               op.Who(), attribute, rank, op.attr_string("group"), members.world_ranks.size());
}

Status CheckFusion(const OpContext& op, bool by_gradients) {
  const int64_t fusion = op.attr_int("fusion");
  const int64_t id = op.attr_int("fusion_id");
  const bool known = fusion == 0 || fusion == 2 || (fusion == 1 && by_gradients);
  if (known && (fusion != 2 || (id >= 0 && id <= INT32_MAX))) return Status();
  return Error(Code::kInvalidArgument,
               "{}: fusion {} with fusion_id {}; expected fusion 0{} or 2, and for 2 an id of 0 or "
               "more",
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

Result<DataType> WireType(const OpContext& op, DataType dtype) {
  if (dtype == DataType::kBool) return DataType::kInt8;
  if (IsInteger(dtype) || IsFloating(dtype)) return dtype;
  return Error(Code::kUnsupported, "{}: tensors of {} cannot be sent", op.Who(), Name(dtype));
}

Result<Shape> DividedByRanks(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const GroupProvider::Members members, MembersOf(op));
  const auto ranks = static_cast<int64_t>(members.world_ranks.size());
  Shape shape = op.in("x").shape;
  if (shape.rank() == 0 || shape[0] % ranks != 0) {
    return Error(Code::kInvalidArgument,
                 "{}: x is {}; its first dimension must be divisible by the {} ranks of group "
                 "\"{}\"",
                 op.Who(), op.in("x").ToString(), ranks, op.attr_string("group"));
  }
  shape[0] /= ranks;
  return shape;
}

uint64_t Count(const TensorType& type) {
  return static_cast<uint64_t>(type.shape.elements());
}

}  // namespace npumesh::hcom
