// Functions of acl_rt.h and acl_mdl.h that check what they are given and can do no more on a
// simulated device.
#include <algorithm>

#include "acl/acl_mdl.h"
#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
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

// Of aclrtCmoSetDesc.
constexpr size_t kCmoDescriptionBytes = 64;

aclError CheckCmo(const char* function, aclrtCmoType type, aclrtStream stream) {
  if (type < ACL_RT_CMO_TYPE_PREFETCH || type > ACL_RT_CMO_TYPE_FLUSH) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "cmoType is {}, expected 0 to 3",
                static_cast<int>(type));
  }
  std::shared_ptr<AclStream> found;
  return AclProcess::Get().NeedStream(function, stream, &found);
}

}  // namespace

aclError aclrtCmoAsync(void* src, size_t size, aclrtCmoType cmoType, aclrtStream stream) try {
  NPUMESH_ACL_TRY(CheckCmo(__func__, cmoType, stream));
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

aclError aclrtCmoGetDescSize(size_t* size) try {
  NPUMESH_ACL_EXPECT(size != nullptr, "size is null");
  *size = kCmoDescriptionBytes;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCmoSetDesc(void* cmoDesc, void* src, size_t size) try {
  NPUMESH_ACL_TRY(CheckDeviceRange(__func__, cmoDesc, kCmoDescriptionBytes));
  NPUMESH_ACL_TRY(CheckDeviceRange(__func__, src, size));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCmoAsyncWithDesc(void* cmoDesc, aclrtCmoType cmoType, aclrtStream stream,
                               const void* reserve) try {
  NPUMESH_ACL_EXPECT(reserve == nullptr, "reserve is {}, expected null", fmt::ptr(reserve));
  NPUMESH_ACL_TRY(CheckCmo(__func__, cmoType, stream));
  NPUMESH_ACL_TRY(CheckDeviceRange(__func__, cmoDesc, kCmoDescriptionBytes));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCmoAsyncWithBarrier(void* src, size_t size, aclrtCmoType cmoType, uint32_t,
                                  aclrtStream stream) try {
  NPUMESH_ACL_TRY(CheckCmo(__func__, cmoType, stream));
  NPUMESH_ACL_TRY(CheckDeviceRange(__func__, src, size));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCmoWaitBarrier(aclrtBarrierTaskInfo* taskInfo, aclrtStream stream,
                             uint32_t flag) try {
  NPUMESH_ACL_EXPECT(taskInfo != nullptr && taskInfo->barrierNum <= ACL_RT_CMO_MAX_BARRIER_NUM,
                     "taskInfo is null, or has more than {} barriers", ACL_RT_CMO_MAX_BARRIER_NUM);
  NPUMESH_ACL_EXPECT(flag == 0, "flag is {}, expected 0", flag);
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceL2CacheFlush(void* rsv) try {
  NPUMESH_ACL_EXPECT(rsv == nullptr, "rsv is {}, expected null", fmt::ptr(rsv));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemManagedPrefetchBatchAsync(const void** ptrs, size_t* sizes, size_t count,
                                           aclrtMemManagedLocation* prefetchLocs,
                                           size_t* prefetchLocIdxs, size_t numPrefetchLocs,
                                           uint64_t flags, aclrtStream stream) try {
  NPUMESH_ACL_EXPECT(ptrs != nullptr && sizes != nullptr && count > 0 && prefetchLocs != nullptr &&
                         prefetchLocIdxs != nullptr && numPrefetchLocs > 0 &&
                         numPrefetchLocs <= count && flags == 0,
                     "an array is null, count is {}, numPrefetchLocs is {}, flags is {}", count,
                     numPrefetchLocs, flags);
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  for (size_t i = 0; i < count; ++i) {
    NPUMESH_ACL_TRY(CheckDeviceRange(__func__, ptrs[i], sizes[i]));
  }
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtIpcMemSetAttr(const char* key, aclrtIpcMemAttrType type, uint64_t attr) try {
  NPUMESH_ACL_EXPECT(key != nullptr, "key is null");
  NPUMESH_ACL_EXPECT(type == ACL_RT_IPC_MEM_ATTR_ACCESS_LINK &&
                         attr <= ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH,
                     "type is {}, attr is {}, expected 0, and 0 to 3", static_cast<int>(type),
                     attr);
  NPUMESH_ACL_EXPECT(AclProcess::Get().shared.Exported(key) != nullptr,
                     "this process does not share \"{}\"", key);
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCacheLastTaskOpInfo(const void* const infoPtr, const size_t infoSize) try {
  NPUMESH_ACL_EXPECT(infoPtr != nullptr && infoSize > 0, "infoPtr is {}, infoSize is {}",
                     fmt::ptr(infoPtr), infoSize);
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCacheLastTaskExtendInfo(const char* const extendInfoPtr, const size_t infoSize) try {
  NPUMESH_ACL_EXPECT(extendInfoPtr != nullptr && infoSize > 0,
                     "extendInfoPtr is {}, infoSize is {}", fmt::ptr(extendInfoPtr), infoSize);
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtPersistentTaskClean(aclrtStream stream) try {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo* errorInfo) try {
  NPUMESH_ACL_EXPECT(errorInfo != nullptr, "errorInfo is null");
  NPUMESH_ACL_TRY(AclProcess::Get().CheckDevice(__func__, deviceId));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray,
                           size_t arraySize) try {
  NPUMESH_ACL_EXPECT(
      memUceInfoArray != nullptr && arraySize > 0 && arraySize <= MAX_MEM_UCE_INFO_ARRAY_SIZE,
      "memUceInfoArray is {}, arraySize is {}, expected 1 to {}", fmt::ptr(memUceInfoArray),
      arraySize, MAX_MEM_UCE_INFO_ARRAY_SIZE);
  NPUMESH_ACL_TRY(AclProcess::Get().CheckDevice(__func__, deviceId));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t arraySize,
                            size_t* retSize) try {
  NPUMESH_ACL_EXPECT(memUceInfoArray != nullptr && retSize != nullptr && arraySize > 0,
                     "memUceInfoArray is {}, arraySize is {}, or retSize is null",
                     fmt::ptr(memUceInfoArray), arraySize);
  NPUMESH_ACL_TRY(AclProcess::Get().CheckDevice(__func__, deviceId));
  *retSize = 0;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCheckMemType(void** addrList, uint32_t size, uint32_t memType, uint32_t* checkResult,
                           uint32_t reserve) try {
  constexpr uint32_t kTypes = ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_DVPP | ACL_RT_MEM_TYPE_RSVD;
  NPUMESH_ACL_EXPECT(addrList != nullptr && size > 0 && checkResult != nullptr,
                     "addrList or checkResult is null, or size is 0");
  NPUMESH_ACL_EXPECT(memType != 0 && (memType & ~kTypes) == 0 && reserve == 0,
                     "memType is {:#x}, expected a union of {:#x}; reserve is {}, expected 0",
                     memType, kTypes, reserve);
  const auto& memory = AclProcess::Get().memory;
  const bool all = std::all_of(addrList, addrList + size,
                               [&](const void* address) { return memory.OnDevice(address, 1); });
  *checkResult = all && (memType & ACL_RT_MEM_TYPE_DEV) != 0 ? 1 : 0;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclRecoverAllHcclTasks(int32_t deviceId) try {
  NPUMESH_ACL_TRY(AclProcess::Get().CheckDevice(__func__, deviceId));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
