// Models that run on streams, as their clients call them: a part of acl_rt.h.
#include <algorithm>
#include <cstring>

#include "acl/acl_rt.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

using npumesh::AclContext;
using npumesh::AclModel;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::ApiSpan;
using npumesh::Fail;

namespace {

// A model that the client may run or destroy: not a branch of another.
aclError NeedRoot(const char* function, aclmdlRI handle, std::shared_ptr<AclModel>* model) {
  NPUMESH_ACL_TRY(npumesh::NeedAnyModel(function, handle, model));
  if ((*model)->origin == AclModel::Origin::kBranch) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, function,
                "the model is a branch of a conditional task: it runs and ends with that model");
  }
  return npumesh::NeedModel(function, handle, model);
}

void Enqueue(AclStream& stream, const AclModel& model) {
  stream.stream.Enqueue([recording = model.recording()] { return recording->Run(); });
}

}  // namespace

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(timeout == -1 || timeout > 0, "timeout is {}, expected -1 or more than 0",
                     timeout);
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(NeedRoot(__func__, modelRI, &model));
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
  NPUMESH_ACL_TRY(NeedRoot(__func__, modelRI, &model));
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

aclError aclmdlRIAbort(aclmdlRI modelRI) try {
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(NeedRoot(__func__, modelRI, &model));
  if (model->origin == AclModel::Origin::kCaptured) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __func__,
                "the model was captured; aclrtStreamAbort ends the stream that runs it");
  }
  model->recording()->Abort();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) try {
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(NeedRoot(__func__, modelRI, &model));
  AclProcess::Get().run_models.Forget(model);
  std::vector<std::pair<aclrtCallback, void*>> callbacks;
  {
    const std::lock_guard lock(model->mutex);
    callbacks.swap(model->at_destroy);
  }
  for (const auto& [callback, user_data] : callbacks) callback(user_data);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIDestroyRegisterCallback(aclmdlRI modelRI, aclrtCallback func, void* userData) try {
  NPUMESH_ACL_EXPECT(func != nullptr, "func is null");
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(npumesh::NeedAnyModel(__func__, modelRI, &model));
  const std::lock_guard lock(model->mutex);
  auto& callbacks = model->at_destroy;
  const bool known = std::any_of(callbacks.begin(), callbacks.end(),
                                 [&](const auto& one) { return one.first == func; });
  if (known) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__, "the function is registered already");
  }
  callbacks.emplace_back(func, userData);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIDestroyUnregisterCallback(aclmdlRI modelRI, aclrtCallback func) try {
  NPUMESH_ACL_EXPECT(func != nullptr, "func is null");
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(npumesh::NeedAnyModel(__func__, modelRI, &model));
  const std::lock_guard lock(model->mutex);
  if (std::erase_if(model->at_destroy, [&](const auto& one) { return one.first == func; }) > 0) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__, "the function is not registered");
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRISetName(aclmdlRI modelRI, const char* name) try {
  NPUMESH_ACL_EXPECT(name != nullptr, "name is null");
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(npumesh::NeedAnyModel(__func__, modelRI, &model));
  const std::lock_guard lock(model->mutex);
  model->name = name;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char* name) try {
  NPUMESH_ACL_EXPECT(name != nullptr && maxLen > 0, "name is null, or maxLen is 0");
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(npumesh::NeedAnyModel(__func__, modelRI, &model));
  constexpr size_t kLongest = 512;
  const std::lock_guard lock(model->mutex);
  const size_t length = std::min({model->name.size(), size_t{maxLen} - 1, kLongest});
  std::memcpy(name, model->name.data(), length);
  name[length] = '\0';
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t* modelRIId) try {
  NPUMESH_ACL_EXPECT(modelRIId != nullptr, "modelRIId is null");
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(npumesh::NeedAnyModel(__func__, modelRI, &model));
  *modelRIId = model->id;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
