// Limits of cores: a part of acl_rt.h.
#include "acl/acl_rt.h"
#include "runtime/acl/limits/core_limits.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

using npumesh::AclContext;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::CoreLimits;
using npumesh::Fail;

namespace {

aclError CheckCoreKind(const char* function, aclrtDevResLimitType kind) {
  if (CoreLimits::IsKind(kind)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "type is {}, expected 0 (cube cores) or 1 (vector cores)", static_cast<int>(kind));
}

aclError CheckCores(const char* function, aclrtDevResLimitType kind, uint32_t value) {
  NPUMESH_ACL_TRY(CheckCoreKind(function, kind));
  if (value > 0 && value <= CoreLimits::Most(kind)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "value is {}, expected 1 to {}", value,
              CoreLimits::Most(kind));
}

aclError CheckCoreQuery(const char* function, aclrtDevResLimitType kind, const uint32_t* value) {
  if (value == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "value is null");
  return CheckCoreKind(function, kind);
}

uint32_t CoresOf(const CoreLimits& device, aclrtDevResLimitType kind) {
  return device.Get(kind).value_or(CoreLimits::Most(kind));
}

// The stream whose limits the calling thread uses.
std::weak_ptr<AclStream>& LimitingStream() {
  thread_local std::weak_ptr<AclStream> stream;
  return stream;
}

}  // namespace

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) try {
  NPUMESH_ACL_TRY(CheckCores(__func__, type, value));
  CoreLimits* limits = nullptr;
  NPUMESH_ACL_TRY(AclProcess::Get().FindCoreLimits(__func__, deviceId, &limits));
  limits->Set(type, value);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t* value) try {
  NPUMESH_ACL_TRY(CheckCoreQuery(__func__, type, value));
  CoreLimits* limits = nullptr;
  NPUMESH_ACL_TRY(AclProcess::Get().FindCoreLimits(__func__, deviceId, &limits));
  *value = CoresOf(*limits, type);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtResetDeviceResLimit(int32_t deviceId) try {
  CoreLimits* limits = nullptr;
  NPUMESH_ACL_TRY(AclProcess::Get().FindCoreLimits(__func__, deviceId, &limits));
  limits->Reset();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) try {
  NPUMESH_ACL_TRY(CheckCores(__func__, type, value));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  found->core_limits.Set(type, value);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                uint32_t* value) try {
  NPUMESH_ACL_TRY(CheckCoreQuery(__func__, type, value));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  const auto context = found->context.lock();
  if (context == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_CONTEXT, __func__, "the context of the stream has ended");
  }
  *value = found->core_limits.Get(type).value_or(
      CoresOf(AclProcess::Get().core_limits_of(context->index), type));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtResetStreamResLimit(aclrtStream stream) try {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  found->core_limits.Reset();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) try {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  LimitingStream() = found;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) try {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  NPUMESH_ACL_EXPECT(LimitingStream().lock() == found,
                     "this thread does not use the limits of stream {}", found->id);
  LimitingStream().reset();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) try {
  NPUMESH_ACL_TRY(CheckCoreQuery(__func__, type, value));
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  const auto stream = LimitingStream().lock();
  const auto of_stream = stream == nullptr ? std::nullopt : stream->core_limits.Get(type);
  *value = of_stream.value_or(CoresOf(AclProcess::Get().core_limits_of(context->index), type));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
