// Capture of streams: a part of acl_rt.h.
#include <chrono>

#include "acl/acl_rt.h"
#include "runtime/acl/limits/collective_cores.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

using npumesh::AclCapture;
using npumesh::AclModel;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::AclTaskGroup;
using npumesh::Captures;
using npumesh::Fail;
using npumesh::Recording;

namespace {

bool IsMode(aclmdlRICaptureMode mode) {
  return mode >= ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && mode <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
}

// The stream, and the capture that it takes part in.
aclError NeedCaptured(const char* function, aclrtStream handle, std::shared_ptr<AclStream>* stream,
                      AclCapture* capture) {
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(function, handle, stream));
  auto found = AclProcess::Get().captures.Find((*stream)->stream.recording());
  if (!found) {
    return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, function,
                "stream {} is not captured; aclmdlRICaptureBegin begins it", (*stream)->id);
  }
  *capture = *std::move(found);
  return ACL_SUCCESS;
}

// The capture that the stream has begun.
aclError NeedOrigin(const char* function, aclrtStream handle, AclCapture* capture) {
  std::shared_ptr<AclStream> stream;
  NPUMESH_ACL_TRY(NeedCaptured(function, handle, &stream, capture));
  if (capture->origin != stream.get()) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, function,
                "stream {} has joined this capture; the stream of aclmdlRICaptureBegin ends it",
                stream->id);
  }
  if (capture->mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id()) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD, function,
                "another thread has begun the capture of stream {}", stream->id);
  }
  return ACL_SUCCESS;
}

// Tasks of the stream go to `recording` from now on.
aclError BeginRecording(const char* function, aclrtStream handle,
                        const std::shared_ptr<Recording>& recording,
                        std::shared_ptr<AclStream>* stream) {
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(function, handle, stream));
  if ((*stream)->is_default) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT, function,
                "the default stream cannot be captured; aclrtCreateStream makes another");
  }
  if ((*stream)->stream.BeginRecording(recording)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_STREAM_CAPTURED, function,
              "stream {} is captured already, or bound to a model", (*stream)->id);
}

// The branch of a conditional task, which is empty so far.
aclError NeedEmptyBranch(const char* function, aclmdlRI handle, std::shared_ptr<AclModel>* model) {
  NPUMESH_ACL_TRY(npumesh::NeedAnyModel(function, handle, model));
  if ((*model)->origin == AclModel::Origin::kBranch && (*model)->recording() == nullptr) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, function,
              "modelRI is no empty branch that aclmdlRIAddCondTask has made");
}

}  // namespace

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) try {
  NPUMESH_ACL_EXPECT(IsMode(mode), "mode is {}, expected 0 to 2", static_cast<int>(mode));
  NPUMESH_ACL_TRY(AclProcess::Get().PermitStream(__func__));
  auto recording = std::make_shared<Recording>();
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(BeginRecording(__func__, stream, recording, &found));
  AclProcess& process = AclProcess::Get();
  auto model = process.run_models.Make(AclModel::Origin::kCaptured, recording);
  process.captures.Begin({std::move(model), std::move(recording), found.get(), mode});
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRICaptureToModelRIBegin(aclrtStream stream, aclmdlRI modelRI,
                                       aclmdlRICaptureMode mode) try {
  NPUMESH_ACL_EXPECT(IsMode(mode), "mode is {}, expected 0 to 2", static_cast<int>(mode));
  std::shared_ptr<AclModel> branch;
  NPUMESH_ACL_TRY(NeedEmptyBranch(__func__, modelRI, &branch));
  auto recording = std::make_shared<Recording>();
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(BeginRecording(__func__, stream, recording, &found));
  {
    const std::lock_guard lock(branch->mutex);
    branch->tasks = recording;
  }
  AclProcess::Get().captures.Begin({std::move(branch), std::move(recording), found.get(), mode});
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status,
                                aclmdlRI* modelRI) try {
  NPUMESH_ACL_EXPECT(status != nullptr, "status is null");
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  const auto capture = AclProcess::Get().captures.Find(found->stream.recording());
  *status = !capture           ? ACL_MODEL_RI_CAPTURE_STATUS_NONE
            : capture->invalid ? ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED
                               : ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
  if (modelRI != nullptr) *modelRI = capture ? capture->model.get() : nullptr;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI) try {
  NPUMESH_ACL_EXPECT(modelRI != nullptr, "modelRI is null");
  AclCapture capture;
  NPUMESH_ACL_TRY(NeedOrigin(__func__, stream, &capture));
  const int unjoined = capture.recording->unjoined();
  AclProcess& process = AclProcess::Get();
  process.captures.End(capture);
  const bool complete = unjoined == 0 && !capture.invalid;
  const aclError of_cores =
      complete ? CheckCollectiveCores(__func__, *capture.recording, process.card_limits)
               : ACL_SUCCESS;
  if (complete && of_cores == ACL_SUCCESS) {
    *modelRI = capture.model.get();
    return ACL_SUCCESS;
  }
  *modelRI = nullptr;
  if (capture.model->origin == AclModel::Origin::kBranch) {
    const std::lock_guard lock(capture.model->mutex);
    capture.model->tasks = nullptr;
  } else {
    process.run_models.Forget(capture.model);
  }
  if (complete) return of_cores;
  if (capture.invalid) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, __func__,
                "an event that the capture could not wait for has made it invalid; mend the call "
                "that failed, and capture again");
  }
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

aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream) try {
  std::shared_ptr<AclStream> found;
  AclCapture capture;
  NPUMESH_ACL_TRY(NeedCaptured(__func__, stream, &found, &capture));
  size_t member = 0;
  static_cast<void>(found->stream.recording(&member));
  if (capture.recording->BeginGroup(member)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__,
              "stream {} has a task group open; aclmdlRICaptureTaskGrpEnd ends it", found->id);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp* handle) try {
  NPUMESH_ACL_EXPECT(handle != nullptr, "handle is null");
  std::shared_ptr<AclStream> found;
  AclCapture capture;
  NPUMESH_ACL_TRY(NeedCaptured(__func__, stream, &found, &capture));
  size_t member = 0;
  static_cast<void>(found->stream.recording(&member));
  auto tasks = capture.recording->EndGroup(member);
  if (!tasks) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__,
                "stream {} has no task group open; aclmdlRICaptureTaskGrpBegin begins one",
                found->id);
  }
  auto group = std::make_shared<AclTaskGroup>();
  group->recording = capture.recording;
  group->tasks = *std::move(tasks);
  const std::lock_guard lock(capture.model->mutex);
  *handle = AclProcess::Get().run_models.groups.Add(std::move(group));
  capture.model->groups.push_back(*handle);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle) try {
  NPUMESH_ACL_EXPECT(handle != nullptr, "handle is null");
  npumesh::RunModels& models = AclProcess::Get().run_models;
  auto group = models.groups.Find(handle);
  if (group == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__, "{} is no task group", fmt::ptr(handle));
  }
  if (!group->recording->ended()) {
    return Fail(ACL_ERROR_RT_MODEL_CAPTURED, __func__,
                "the model of the task group is being captured; aclmdlRICaptureEnd ends that");
  }
  auto by = std::make_shared<Recording>();
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(BeginRecording(__func__, stream, by, &found));
  static_cast<void>(models.BeginUpdate(found.get(), {std::move(group), std::move(by)}));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) try {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  const auto update = AclProcess::Get().run_models.EndUpdate(found.get());
  if (!update) {
    return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, __func__,
                "stream {} updates no tasks; aclmdlRICaptureTaskUpdateBegin begins that",
                found->id);
  }
  update->by->End();
  if (update->group->recording->Exchange(update->group->tasks, *update->by)) return ACL_SUCCESS;
  return Fail(
      ACL_ERROR_RT_PARAM_INVALID, __func__,
      "{} tasks cannot take the place of the {} of the group: their number must be the same",
      update->by->task_count(), update->group->tasks.size());
} catch (...) {
  return npumesh::FailThrown(__func__);
}
