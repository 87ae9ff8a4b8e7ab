// Memory and copies: parts of acl_rt.h.
#include <cstring>

#include "acl/acl_rt.h"
#include "runtime/acl/memory/copy.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/leaks.h"
#include "runtime/acl/process/process.h"
#include "runtime/base/env/variables.h"
#include "runtime/base/log.h"

using npumesh::AclContext;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::ApiSpan;
using npumesh::CheckCopy;
using npumesh::Copy;
using npumesh::Fail;
using npumesh::WorkSpan;

namespace {

aclError AllocateDevice(const char* function, void** pointer, size_t size) {
  const ApiSpan span(function);
  if (pointer == nullptr || size == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "devPtr is {}, size is {}, expected a place for the pointer and more than 0",
                fmt::ptr(pointer), size);
  }
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(function, &context));
  const auto block = AclProcess::Get().memory.Allocate(context->device->memory, size);
  NPUMESH_ACL_TRY(npumesh::Report(function, block.status()));
  *pointer = *block;
  npumesh::NoteDeviceMemory();
  return ACL_SUCCESS;
}

aclError CheckFill(const char* function, const void* pointer, size_t max_count, size_t count) {
  if (count > max_count) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "count is {}, but maxCount only {}", count,
                max_count);
  }
  NPUMESH_ACL_TRY(npumesh::CheckAccess(function, pointer, count, true));
  const auto& memory = AclProcess::Get().memory;
  if (pointer != nullptr && (memory.OnDevice(pointer, count) || memory.Pinned(pointer, count))) {
    return ACL_SUCCESS;
  }
  std::string why = memory.WhyNot(pointer, count);
  if (why.empty()) why = "are not all device memory, nor all in one block of aclrtMallocHost";
  return Fail(ACL_ERROR_INVALID_PARAM, function, "{} bytes at {} {}", count, fmt::ptr(pointer),
              why);
}

// A variable that no function of the interface knows of.
bool IsOfProgram(const void* pointer, size_t count) {
  const auto& memory = AclProcess::Get().memory;
  return !npumesh::Origin::guard() && !memory.Pinned(pointer, count) &&
         !memory.BeyondHostBlock(pointer, count) && npumesh::IsVariable(pointer, count);
}

}  // namespace

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) try {
  return AllocateDevice(__func__, devPtr, size);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) try {
  return AllocateDevice(__func__, devPtr, size);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy) try {
  return AllocateDevice(__func__, devPtr, size);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtFree(void* devPtr) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(devPtr != nullptr, "devPtr is null");
  NPUMESH_ACL_TRY(npumesh::Report(__func__, AclProcess::Get().memory.Free(devPtr)));
  npumesh::NoteDeviceMemory();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMallocHost(void** hostPtr, size_t size) try {
  NPUMESH_ACL_EXPECT(hostPtr != nullptr && size > 0, "hostPtr is {}, size is {}", fmt::ptr(hostPtr),
                     size);
  *hostPtr = AclProcess::Get().memory.AllocateHost(size);
  if (*hostPtr != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, __func__, "the host has no {} bytes", size);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtFreeHost(void* hostPtr) try {
  NPUMESH_ACL_EXPECT(hostPtr != nullptr, "hostPtr is null");
  NPUMESH_ACL_EXPECT(AclProcess::Get().memory.FreeHost(hostPtr),
                     "{} was not returned by aclrtMallocHost, or is free already",
                     fmt::ptr(hostPtr));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_TRY(AclProcess::Get().captures.Permit(__func__));
  Copy copy;
  NPUMESH_ACL_TRY(CheckCopy(__func__, {dst, destMax, src, count, kind}, &copy));
  if (count > 0) npumesh::CopyNow(copy);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) try {
  const ApiSpan span(__func__);
  if (kind == ACL_MEMCPY_HOST_TO_HOST) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __func__, "a device does not copy host to host");
  }
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &on));
  Copy copy;
  NPUMESH_ACL_TRY(CheckCopy(__func__, {dst, destMax, src, count, kind}, &copy));
  if (count == 0) return ACL_SUCCESS;
  if (copy.pageable) NPUMESH_ACL_TRY(AclProcess::Get().captures.Permit(__func__));
  npumesh::QueueCopy(copy, *on);
  // As on hardware: pageable memory may be used again when the call returns.
  if (copy.pageable && !on->stream.records())
    return npumesh::Report(__func__, on->stream.Synchronize());
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_TRY(AclProcess::Get().captures.Permit(__func__));
  if (count <= maxCount && IsOfProgram(devPtr, count)) {
    NPUMESH_WARNING_ONCE(
        "aclrtMemset: fills a variable of the program; what an NPU does with memory that "
        "aclrtMallocHost did not return is undefined; NPUMESH_GUARD=1 refuses it");
  } else {
    NPUMESH_ACL_TRY(CheckFill(__func__, devPtr, maxCount, count));
  }
  std::memset(devPtr, value, count);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) try {
  const ApiSpan span(__func__);
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &on));
  NPUMESH_ACL_TRY(CheckFill(__func__, devPtr, maxCount, count));
  const uint16_t lane = npumesh::LaneOfStream(on->id);
  on->stream.Enqueue(
      [devPtr, value, count, device = on->device, lane, put_ns = npumesh::PutTime()] {
        const WorkSpan work(device, {.name = "aclrtMemsetAsync",
                                     .type = "MemSet",
                                     .bytes = count,
                                     .lane = lane,
                                     .put_ns = put_ns});
        std::memset(devPtr, value, count);
        return npumesh::Status();
      });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) try {
  NPUMESH_ACL_EXPECT(free != nullptr && total != nullptr, "free or total is null");
  NPUMESH_ACL_EXPECT(attr >= ACL_DDR_MEM && attr <= ACL_MEM_P2P_HUGE1G,
                     "attr is {}, expected 0 to 17", static_cast<int>(attr));
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  const npumesh::DeviceMemory& hbm = context->device->memory;
  *total = hbm.total_bytes();
  *free = hbm.total_bytes() - hbm.used_bytes();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
