// Reserved addresses, physical blocks, and what of them processes share: parts of acl_rt.h.
#include <cstring>

#include "acl/acl_rt.h"
#include "runtime/acl/memory/shared_memory.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/acl/without_effect.h"

using npumesh::AclContext;
using npumesh::AclProcess;
using npumesh::AddressSpace;
using npumesh::Fail;
using npumesh::Report;
using npumesh::SharedKind;
using npumesh::SharedTicket;

namespace {

using Ticket = std::shared_ptr<SharedTicket>;

aclError CheckExportFlags(const char* function, uint64_t flags) {
  if ((flags & ~ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION) == 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "flags is {:#x}, expected 0 or 1", flags);
}

aclError CheckShareType(const char* function, aclrtMemSharedHandleType type) {
  if (type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT || type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, function, "shareType is {}, expected 1 or 2",
              static_cast<int>(type));
}

aclError Share(const char* function, aclrtDrvMemHandle handle, uint64_t flags, Ticket* ticket) {
  NPUMESH_ACL_TRY(CheckExportFlags(function, flags));
  auto shared = AclProcess::Get().addresses.Share(handle);
  NPUMESH_ACL_TRY(Report(function, shared.status()));
  if (flags != 0) (*shared)->AllowAnyone();
  *ticket = *std::move(shared);
  return ACL_SUCCESS;
}

// The key in a fabric handle.
std::string KeyOf(const void* handle) {
  const auto* const text = static_cast<const char*>(handle);
  return std::string(text, strnlen(text, sizeof(aclrtMemFabricHandle)));
}

uint64_t NumberOf(const void* handle) {
  uint64_t number = 0;
  std::memcpy(&number, handle, sizeof number);
  return number;
}

aclError Import(const char* function, npumesh::Result<Ticket> ticket, int32_t device_id,
                aclrtDrvMemHandle* handle) {
  NPUMESH_ACL_TRY(npumesh::ReportImport(function, ticket.status()));
  const aclrtPhysicalMemProp prop = {
      ACL_MEM_HANDLE_TYPE_NONE,
      ACL_MEM_ALLOCATION_TYPE_PINNED,
      ACL_HBM_MEM_NORMAL,
      {static_cast<uint32_t>(device_id), ACL_MEM_LOCATION_TYPE_DEVICE},
      0};
  const auto block = AclProcess::Get().addresses.Import(*std::move(ticket), prop);
  NPUMESH_ACL_TRY(npumesh::ReportImport(function, block.status()));
  *handle = *block;
  return ACL_SUCCESS;
}

aclError Map(const char* function, void* address, size_t size, size_t offset,
             aclrtDrvMemHandle handle, uint64_t flags, bool access) {
  if (offset != 0 || flags != 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "offset is {}, flags is {}, expected 0 and 0: a block is mapped as a whole", offset,
                flags);
  }
  return Report(function, AclProcess::Get().addresses.Map(address, size, handle, access));
}

aclError CheckLocation(const char* function, const aclrtMemLocation& location) {
  if (location.type == ACL_MEM_LOCATION_TYPE_DEVICE) {
    return AclProcess::Get().CheckNodeDevice(function, static_cast<int32_t>(location.id));
  }
  if (location.type == ACL_MEM_LOCATION_TYPE_HOST ||
      location.type == ACL_MEM_LOCATION_TYPE_HOST_NUMA) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "location.type is {}, expected 0 (host), 1 (device) or 4 (host NUMA)",
              static_cast<int>(location.type));
}

// Addresses are asked for before a thread has a device, too: those of the process's first one then.
aclError MemoryOfThread(const char* function, npumesh::DeviceMemory** memory) {
  if (const auto context = AclProcess::CurrentContext(); context != nullptr) {
    *memory = &context->device->memory;
    return ACL_SUCCESS;
  }
  return AclProcess::Get().FindMemory(function, 0, memory);
}

}  // namespace

aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void* expectPtr,
                                uint64_t) try {
  NPUMESH_ACL_EXPECT(virPtr != nullptr && size > 0, "virPtr is {}, size is {}", fmt::ptr(virPtr),
                     size);
  NPUMESH_ACL_EXPECT(alignment == 0 && expectPtr == nullptr,
                     "alignment is {}, expectPtr is {}, expected 0 and null", alignment,
                     fmt::ptr(expectPtr));
  npumesh::DeviceMemory* memory = nullptr;
  NPUMESH_ACL_TRY(MemoryOfThread(__func__, &memory));
  const auto address = AclProcess::Get().addresses.Reserve(*memory, size);
  NPUMESH_ACL_TRY(Report(__func__, address.status()));
  *virPtr = *address;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtReserveMemAddressNoUCMemory(void**, size_t, size_t, void*, uint64_t) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtReleaseMemAddress(void* virPtr) try {
  return Report(__func__, AclProcess::Get().addresses.Release(virPtr));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size,
                             const aclrtPhysicalMemProp* prop, uint64_t flags) try {
  NPUMESH_ACL_EXPECT(handle != nullptr && prop != nullptr, "handle or prop is null");
  NPUMESH_ACL_EXPECT(flags == 0, "flags is {}, expected 0", flags);
  NPUMESH_ACL_EXPECT(size > 0 && size % AddressSpace::kGranularity == 0,
                     "size is {}, expected a multiple of {}", size, AddressSpace::kGranularity);
  if (prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __func__,
                "location type is {}; only a device has physical blocks",
                static_cast<int>(prop->location.type));
  }
  npumesh::DeviceMemory* memory = nullptr;
  NPUMESH_ACL_TRY(
      AclProcess::Get().FindMemory(__func__, static_cast<int32_t>(prop->location.id), &memory));
  const auto made = AclProcess::Get().addresses.MakeBlock(size, *memory, *prop);
  if (!made.ok()) return npumesh::Report(__func__, made.status());
  *handle = *made;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) try {
  return Report(__func__, AclProcess::Get().addresses.FreeBlock(handle));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                     uint64_t flags) try {
  return Map(__func__, virPtr, size, offset, handle, flags, true);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemMapNoAccess(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                             uint64_t flags) try {
  return Map(__func__, virPtr, size, offset, handle, flags, false);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemMapSelectedLink(void*, size_t, void*, uint32_t) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemMapSetLink(aclrtDrvMemHandle handle, aclrtMemLinkType) try {
  NPUMESH_ACL_TRY(Report(__func__, AclProcess::Get().addresses.PropertiesOf(handle).status()));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemP2PMap(void* devPtr, size_t size, int32_t dstDevId, uint64_t flags) try {
  NPUMESH_ACL_EXPECT(flags == 0, "flags is {:#x}, expected 0", flags);
  NPUMESH_ACL_EXPECT(devPtr != nullptr && AclProcess::Get().memory.OnDevice(devPtr, size),
                     "{} bytes at {} are not all device memory", size, fmt::ptr(devPtr));
  NPUMESH_ACL_TRY(AclProcess::Get().CheckNodeDevice(__func__, dstDevId));
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtUnmapMem(void* virPtr) try {
  return Report(__func__, AclProcess::Get().addresses.Unmap(virPtr));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop,
                                          aclrtMemGranularityOptions option,
                                          size_t* granularity) try {
  NPUMESH_ACL_EXPECT(prop != nullptr && granularity != nullptr, "prop or granularity is null");
  NPUMESH_ACL_EXPECT(option == ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM ||
                         option == ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED,
                     "option is {}, expected 0 or 1", static_cast<int>(option));
  *granularity = AddressSpace::kGranularity;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemRetainAllocationHandle(void* virPtr, aclrtDrvMemHandle* handle) try {
  NPUMESH_ACL_EXPECT(handle != nullptr, "handle is null");
  const auto block = AclProcess::Get().addresses.Retain(virPtr);
  NPUMESH_ACL_TRY(Report(__func__, block.status()));
  *handle = *block;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
                                                   aclrtPhysicalMemProp* prop) try {
  NPUMESH_ACL_EXPECT(prop != nullptr, "prop is null");
  const auto found = AclProcess::Get().addresses.PropertiesOf(handle);
  NPUMESH_ACL_TRY(Report(__func__, found.status()));
  *prop = *found;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemSetAccess(void* virPtr, size_t size, aclrtMemAccessDesc* desc, size_t count) try {
  NPUMESH_ACL_EXPECT(desc != nullptr && count > 0, "desc is null, or count is 0");
  for (size_t i = 0; i < count; ++i) {
    NPUMESH_ACL_TRY(CheckLocation(__func__, desc[i].location));
    NPUMESH_ACL_EXPECT(desc[i].flags == ACL_RT_MEM_ACCESS_FLAGS_NONE ||
                           desc[i].flags == ACL_RT_MEM_ACCESS_FLAGS_READ ||
                           desc[i].flags == ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
                       "desc[{}].flags is {}, expected 0, 1 or 3", i,
                       static_cast<int>(desc[i].flags));
  }
  return Report(__func__, AclProcess::Get().addresses.SetAccess(virPtr, size, {desc, count}));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemGetAccess(void* virPtr, aclrtMemLocation* location, uint64_t* flag) try {
  NPUMESH_ACL_EXPECT(location != nullptr && flag != nullptr, "location or flag is null");
  NPUMESH_ACL_TRY(CheckLocation(__func__, *location));
  const auto access = AclProcess::Get().addresses.AccessOf(virPtr, *location);
  NPUMESH_ACL_TRY(Report(__func__, access.status()));
  *flag = static_cast<uint64_t>(*access);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType,
                                         uint64_t flags, uint64_t* shareableHandle) try {
  NPUMESH_ACL_EXPECT(shareableHandle != nullptr, "shareableHandle is null");
  NPUMESH_ACL_EXPECT(handleType == ACL_MEM_HANDLE_TYPE_NONE, "handleType is {}, expected 0",
                     static_cast<int>(handleType));
  Ticket ticket;
  NPUMESH_ACL_TRY(Share(__func__, handle, flags, &ticket));
  *shareableHandle = ticket->number();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
                                           aclrtMemSharedHandleType shareType,
                                           void* shareableHandle) try {
  NPUMESH_ACL_EXPECT(shareableHandle != nullptr, "shareableHandle is null");
  NPUMESH_ACL_TRY(CheckShareType(__func__, shareType));
  Ticket ticket;
  NPUMESH_ACL_TRY(Share(__func__, handle, flags, &ticket));
  if (shareType == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC) {
    aclrtMemFabricHandle fabric = {};
    const std::string key = ticket->key();
    std::memcpy(fabric.data, key.data(), key.size());
    std::memcpy(shareableHandle, &fabric, sizeof fabric);
  } else {
    const uint64_t number = ticket->number();
    std::memcpy(shareableHandle, &number, sizeof number);
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
                                           aclrtDrvMemHandle* handle) try {
  NPUMESH_ACL_EXPECT(handle != nullptr, "handle is null");
  NPUMESH_ACL_TRY(AclProcess::Get().CheckDevice(__func__, deviceId));
  return Import(__func__, SharedTicket::Import(shareableHandle, SharedKind::kPhysical), deviceId,
                handle);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemImportFromShareableHandleV2(void* shareableHandle,
                                             aclrtMemSharedHandleType shareType, uint64_t flags,
                                             aclrtDrvMemHandle* handle) try {
  NPUMESH_ACL_EXPECT(shareableHandle != nullptr && handle != nullptr,
                     "shareableHandle or handle is null");
  NPUMESH_ACL_TRY(CheckShareType(__func__, shareType));
  NPUMESH_ACL_EXPECT(flags == 0, "flags is {:#x}, expected 0", flags);
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  auto ticket = shareType == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC
                    ? SharedTicket::Import(KeyOf(shareableHandle), SharedKind::kPhysical)
                    : SharedTicket::Import(NumberOf(shareableHandle), SharedKind::kPhysical);
  return Import(__func__, std::move(ticket), AclProcess::CurrentDeviceId(), handle);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t* pid,
                                         size_t pidNum) try {
  const auto ticket = AclProcess::Get().addresses.Shared(shareableHandle);
  NPUMESH_ACL_TRY(Report(__func__, ticket.status()));
  return npumesh::AllowProcesses(__func__, **ticket, pid, pidNum);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemSetPidToShareableHandleV2(void* shareableHandle,
                                           aclrtMemSharedHandleType shareType, int32_t* pid,
                                           size_t pidNum) try {
  NPUMESH_ACL_EXPECT(shareableHandle != nullptr, "shareableHandle is null");
  NPUMESH_ACL_TRY(CheckShareType(__func__, shareType));
  const auto& addresses = AclProcess::Get().addresses;
  const auto ticket = shareType == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC
                          ? addresses.Shared(std::string_view(KeyOf(shareableHandle)))
                          : addresses.Shared(NumberOf(shareableHandle));
  NPUMESH_ACL_TRY(Report(__func__, ticket.status()));
  return npumesh::AllowProcesses(__func__, **ticket, pid, pidNum);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
