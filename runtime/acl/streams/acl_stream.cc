// Streams and host callbacks: parts of acl_rt.h.
#include <chrono>

#include <atomic>

#include "acl/acl_rt.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/acl/without_effect.h"

using npumesh::AclContext;
using npumesh::AclEvent;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::ApiSpan;
using npumesh::Deadline;
using npumesh::Fail;
using npumesh::ReportQueues;
using npumesh::WorkSpan;

namespace {

// What was set last; 0: without limit.
std::atomic<uint64_t> operator_timeout_us{0};

// A stream that the client has made, not the default one of a context.
aclError NeedOwnStream(const char* function, aclrtStream handle,
                       std::shared_ptr<AclStream>* stream) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "stream is null");
  NPUMESH_ACL_TRY(AclProcess::Get().NeedRunningStream(function, handle, stream));
  if (!(*stream)->is_default) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "the default stream belongs to its context");
}

aclError CreateStream(const char* function, aclrtStream* stream,
                      const npumesh::AclStreamOptions& options = {}) {
  const ApiSpan span(function);
  if (stream == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "stream is null");
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(function, &context));
  NPUMESH_ACL_TRY(AclProcess::Get().PermitStream(function));
  *stream = AclProcess::Get().MakeStream(context, false, options).get();
  AclProcess::Get().stream_callbacks.Tell(*stream, ACL_RT_STREAM_STATE_CREATE_POST);
  return ACL_SUCCESS;
}

aclError DestroyStream(const char* function, aclrtStream handle, bool force) {
  const ApiSpan span(function);
  std::shared_ptr<AclStream> stream;
  NPUMESH_ACL_TRY(NeedOwnStream(function, handle, &stream));
  AclProcess::Get().stream_callbacks.Tell(handle, ACL_RT_STREAM_STATE_DESTROY_PRE);
  AclProcess::Get().EndStream(stream, force);
  return ACL_SUCCESS;
}

aclError Subscribe(const char* function, ReportQueues& queues, uint64_t thread,
                   aclrtStream stream) {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(function, stream, &found));
  if (queues.Subscribe(thread, found.get())) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, function, "stream {} has a subscriber already",
              found->id);
}

aclError Unsubscribe(const char* function, ReportQueues& queues, uint64_t thread,
                     aclrtStream stream) {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(function, stream, &found));
  if (queues.Unsubscribe(thread, found.get())) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, function, "thread {} is not subscribed to stream {}",
              thread, found->id);
}

aclError Process(const char* function, ReportQueues& queues, int32_t timeout) {
  if (timeout != -1 && timeout <= 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "timeout is {}, expected -1 or more than 0",
                timeout);
  }
  const Deadline deadline =
      timeout == -1 ? Deadline::Never() : Deadline::After(std::chrono::milliseconds(timeout));
  switch (queues.RunOne(static_cast<uint64_t>(pthread_self()), deadline)) {
    case ReportQueues::Outcome::kRan:
      return ACL_SUCCESS;
    case ReportQueues::Outcome::kTimeout:
      return Fail(ACL_ERROR_WAIT_CALLBACK_TIMEOUT, function, "no callback came within {} ms",
                  timeout);
    case ReportQueues::Outcome::kNotSubscribed:
      break;
  }
  return Fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, function, "this thread is subscribed to no stream");
}

}  // namespace

aclError aclrtCreateStream(aclrtStream* stream) try {
  return CreateStream(__func__, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) try {
  NPUMESH_ACL_TRY(npumesh::CheckStreamOptions(__func__, {priority, flag}));
  return CreateStream(__func__, stream, {priority, flag});
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDestroyStream(aclrtStream stream) try {
  return DestroyStream(__func__, stream, false);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDestroyStreamForce(aclrtStream stream) try {
  return DestroyStream(__func__, stream, true);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSynchronizeStream(aclrtStream stream) try {
  const ApiSpan span(__func__);
  if (stream != nullptr) {
    const npumesh::StreamUse use(stream);
    if (use.stream() != nullptr && !use.stream()->stream.records()) {
      return npumesh::Report(__func__, use.stream()->stream.Synchronize());
    }
  }
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedRunningStream(__func__, stream, &found));
  return npumesh::Report(__func__, found->stream.Synchronize());
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) try {
  NPUMESH_ACL_EXPECT(timeout == -1 || timeout > 0, "timeout is {}, expected -1 or more than 0",
                     timeout);
  if (timeout == -1) return aclrtSynchronizeStream(stream);
  const ApiSpan span(__func__);
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedRunningStream(__func__, stream, &found));
  if (found->stream.SynchronizeUntil(Deadline::After(std::chrono::milliseconds(timeout)))) {
    return npumesh::Report(__func__, found->stream.failure());
  }
  return Fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, __func__, "stream {} has work left after {} ms",
              found->id, timeout);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) try {
  NPUMESH_ACL_EXPECT(status != nullptr, "status is null");
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedRunningStream(__func__, stream, &found));
  *status = found->stream.Idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) try {
  NPUMESH_ACL_EXPECT(mode == ACL_CONTINUE_ON_FAILURE || mode == ACL_STOP_ON_FAILURE,
                     "mode is {}, expected 0 (continue) or 1 (stop)", mode);
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(NeedOwnStream(__func__, stream, &found));
  if (found->failure_mode_set.exchange(true)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__, "stream {} has a failure mode already",
                found->id);
  }
  found->failure_mode = mode;
  found->stream.StopOnFailure(mode == ACL_STOP_ON_FAILURE);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtStreamAbort(aclrtStream stream) try {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  found->stream.Abort();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) try {
  NPUMESH_ACL_EXPECT(streamId != nullptr, "streamId is null");
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  *streamId = found->id;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) try {
  NPUMESH_ACL_EXPECT(stream != nullptr, "stream is null");
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  *stream = context->default_stream.get();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) try {
  AclProcess::Get().event_wait_seconds = timeout;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) try {
  operator_timeout_us = uint64_t{timeout} * 1000000;
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout) try {
  operator_timeout_us = uint64_t{timeout} * 1000;
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) try {
  NPUMESH_ACL_EXPECT(actualTimeout != nullptr, "actualTimeout is null");
  *actualTimeout = timeout;
  operator_timeout_us = timeout;
  return npumesh::AcceptWithoutEffect(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetOpExecuteTimeout(uint32_t* const timeoutMs) try {
  NPUMESH_ACL_EXPECT(timeoutMs != nullptr, "timeoutMs is null");
  *timeoutMs = static_cast<uint32_t>(operator_timeout_us / 1000);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetOpTimeOutInterval(uint64_t* interval) try {
  NPUMESH_ACL_EXPECT(interval != nullptr, "interval is null");
  *interval = 1;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(fn != nullptr, "fn is null");
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &found));
  const uint16_t lane = npumesh::LaneOfStream(found->id);
  ReportQueues& subscribed = AclProcess::Get().host_functions;
  found->stream.Enqueue([fn, args, device = found->device, lane, of = found.get(), &subscribed] {
    const WorkSpan work(device, {.name = "aclrtLaunchHostFunc", .type = "HostFunc", .lane = lane});
    if (subscribed.Subscribed(of)) {
      subscribed.Post(
          of, [fn, args] { fn(args); }, true);
    } else {
      fn(args);
    }
    return npumesh::Status();
  });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(fn != nullptr, "fn is null");
  NPUMESH_ACL_EXPECT(blockType == ACL_CALLBACK_NO_BLOCK || blockType == ACL_CALLBACK_BLOCK,
                     "blockType is {}, expected 0 or 1", static_cast<int>(blockType));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &found));
  ReportQueues& reports = AclProcess::Get().reports;
  if (!reports.Subscribed(found.get())) {
    return Fail(ACL_ERROR_RT_STREAM_NO_CB_REG, __func__,
                "no thread takes callbacks of stream {}; call aclrtSubscribeReport first",
                found->id);
  }
  const bool wait = blockType == ACL_CALLBACK_BLOCK;
  found->stream.Enqueue([&reports, of = found.get(), fn, userData, wait] {
    reports.Post(
        of, [fn, userData] { fn(userData); }, wait);
    return npumesh::Status();
  });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) try {
  return Subscribe(__func__, AclProcess::Get().reports, threadId, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) try {
  return Unsubscribe(__func__, AclProcess::Get().reports, threadId, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtProcessReport(int32_t timeout) try {
  return Process(__func__, AclProcess::Get().reports, timeout);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream) try {
  return Subscribe(__func__, AclProcess::Get().host_functions, hostFuncThreadId, exeStream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtUnSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream) try {
  return Unsubscribe(__func__, AclProcess::Get().host_functions, hostFuncThreadId, exeStream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtProcessHostFunc(int32_t timeout) try {
  return Process(__func__, AclProcess::Get().host_functions, timeout);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
