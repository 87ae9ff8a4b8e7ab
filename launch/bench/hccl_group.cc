#include "launch/bench/hccl_group.h"

#include <cstring>

#include "collectives/hccl/comm/element_type.h"
#include "hccl/hccl.h"
#include "runtime/acl/process/device_context.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// What the interface has recorded on this thread since the last time.
std::string RecentWords() {
  const char* words = aclGetRecentErrMsg();
  return words != nullptr ? words : "no reason was recorded";
}

// Inverse of how the interface answers (Code to HcclResult), as far as exit codes need it.
Code CodeOf(HcclResult result) {
  switch (result) {
    case HCCL_E_PARA:
    case HCCL_E_PTR:
      return Code::kInvalidArgument;
    case HCCL_E_NOT_SUPPORT:
      return Code::kUnsupported;
    case HCCL_E_OOM:
      return Code::kOutOfMemory;
    case HCCL_E_TIMEOUT:
      return Code::kTimeout;
    case HCCL_E_REMOTE:
      return Code::kPeerLost;
    default:
      return Code::kInternal;
  }
}

Code CodeOfAcl(aclError error) {
  switch (error) {
    case ACL_ERROR_INVALID_PARAM:
      return Code::kInvalidArgument;
    case ACL_ERROR_RT_FEATURE_NOT_SUPPORT:
      return Code::kUnsupported;
    case ACL_ERROR_RT_MEMORY_ALLOCATION:
      return Code::kOutOfMemory;
    case ACL_ERROR_RT_TASK_TIMEOUT:
      return Code::kTimeout;
    case ACL_ERROR_RT_SUSPECT_REMOTE_ERROR:
      return Code::kPeerLost;
    default:
      return Code::kInternal;
  }
}

Status StatusOf(HcclResult result) {
  return result == HCCL_SUCCESS ? Status() : Error(CodeOf(result), "{}", RecentWords());
}

Status StatusOfAcl(aclError error) {
  return error == ACL_SUCCESS ? Status() : Error(CodeOfAcl(error), "{}", RecentWords());
}

}  // namespace

Result<World*> StartHcclWorld() {
  NPUMESH_RETURN_IF_ERROR(StatusOfAcl(aclInit(nullptr)));
  NPUMESH_ASSIGN_OR_RETURN(AclDevice* const device, SelectDevice(0));
  return &device->world;
}

Status EndHcclWorld() {
  return StatusOfAcl(aclFinalize());
}

Status CheckHccl(const BenchOp& op, const BenchOptions& options) {
  if (!op.reduces()) return Status();
  const ElementType* type = FindElementType(options.dtype);
  const bool product = options.reduce_op == ReduceOp::kProd;
  if (type != nullptr && (product ? type->multiplies : type->reduces)) return Status();
  return Error(Code::kInvalidArgument,
               "{}: HCCL has no {} of {}; choose another -d or -o, or --api communicator", op.name,
               Name(options.reduce_op), options.dtype_name);
}

Result<std::unique_ptr<HcclGroup>> HcclGroup::Create(RankCircle& circle, DataType dtype) {
  std::unique_ptr<HcclGroup> group(new HcclGroup);
  group->seat_.dtype = FindElementType(dtype)->number;
  NPUMESH_RETURN_IF_ERROR(StatusOfAcl(aclrtCreateStream(&group->seat_.stream)));
  group->seat_.ranks = circle.size();
  std::string blob(sizeof(HcclRootInfo), '\0');
  HcclResult made = HCCL_SUCCESS;
  if (circle.rank() == 0) made = HcclGetRootInfo(reinterpret_cast<HcclRootInfo*>(blob.data()));
  if (made != HCCL_SUCCESS) blob.clear();
  const Status refused = StatusOf(made);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> blobs, circle.Share(blob));
  NPUMESH_RETURN_IF_ERROR(refused);
  if (blobs[0].empty()) return Error(Code::kPeerLost, "rank 0 has no root info");
  HcclRootInfo root;
  std::memcpy(&root, blobs[0].data(), sizeof(root));
  NPUMESH_RETURN_IF_ERROR(
      StatusOf(HcclCommInitRootInfo(static_cast<uint32_t>(circle.size()), &root,
                                    static_cast<uint32_t>(circle.rank()), &group->seat_.comm)));
  return group;
}

HcclGroup::~HcclGroup() {
  Status end;
  if (seat_.stream != nullptr) end = StatusOfAcl(aclrtDestroyStream(seat_.stream));
  if (end.ok()) end = StatusOf(HcclCommDestroy(seat_.comm));
  if (!end.ok()) NPUMESH_WARNING("bench: {}", end.message());
}

Status HcclGroup::Run(const BenchOp& op, const BenchCall& call) {
  return Await(op.hccl(seat_, call));
}

Status HcclGroup::Barrier() {
  return Await(HcclBarrier(seat_.comm, seat_.stream));
}

Status HcclGroup::Await(HcclResult issued) {
  if (issued != HCCL_SUCCESS) return StatusOf(issued);
  return StatusOfAcl(aclrtSynchronizeStream(seat_.stream));
}

}  // namespace npumesh
