// Functions of acl_rt.h that check what they are given and can do no more on a simulated device.
#include "acl/acl_rt.h"
#include "runtime/acl/errors.h"
#include "runtime/acl/process.h"
#include "runtime/acl/without_effect.h"

using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::Fail;

namespace {

aclError CheckDeviceRange(const char* function, const void* pointer, size_t bytes) {
  if (pointer != nullptr && AclProcess::Get().memory.OnDevice(pointer, bytes)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "{} bytes at {} are not all device memory", bytes,
              fmt::ptr(pointer));
}

}  // namespace

aclError aclrtCmoAsync(void* src, size_t size, aclrtCmoType cmoType, aclrtStream stream) try {
  NPUMESH_ACL_EXPECT(cmoType >= ACL_RT_CMO_TYPE_PREFETCH && cmoType <= ACL_RT_CMO_TYPE_FLUSH,
                     "cmoType is {}, expected 0 to 3", static_cast<int>(cmoType));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  NPUMESH_ACL_TRY(CheckDeviceRange(__func__, src, size));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemFlush(void* devPtr, size_t size) try {
  NPUMESH_ACL_TRY(CheckDeviceRange(__func__, devPtr, size));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemInvalidate(void* devPtr, size_t size) try {
  NPUMESH_ACL_TRY(CheckDeviceRange(__func__, devPtr, size));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetTsDevice(aclrtTsId tsId) try {
  NPUMESH_ACL_EXPECT(tsId == ACL_TS_ID_AICORE || tsId == ACL_TS_ID_AIVECTOR,
                     "tsId is {}, expected 0 or 1", static_cast<int>(tsId));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
