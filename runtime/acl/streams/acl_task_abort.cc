// The end of all tasks of a device: a part of acl_rt.h.
#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/acl/streams/state_callbacks.h"

using npumesh::AclProcess;

namespace {

npumesh::StateCallbacks<aclrtDeviceTaskAbortCallback>& Callbacks() {
  static auto* const callbacks = new npumesh::StateCallbacks<aclrtDeviceTaskAbortCallback>;
  return *callbacks;
}

}  // namespace

aclError aclrtSetDeviceTaskAbortCallback(const char* regName, aclrtDeviceTaskAbortCallback callback,
                                         void* args) try {
  NPUMESH_ACL_EXPECT(regName != nullptr && *regName != '\0', "regName is null or empty");
  if (callback == nullptr) {
    NPUMESH_ACL_EXPECT(Callbacks().Remove(regName), "no callback has the name \"{}\"", regName);
    return ACL_SUCCESS;
  }
  NPUMESH_ACL_EXPECT(Callbacks().Add(regName, callback, args),
                     "a callback has the name \"{}\" already", regName);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) try {
  std::vector<std::shared_ptr<npumesh::AclStream>> streams;
  NPUMESH_ACL_TRY(AclProcess::Get().FindStreams(__func__, deviceId, &streams));
  Callbacks().Tell(deviceId, ACL_RT_DEVICE_TASK_ABORT_PRE, timeout);
  for (const auto& stream : streams) stream->stream.Abort();
  Callbacks().Tell(deviceId, ACL_RT_DEVICE_TASK_ABORT_POST, timeout);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
