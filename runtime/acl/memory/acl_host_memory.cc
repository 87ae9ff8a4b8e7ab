// Host memory that devices use, managed memory, and what a pointer is: parts of acl_rt.h. Host and
// simulated devices read one memory, so a device pointer of host memory is the host pointer.
#include <cstring>

#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/acl/without_effect.h"

using npumesh::AclContext;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::Fail;

namespace {

constexpr uint64_t kRegisterFlags =
    ACL_HOST_REG_MAPPED | ACL_HOST_REG_IOMEMORY | ACL_HOST_REG_READONLY | ACL_HOST_REG_PINNED;

aclError Register(const char* function, void* pointer, uint64_t bytes) {
  if (pointer == nullptr || bytes == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "ptr is {}, size is {}", fmt::ptr(pointer),
                bytes);
  }
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(function, &context));
  if (AclProcess::Get().memory.OnDevice(pointer, bytes)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "{} is device memory", fmt::ptr(pointer));
  }
  if (AclProcess::Get().memory.Register(pointer, bytes)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, function,
              "a part of the {} bytes at {} is registered already", bytes, fmt::ptr(pointer));
}

aclError CheckManaged(const char* function, const void* pointer, size_t bytes) {
  if (pointer != nullptr && AclProcess::Get().memory.OnDevice(pointer, bytes)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "{} bytes at {} are not all memory of aclrtMemAllocManaged", bytes,
              fmt::ptr(pointer));
}

}  // namespace

aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type,
                           void** devPtr) try {
  NPUMESH_ACL_EXPECT(devPtr != nullptr, "devPtr is null");
  NPUMESH_ACL_EXPECT(type == ACL_HOST_REGISTER_MAPPED || type == ACL_HOST_REGISTER_READONLY,
                     "type is {}, expected 0 (mapped) or 8 (read only)", static_cast<int>(type));
  NPUMESH_ACL_TRY(Register(__func__, ptr, size));
  *devPtr = ptr;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag) try {
  NPUMESH_ACL_EXPECT(flag != 0 && (flag & ~kRegisterFlags) == 0,
                     "flag is {:#x}, expected a union of {:#x}", flag, kRegisterFlags);
  return Register(__func__, ptr, size);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtHostUnregister(void* ptr) try {
  if (AclProcess::Get().memory.Unregister(ptr)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, __func__,
              "{} is not the start of registered memory", fmt::ptr(ptr));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag) try {
  NPUMESH_ACL_EXPECT(pDevice != nullptr && flag == 0, "pDevice is null, or flag is {}, expected 0",
                     flag);
  if (pHost == nullptr || !AclProcess::Get().memory.Pinned(pHost, 1)) {
    return Fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, __func__, "{} is not in registered memory",
                fmt::ptr(pHost));
  }
  *pDevice = pHost;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType hacType,
                                     aclrtHostMemMapCapability* capabilities) try {
  NPUMESH_ACL_EXPECT(capabilities != nullptr, "capabilities is null");
  NPUMESH_ACL_EXPECT(hacType >= ACL_RT_HAC_TYPE_STARS && hacType <= ACL_RT_HAC_TYPE_CCU,
                     "hacType is {}, expected 0 to 9", static_cast<int>(hacType));
  NPUMESH_ACL_TRY(AclProcess::Get().CheckNodeDevice(__func__, static_cast<int32_t>(deviceId)));
  *capabilities = ACL_RT_HOST_MEM_MAP_SUPPORTED;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig*) try {
  return aclrtMallocHost(ptr, size);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy policy,
                            aclrtMallocConfig*) try {
  return aclrtMalloc(devPtr, size, policy);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMallocForTaskScheduler(void** devPtr, size_t size, aclrtMemMallocPolicy policy,
                                     aclrtMallocConfig*) try {
  return aclrtMalloc(devPtr, size, policy);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemAllocManaged(void** ptr, uint64_t size, uint32_t flag) try {
  NPUMESH_ACL_EXPECT(flag == ACL_RT_MEM_ATTACH_GLOBAL, "flag is {}, expected 1", flag);
  return aclrtMalloc(ptr, size, ACL_MEM_MALLOC_HUGE_FIRST);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemManagedAdvise(const void* const ptr, uint64_t size,
                               aclrtMemManagedAdviseType advise, aclrtMemManagedLocation) try {
  NPUMESH_ACL_EXPECT(
      advise >= ACL_MEM_ADVISE_SET_READ_MOSTLY && advise <= ACL_MEM_ADVISE_UNSET_ACCESSED_BY,
      "advise is {}, expected 0 to 5", static_cast<int>(advise));
  NPUMESH_ACL_TRY(CheckManaged(__func__, ptr, size));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemManagedPrefetchAsync(const void* ptr, size_t size, aclrtMemManagedLocation,
                                      uint32_t flags, aclrtStream stream) try {
  NPUMESH_ACL_EXPECT(flags == 0, "flags is {}, expected 0", flags);
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  NPUMESH_ACL_TRY(CheckManaged(__func__, ptr, size));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) try {
  NPUMESH_ACL_EXPECT(ptr != nullptr && attributes != nullptr, "ptr or attributes is null");
  *attributes = {};
  attributes->pageSize = 4096;
  const auto& memory = AclProcess::Get().memory;
  if (const int device = memory.DeviceOf(ptr); device >= 0) {
    attributes->location = {AclProcess::Get().DeviceIdOf(device), ACL_MEM_LOCATION_TYPE_DEVICE};
  } else if (memory.OnDevice(ptr, 1)) {
    attributes->location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};  // of another process
  } else if (memory.Pinned(ptr, 1)) {
    attributes->location = {0, ACL_MEM_LOCATION_TYPE_HOST};
  } else {
    attributes->location = {0, ACL_MEM_LOCATION_TYPE_UNREGISTERED};
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemGetAddressRange(void* ptr, void** pbase, size_t* psize) try {
  const auto block = AclProcess::Get().memory.BlockAround(ptr);
  NPUMESH_ACL_EXPECT(block.start != nullptr, "{} is in no block of device memory", fmt::ptr(ptr));
  if (pbase != nullptr) *pbase = block.start;
  if (psize != nullptr) *psize = block.bytes;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtFreeWithDevSync(void* devPtr) try {
  NPUMESH_ACL_TRY(aclrtSynchronizeDevice());
  return aclrtFree(devPtr);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtFreeHostWithDevSync(void* hostPtr) try {
  NPUMESH_ACL_TRY(aclrtSynchronizeDevice());
  return aclrtFreeHost(hostPtr);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
