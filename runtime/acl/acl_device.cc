// Devices and contexts: the first parts of acl_rt.h.
#include "acl/acl_rt.h"
#include "runtime/acl/limits/soc.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

using npumesh::AclContext;
using npumesh::AclProcess;
using npumesh::ApiSpan;
using npumesh::Fail;

namespace {

aclError SameId(const char* function, int32_t from, int32_t* to) {
  if (to == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the pointer for the result is null");
  }
  NPUMESH_ACL_TRY(AclProcess::Get().CheckNodeDevice(function, from));
  *to = from;
  return ACL_SUCCESS;
}

}  // namespace

aclError aclrtSetDevice(int32_t deviceId) try {
  const auto& callbacks = AclProcess::Get().device_callbacks;
  callbacks.Tell(deviceId, ACL_RT_DEVICE_STATE_SET_PRE);
  NPUMESH_ACL_TRY(AclProcess::Get().SetDevice(__func__, deviceId));
  callbacks.Tell(deviceId, ACL_RT_DEVICE_STATE_SET_POST);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtResetDevice(int32_t deviceId) try {
  const auto& callbacks = AclProcess::Get().device_callbacks;
  callbacks.Tell(deviceId, ACL_RT_DEVICE_STATE_RESET_PRE);
  NPUMESH_ACL_TRY(AclProcess::Get().ResetDevice(__func__, deviceId));
  callbacks.Tell(deviceId, ACL_RT_DEVICE_STATE_RESET_POST);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtResetDeviceForce(int32_t deviceId) try {
  const auto& callbacks = AclProcess::Get().device_callbacks;
  callbacks.Tell(deviceId, ACL_RT_DEVICE_STATE_RESET_PRE);
  NPUMESH_ACL_TRY(AclProcess::Get().ResetDeviceForce(__func__, deviceId));
  callbacks.Tell(deviceId, ACL_RT_DEVICE_STATE_RESET_POST);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetDevice(int32_t* deviceId) try {
  NPUMESH_ACL_EXPECT(deviceId != nullptr, "deviceId is null");
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  *deviceId = AclProcess::CurrentDeviceId();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetDeviceCount(uint32_t* count) try {
  NPUMESH_ACL_EXPECT(count != nullptr, "count is null");
  const npumesh::Result<int> devices = AclProcess::Get().DeviceCount();
  NPUMESH_ACL_TRY(npumesh::Report(__func__, devices.status()));
  *count = static_cast<uint32_t>(*devices);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) try {
  NPUMESH_ACL_EXPECT(runMode != nullptr, "runMode is null");
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

const char* aclrtGetSocName() {
  return npumesh::kSocName;
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) try {
  NPUMESH_ACL_EXPECT(mode == ACL_RT_OVERFLOW_MODE_SATURATION || mode == ACL_RT_OVERFLOW_MODE_INFNAN,
                     "mode is {}, expected 0 (saturation) or 1 (infinity and NaN)",
                     static_cast<int>(mode));
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  context->overflow_mode = mode;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) try {
  NPUMESH_ACL_EXPECT(mode != nullptr, "mode is null");
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  *mode = context->overflow_mode;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSynchronizeDevice() try {
  const ApiSpan span(__func__);
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  npumesh::Status first;
  for (const auto& stream : context->Streams()) {
    const npumesh::Status status = stream->stream.Synchronize();
    if (first.ok()) first = status;
  }
  return npumesh::Report(__func__, first);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) try {
  NPUMESH_ACL_EXPECT(timeout == -1 || timeout > 0, "timeout is {}, expected -1 or more than 0",
                     timeout);
  if (timeout == -1) return aclrtSynchronizeDevice();
  const ApiSpan span(__func__);
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  const auto deadline = npumesh::Deadline::After(std::chrono::milliseconds(timeout));
  npumesh::Status first;
  for (const auto& stream : context->Streams()) {
    if (!stream->stream.SynchronizeUntil(deadline)) {
      return Fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, __func__, "stream {} has work left after {} ms",
                  stream->id, timeout);
    }
    if (first.ok()) first = stream->stream.failure();
  }
  return npumesh::Report(__func__, first);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) try {
  NPUMESH_ACL_EXPECT(deviceStatus != nullptr, "deviceStatus is null");
  NPUMESH_ACL_TRY(AclProcess::Get().CheckNodeDevice(__func__, deviceId));
  *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId,
                                  int32_t peerDeviceId) try {
  NPUMESH_ACL_EXPECT(canAccessPeer != nullptr, "canAccessPeer is null");
  NPUMESH_ACL_TRY(AclProcess::Get().CheckNodeDevice(__func__, deviceId));
  NPUMESH_ACL_TRY(AclProcess::Get().CheckNodeDevice(__func__, peerDeviceId));
  NPUMESH_ACL_EXPECT(deviceId != peerDeviceId, "device {} is no peer of itself", deviceId);
  *canAccessPeer = 1;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) try {
  NPUMESH_ACL_EXPECT(flags == 0, "flags is {}, expected 0", flags);
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  return AclProcess::Get().CheckNodeDevice(__func__, peerDeviceId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) try {
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  return AclProcess::Get().CheckNodeDevice(__func__, peerDeviceId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t* const phyDevId) try {
  return SameId(__func__, logicDevId, phyDevId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t* const logicDevId) try {
  return SameId(__func__, userDevid, logicDevId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t* const userDevid) try {
  return SameId(__func__, logicDevId, userDevid);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) try {
  NPUMESH_ACL_EXPECT(context != nullptr, "context is null");
  return AclProcess::Get().CreateContext(__func__, deviceId, context);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDestroyContext(aclrtContext context) try {
  NPUMESH_ACL_EXPECT(context != nullptr, "context is null");
  return AclProcess::Get().DestroyContext(__func__, context);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetCurrentContext(aclrtContext context) try {
  NPUMESH_ACL_EXPECT(context != nullptr, "context is null");
  return AclProcess::Get().SetContext(__func__, context);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetCurrentContext(aclrtContext* context) try {
  NPUMESH_ACL_EXPECT(context != nullptr, "context is null");
  std::shared_ptr<AclContext> current;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &current));
  *context = current.get();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t* const logicDevId) try {
  return SameId(__func__, phyDevId, logicDevId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId, int32_t* const userDevId) try {
  return SameId(__func__, phyDevId, userDevId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t* const phyDevId) try {
  return SameId(__func__, userDevId, phyDevId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
