// Callbacks of tasks that fail, and the numbers of tasks: parts of acl_rt.h.
#include <algorithm>
#include <mutex>
#include <vector>

#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/acl/without_effect.h"
#include "runtime/device/stream.h"

using npumesh::AclProcess;
using npumesh::Fail;
using npumesh::StreamFailure;

// What a callback asks for; valid as long as it runs.
struct rtExceptionInfo {
  uint32_t task = 0;
  uint32_t stream = 0;
  uint32_t thread = 0;
  uint32_t device = 0;
  uint32_t code = 0;
};

namespace {

// The callbacks of this process.
class Listeners {
 public:
  static Listeners& Get() {
    static Listeners* const listeners = new Listeners;
    return *listeners;
  }

  // The one of aclrtSetExceptionInfoCallback; null removes it.
  void Set(aclrtExceptionInfoCallback callback) {
    const std::lock_guard lock(mutex_);
    set_ = callback;
    Watch();
  }
  bool Add(aclrtExceptionInfoCallback callback) {
    const std::lock_guard lock(mutex_);
    if (std::find(added_.begin(), added_.end(), callback) != added_.end()) return false;
    added_.push_back(callback);
    Watch();
    return true;
  }
  bool Remove(aclrtExceptionInfoCallback callback) {
    const std::lock_guard lock(mutex_);
    if (std::erase(added_, callback) == 0) return false;
    Watch();
    return true;
  }

 private:
  void Watch() const {
    npumesh::Stream::Watch(set_ != nullptr || !added_.empty() ? &Listeners::Tell : nullptr);
  }

  // Calls the client, so not under the mutex.
  static void Tell(const StreamFailure& failure) {
    rtExceptionInfo info = {static_cast<uint32_t>(failure.task),
                            static_cast<uint32_t>(failure.stream),
                            static_cast<uint32_t>(failure.thread), DeviceOf(failure.stream),
                            static_cast<uint32_t>(npumesh::ErrorOf(failure.status))};
    for (const auto callback : Get().All()) callback(&info);
  }

  std::vector<aclrtExceptionInfoCallback> All() const {
    const std::lock_guard lock(mutex_);
    std::vector<aclrtExceptionInfoCallback> all = added_;
    if (set_ != nullptr) all.insert(all.begin(), set_);
    return all;
  }

  static uint32_t DeviceOf(int32_t stream) {
    for (const auto& each : AclProcess::Get().streams.All()) {
      const auto context = each->id == stream ? each->context.lock() : nullptr;
      if (context != nullptr) return static_cast<uint32_t>(context->device_id);
    }
    return 0;
  }

  mutable std::mutex mutex_;  // guards the rest
  aclrtExceptionInfoCallback set_ = nullptr;
  std::vector<aclrtExceptionInfoCallback> added_;
};

// What the vendor returns for no information.
constexpr uint32_t kUnknown = 0xFFFFFFFF;

}  // namespace

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) try {
  Listeners::Get().Set(callback);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback) try {
  NPUMESH_ACL_EXPECT(callback != nullptr, "callback is null");
  NPUMESH_ACL_EXPECT(Listeners::Get().Add(callback), "the callback is registered already");
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback) try {
  NPUMESH_ACL_EXPECT(callback != nullptr, "callback is null");
  NPUMESH_ACL_EXPECT(Listeners::Get().Remove(callback), "the callback is not registered");
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? kUnknown : info->task;
}

uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? kUnknown : info->stream;
}

uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? kUnknown : info->thread;
}

uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? kUnknown : info->device;
}

uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? kUnknown : info->code;
}

aclError aclrtGetArgsFromExceptionInfo(const aclrtExceptionInfo*, void**, uint32_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetFuncHandleFromExceptionInfo(const aclrtExceptionInfo*, aclrtFuncHandle*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetThreadLastTaskId(uint32_t* taskId) try {
  NPUMESH_ACL_EXPECT(taskId != nullptr, "taskId is null");
  const uint64_t last = npumesh::Stream::LastOfThread();
  if (last == 0) {
    return Fail(ACL_ERROR_FAILURE, __func__, "this thread has queued nothing on a stream yet");
  }
  *taskId = static_cast<uint32_t>(last);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
