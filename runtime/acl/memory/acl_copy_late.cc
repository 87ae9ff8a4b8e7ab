// Copies whose places a stream learns when it comes to them: parts of acl_rt.h.
#include <cstdint>
#include <cstring>
#include <memory>

#include "acl/acl_rt.h"
#include "runtime/acl/memory/copy.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::Code;
using npumesh::Fail;
using npumesh::Status;

namespace {

// What aclrtSetMemcpyDesc writes into device memory.
struct CopyDescription {
  static constexpr uint64_t kMagic = 0x4544'5950'434e'504e;

  uint64_t magic = kMagic;
  void* dst = nullptr;
  const void* src = nullptr;
  uint64_t count = 0;
  uint64_t reserved[4] = {};
};
static_assert(sizeof(CopyDescription) == 64);

aclError CheckKind(const char* function, aclrtMemcpyKind kind) {
  if (kind == ACL_MEMCPY_DEVICE_TO_DEVICE || kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, function, "kind is {}, expected 3 or 5: within a device",
              static_cast<int>(kind));
}

aclError CheckOnDevice(const char* function, std::string_view name, const void* pointer,
                       uint64_t bytes) {
  const auto& memory = AclProcess::Get().memory;
  if (pointer != nullptr && memory.OnDevice(pointer, bytes)) return ACL_SUCCESS;
  std::string why = memory.WhyNot(pointer, bytes);
  if (why.empty()) why = "are not all device memory";
  return Fail(ACL_ERROR_INVALID_PARAM, function, "{}: {} bytes at {} {}", name, bytes,
              fmt::ptr(pointer), why);
}

// The copy, checked when the stream has come to it.
Status CopyLate(const char* function, void* dst, const void* src, uint64_t count) {
  const auto& memory = AclProcess::Get().memory;
  const auto rule = memory.RuleOf(dst, count);
  for (const void* side : {static_cast<const void*>(dst), src}) {
    if (count == 0 || (memory.OnDevice(side, count) && (side != dst || rule.writable))) continue;
    std::string why = memory.WhyNot(side, count);
    if (why.empty()) why = "are not all device memory";
    return npumesh::Error(Code::kInvalidArgument, "{}: {} bytes at {} {}", function, count,
                          fmt::ptr(side), why);
  }
  std::memmove(dst, src, count);
  return Status();
}

}  // namespace

aclError aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t* descSize) try {
  NPUMESH_ACL_EXPECT(descSize != nullptr, "descSize is null");
  NPUMESH_ACL_TRY(CheckKind(__func__, kind));
  *descSize = sizeof(CopyDescription);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetMemcpyDesc(void* desc, aclrtMemcpyKind kind, void* srcAddr, void* dstAddr,
                            size_t count, void* config) try {
  NPUMESH_ACL_TRY(CheckKind(__func__, kind));
  NPUMESH_ACL_EXPECT(config == nullptr, "config is {}, expected null", fmt::ptr(config));
  NPUMESH_ACL_TRY(CheckOnDevice(__func__, "desc", desc, sizeof(CopyDescription)));
  NPUMESH_ACL_TRY(CheckOnDevice(__func__, "srcAddr", srcAddr, count));
  NPUMESH_ACL_TRY(CheckOnDevice(__func__, "dstAddr", dstAddr, count));
  CopyDescription description;
  description.dst = dstAddr;
  description.src = srcAddr;
  description.count = count;
  std::memcpy(desc, &description, sizeof description);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpyAsyncWithDesc(void* desc, aclrtMemcpyKind kind, aclrtStream stream) try {
  NPUMESH_ACL_TRY(CheckKind(__func__, kind));
  NPUMESH_ACL_TRY(CheckOnDevice(__func__, "desc", desc, sizeof(CopyDescription)));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &found));
  found->stream.Enqueue([desc]() -> Status {
    constexpr char kFunction[] = "aclrtMemcpyAsyncWithDesc";
    if (!AclProcess::Get().memory.OnDevice(desc, sizeof(CopyDescription))) {
      return npumesh::Error(Code::kInvalidArgument, "{}: desc was freed", kFunction);
    }
    CopyDescription description;
    std::memcpy(&description, desc, sizeof description);
    if (description.magic != CopyDescription::kMagic) {
      return npumesh::Error(Code::kInvalidArgument, "{}: {} is not what aclrtSetMemcpyDesc wrote",
                            kFunction, fmt::ptr(desc));
    }
    return CopyLate(kFunction, description.dst, description.src, description.count);
  });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpyAsyncWithOffset(void** dst, size_t destMax, size_t dstDataOffset,
                                    const void** src, size_t count, size_t srcDataOffset,
                                    aclrtMemcpyKind kind, aclrtStream stream) try {
  NPUMESH_ACL_TRY(CheckKind(__func__, kind));
  NPUMESH_ACL_EXPECT(count <= destMax, "count is {}, but destMax only {}", count, destMax);
  NPUMESH_ACL_TRY(CheckOnDevice(__func__, "dst", dst, sizeof(void*)));
  NPUMESH_ACL_TRY(CheckOnDevice(__func__, "src", src, sizeof(void*)));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &found));
  found->stream.Enqueue([=]() -> Status {
    constexpr char kFunction[] = "aclrtMemcpyAsyncWithOffset";
    const auto& memory = AclProcess::Get().memory;
    if (!memory.OnDevice(dst, sizeof(void*)) || !memory.OnDevice(src, sizeof(void*))) {
      return npumesh::Error(Code::kInvalidArgument, "{}: dst or src was freed", kFunction);
    }
    // Numbers, not pointers: what lies there is checked as an address by the copy.
    uintptr_t to = 0;
    uintptr_t from = 0;
    std::memcpy(&to, dst, sizeof to);
    std::memcpy(&from, src, sizeof from);
    return CopyLate(kFunction, reinterpret_cast<void*>(to + dstDataOffset),
                    reinterpret_cast<const void*>(from + srcDataOffset), count);
  });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
