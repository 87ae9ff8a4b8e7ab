#include "runtime/acl/memory/copy.h"

#include <cstring>

#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

namespace npumesh {
namespace {

const char* DirectionOf(bool from_device, bool to_device) {
  if (from_device) return to_device ? "device to device" : "device to host";
  return to_device ? "host to device" : "host to host";
}

DeviceWork WorkOf(const Copy& copy, uint16_t lane) {
  return {.kind = SpanKind::kCopy, .name = copy.direction, .bytes = copy.bytes, .lane = lane};
}

// Whose profile has a copy of the calling thread; null: none.
AclDevice* ProfiledDevice() {
  if (!DeviceProfiles::AnyKeeps(SpanKind::kCopy)) return nullptr;
  const auto context = AclProcess::CurrentContext();
  return context == nullptr ? nullptr : context->device;
}

void Move(const Copy& copy, AclDevice* device, uint16_t lane) {
  const WorkSpan span(device, WorkOf(copy, lane));
  std::memmove(copy.to, copy.from, copy.bytes);
}

bool IsKind(aclrtMemcpyKind kind) {
  return kind >= ACL_MEMCPY_HOST_TO_HOST && kind <= ACL_MEMCPY_INTER_DEVICE_TO_DEVICE;
}

bool SaysToDevice(aclrtMemcpyKind kind) {
  return kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE ||
         kind == ACL_MEMCPY_DEVICE_TO_DEVICE || kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE ||
         kind == ACL_MEMCPY_INTER_DEVICE_TO_DEVICE;
}

bool SaysFromDevice(aclrtMemcpyKind kind) {
  return kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE ||
         kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE || kind == ACL_MEMCPY_INTER_DEVICE_TO_DEVICE;
}

// One side of a copy, which may lie anywhere unless its kind says that it is on a device.
aclError CheckSide(std::string_view function, std::string_view name, const void* pointer,
                   size_t bytes, bool says_device) {
  const auto& memory = AclProcess::Get().memory;
  if (memory.OnDevice(pointer, bytes)) return ACL_SUCCESS;
  if (const std::string why = memory.WhyNot(pointer, bytes); !why.empty()) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "{}: {} bytes at {} {}", name, bytes,
                fmt::ptr(pointer), why);
  }
  if (says_device) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "the kind says that {} is on a device, but its {} bytes at {} are not", name, bytes,
                fmt::ptr(pointer));
  }
  if (!memory.BeyondHostBlock(pointer, bytes)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "{}: {} bytes at {} begin in a block of aclrtMallocHost and end beyond it", name,
              bytes, fmt::ptr(pointer));
}

}  // namespace

aclError CheckAccess(std::string_view function, const void* pointer, size_t bytes, bool writes) {
  const PageRule rule = AclProcess::Get().memory.RuleOf(pointer, bytes);
  if (rule.readable && (rule.writable || !writes)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "{} bytes at {} may {}; aclrtMemSetAccess says what may be done there", bytes,
              fmt::ptr(pointer), rule.readable ? "be read only" : "not be used");
}

aclError CheckCopy(std::string_view function, const CopyWish& wish, Copy* copy) {
  const auto& [dst, dest_max, src, count, kind] = wish;
  const auto& memory = AclProcess::Get().memory;
  if (!IsKind(kind)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "kind is {}, expected 0 to 7",
                static_cast<int>(kind));
  }
  if (count > dest_max) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "count is {}, but destMax only {}", count,
                dest_max);
  }
  *copy = {dst, src, count};
  if (count == 0) return ACL_SUCCESS;
  if (dst == nullptr || src == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "{} is null", dst == nullptr ? "dst" : "src");
  }
  NPUMESH_ACL_TRY(CheckAccess(function, dst, count, true));
  NPUMESH_ACL_TRY(CheckAccess(function, src, count, false));
  NPUMESH_ACL_TRY(CheckSide(function, "dst", dst, count, SaysToDevice(kind)));
  NPUMESH_ACL_TRY(CheckSide(function, "src", src, count, SaysFromDevice(kind)));
  const bool to_device = memory.OnDevice(dst, count);
  const bool from_device = memory.OnDevice(src, count);
  copy->direction = DirectionOf(from_device, to_device);
  copy->pageable =
      (!to_device && !memory.Pinned(dst, count)) || (!from_device && !memory.Pinned(src, count));
  return ACL_SUCCESS;
}

void CopyNow(const Copy& copy) {
  Move(copy, ProfiledDevice(), kHostLane);
}

void QueueCopy(const Copy& copy, AclStream& stream) {
  stream.stream.Enqueue([copy, device = stream.device, lane = LaneOfStream(stream.id)] {
    Move(copy, device, lane);
    return Status();
  });
}

}  // namespace npumesh
