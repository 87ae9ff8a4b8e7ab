// Capture of streams: a part of acl_rt.h.
#include <chrono>

#include "acl/acl_rt.h"
#include "runtime/acl/api_span.h"
#include "runtime/acl/errors.h"
#include "runtime/acl/process.h"

using npumesh::AclContext;
using npumesh::AclModel;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::ApiSpan;
using npumesh::Captures;
using npumesh::Deadline;
using npumesh::Fail;
using npumesh::Recording;

namespace {

bool IsMode(aclmdlRICaptureMode mode) {
  return mode >= ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && mode <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
}

// The stream, which is not the default one, and the capture that it has begun.
aclError NeedOrigin(const char* function, aclrtStream handle, std::shared_ptr<AclModel>* model) {
  std::shared_ptr<AclStream> stream;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(function, handle, &stream));
  *model = AclProcess::Get().captures.ModelOf(stream->stream.recording());
  if (*model == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, function,
                "stream {} is not captured; aclmdlRICaptureBegin begins it", stream->id);
  }
  if ((*model)->origin != stream.get()) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, function,
                "stream {} has joined this capture; the stream of aclmdlRICaptureBegin ends it",
                stream->id);
  }
  if ((*model)->mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED &&
      (*model)->thread != std::this_thread::get_id()) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD, function,
                "another thread has begun the capture of stream {}", stream->id);
  }
  return ACL_SUCCESS;
}

// A model that can run.
aclError NeedModel(const char* function, aclmdlRI handle, std::shared_ptr<AclModel>* model) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "modelRI is null");
  *model = AclProcess::Get().captures.models.Find(handle);
  if (*model == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, function, "{} is no model", fmt::ptr(handle));
  }
  if ((*model)->recording->ended()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_MODEL_CAPTURED, function,
              "the model is being captured; aclmdlRICaptureEnd ends that");
}

void Enqueue(AclStream& stream, const AclModel& model) {
  stream.stream.Enqueue([recording = model.recording] { return recording->Run(); });
}

}  // namespace

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) try {
  NPUMESH_ACL_EXPECT(IsMode(mode), "mode is {}, expected 0 to 2", static_cast<int>(mode));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  if (found->is_default) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, __func__,
                "the default stream cannot be captured; aclrtCreateStream makes another");
  }
  auto recording = found->stream.BeginRecording();
  if (recording == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURED, __func__, "stream {} is captured already", found->id);
  }
  AclProcess::Get().captures.Begin(
      std::make_shared<AclModel>(std::move(recording), found.get(), mode));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status,
                                aclmdlRI* modelRI) try {
  NPUMESH_ACL_EXPECT(status != nullptr, "status is null");
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  const auto model = AclProcess::Get().captures.ModelOf(found->stream.recording());
  *status =
      model == nullptr ? ACL_MODEL_RI_CAPTURE_STATUS_NONE : ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
  if (modelRI != nullptr) *modelRI = model.get();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI) try {
  NPUMESH_ACL_EXPECT(modelRI != nullptr, "modelRI is null");
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(NeedOrigin(__func__, stream, &model));
  Captures& captures = AclProcess::Get().captures;
  const int unjoined = model->recording->unjoined();
  captures.End(model);
  if (unjoined == 0) {
    *modelRI = model.get();
    return ACL_SUCCESS;
  }
  *modelRI = nullptr;
  static_cast<void>(captures.models.Take(model.get()));
  return Fail(ACL_ERROR_RT_STREAM_UNJOINED, __func__,
              "{} streams have joined the capture and were not waited for; record an event as the "
              "last task of each, and let the captured stream wait for it",
              unjoined);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) try {
  NPUMESH_ACL_EXPECT(mode != nullptr, "mode is null");
  NPUMESH_ACL_EXPECT(IsMode(*mode), "mode is {}, expected 0 to 2", static_cast<int>(*mode));
  *mode = Captures::ExchangeMode(*mode);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(timeout == -1 || timeout > 0, "timeout is {}, expected -1 or more than 0",
                     timeout);
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(NeedModel(__func__, modelRI, &model));
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  Enqueue(*context->default_stream, *model);
  return aclrtSynchronizeStreamWithTimeout(context->default_stream.get(), timeout);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) try {
  const ApiSpan span(__func__);
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(NeedModel(__func__, modelRI, &model));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &found));
  if (found->stream.records()) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURED, __func__,
                "stream {} is captured; a model cannot be captured into another", found->id);
  }
  Enqueue(*found, *model);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) try {
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(NeedModel(__func__, modelRI, &model));
  static_cast<void>(AclProcess::Get().captures.models.Take(modelRI));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
