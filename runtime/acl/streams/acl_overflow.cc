// Overflow of floating-point numbers: a part of acl_rt.h. npumesh computes as INFNAN does: what
// overflows is an infinity in the result, and the status of a device stays zero.
#include <cstring>

#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::Fail;

namespace {

constexpr uint64_t kOverflowBytes = 64;

// A task that writes the status, as hardware does when nothing has overflowed.
aclError QueueOverflowStatus(const char* function, void* output, uint64_t bytes,
                             aclrtStream stream) {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(function, stream, &found));
  if (bytes != kOverflowBytes || !AclProcess::Get().memory.OnDevice(output, bytes)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "outputAddr is {}, outputSize is {}, expected {} bytes of device memory",
                fmt::ptr(output), bytes, kOverflowBytes);
  }
  found->stream.Enqueue([output] {
    std::memset(output, 0, kOverflowBytes);
    return npumesh::Status();
  });
  return ACL_SUCCESS;
}

aclError CheckOverflowStream(const char* function, aclrtStream stream) {
  std::shared_ptr<AclStream> found;
  return AclProcess::Get().NeedStream(function, stream, &found);
}

}  // namespace

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) try {
  NPUMESH_ACL_EXPECT(flag <= 1, "flag is {}, expected 0 or 1", flag);
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  found->overflow_switch = flag;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) try {
  NPUMESH_ACL_EXPECT(flag != nullptr, "flag is null");
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  *flag = found->overflow_switch;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetOverflowStatus(void* outputAddr, size_t outputSize, aclrtStream stream) try {
  return QueueOverflowStatus(__func__, outputAddr, outputSize, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtResetOverflowStatus(aclrtStream stream) try {
  return CheckOverflowStream(__func__, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetFloatOverflowStatus(void* outputAddr, uint64_t outputSize,
                                     aclrtStream stream) try {
  return QueueOverflowStatus(__func__, outputAddr, outputSize, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtNpuGetFloatOverFlowStatus(void* outputAddr, uint64_t outputSize, uint32_t checkMode,
                                        aclrtStream stream) try {
  NPUMESH_ACL_EXPECT(checkMode == 0, "checkMode is {}, expected 0", checkMode);
  return QueueOverflowStatus(__func__, outputAddr, outputSize, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtNpuClearFloatOverFlowStatus(uint32_t checkMode, aclrtStream stream) try {
  NPUMESH_ACL_EXPECT(checkMode == 0, "checkMode is {}, expected 0", checkMode);
  return CheckOverflowStream(__func__, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtResetFloatOverflowStatus(aclrtStream stream) try {
  return CheckOverflowStream(__func__, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
