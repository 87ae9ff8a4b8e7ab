// HcomAllReduce, HcomAllGather, HcomReduceScatter, HcomReduce and HcomBroadcast: every rank has a
// tensor of the same type.
#include "graph/ops/collective.h"

#include <cstring>

#include "graph/ops/infer_checks.h"

namespace npumesh::hcom {
namespace {

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

// ---- HcomReduce ----

Status InferReduce(OpContext& op) {
  const TensorType& x = op.in("x");
  NPUMESH_RETURN_IF_ERROR(WireType(op, x.dtype).status());
  NPUMESH_RETURN_IF_ERROR(Reduction(op).status());
  NPUMESH_RETURN_IF_ERROR(CheckFusion(op, false));
  NPUMESH_RETURN_IF_ERROR(RankIn(op, "root_rank").status());
  return SetOutput(op, 0, x.dtype, x.shape);
}

// Elsewhere than at the root the output is zero, so that it is the same in every run.
Result<std::unique_ptr<Kernel>> MakeReduce(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, GroupOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, WireType(op, op.in("x").dtype));
  NPUMESH_ASSIGN_OR_RETURN(const ReduceOp reduction, Reduction(op));
  NPUMESH_ASSIGN_OR_RETURN(const int root, RankIn(op, "root_rank"));
  const uint64_t count = Count(op.in("x"));
  const uint64_t bytes = op.out(0).bytes();
  return MakeKernel([=, node = op.node().name](const KernelArgs& args) {
    if (group->rank() != root && bytes > 0) std::memset(args.out[0], 0, bytes);
    return group->Reduce(args.in[0], args.out[0], count, dtype, reduction, root, node);
  });
}

// ---- HcomBroadcast ----

Status InferBroadcast(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckFusion(op, false));
  NPUMESH_RETURN_IF_ERROR(RankIn(op, "root_rank").status());
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

void RegisterSameTypeOps(OpRegistry& registry) {
  const AttrSpec group = {"group", AttrValue::String(std::string(kWorldGroup))};
  const AttrSpec reduction = {"reduction", Required::kString};
  const AttrSpec rank_size = {"rank_size", Required::kInt};
  const AttrSpec fusion = {"fusion", AttrValue::Int(0)};
  const AttrSpec fusion_by_gradients = {"fusion", AttrValue::Int(1)};
  const AttrSpec fusion_id = {"fusion_id", AttrValue::Int(-1)};
  Add(registry,
      {"HcomAllReduce", {{"x"}}, {{"y"}}, {reduction, group, fusion_by_gradients, fusion_id}},
      {.leaves_equal = true, .takes = Assembly::kReduce, .reduction = "reduction"}, InferAllReduce,
      MakeAllReduce);
  Add(registry, {"HcomAllGather", {{"x"}}, {{"y"}}, {rank_size, group, fusion, fusion_id}},
      {.leaves_equal = true, .takes = Assembly::kConcatenate}, InferAllGather, MakeAllGather);
  Add(registry,
      {"HcomReduceScatter", {{"x"}}, {{"y"}}, {reduction, fusion, fusion_id, group, rank_size}},
      {.takes = Assembly::kReduce, .gives = Assembly::kConcatenate, .reduction = "reduction"},
      InferReduceScatter, MakeReduceScatter);
  Add(registry,
      {"HcomBroadcast",
       {{"x", PortKind::kDynamic}},
       {{"y", PortKind::kDynamic}},
       {{"root_rank", Required::kInt}, group, fusion, fusion_id}},
      {.source = "root_rank"}, InferBroadcast, MakeBroadcast);
  Add(registry,
      {"HcomReduce",
       {{"x"}},
       {{"y"}},
       {{"root_rank", Required::kInt}, reduction, group, fusion, fusion_id}},
      {.takes = Assembly::kReduce, .reduction = "reduction"}, InferReduce, MakeReduce);
}

}  // namespace
}  // namespace npumesh::hcom

namespace npumesh {

void RegisterCollectiveOps(OpRegistry& registry) {
  hcom::RegisterSameTypeOps(registry);
  hcom::RegisterBlockOps(registry);
  hcom::RegisterMessageOps(registry);
}

}  // namespace npumesh
