// What was taken down into a model, to be listed and changed: a part of acl_rt.h.
#include <unistd.h>

#include <algorithm>

#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"
#include "runtime/base/text/json.h"

using npumesh::AclModel;
using npumesh::AclModelStream;
using npumesh::AclModelTask;
using npumesh::AclProcess;
using npumesh::AclTaskNote;
using npumesh::Fail;
using npumesh::RecordedTask;
using npumesh::Recording;

namespace {

// Null: a task of npumesh's own, which has no parameters.
const AclTaskNote* NoteOf(const RecordedTask& task) {
  return static_cast<const AclTaskNote*>(task.note.get());
}

std::string NameOf(const RecordedTask& task) {
  const AclTaskNote* note = NoteOf(task);
  if (note != nullptr) return note->name;
  return task.control != nullptr ? "EVENT_WAIT" : "TASK";
}

// How many of `available` go into the caller's array; with a null array only their number.
template <typename Handle, typename At>
aclError PutHandles(const char* function, Handle* array, uint32_t* count, size_t available, At at) {
  if (array != nullptr && *count < available) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the array has {} places, expected {}", *count,
                available);
  }
  for (size_t i = 0; array != nullptr && i < available; ++i) array[i] = at(i);
  *count = static_cast<uint32_t>(available);
  return ACL_SUCCESS;
}

// The client's handles of the streams of a model: the streams themselves where they are bound to
// it, for a captured one others.
const std::vector<aclrtStream>& StreamsOf(const std::shared_ptr<AclModel>& model) {
  if (model->origin == AclModel::Origin::kBuilt) return model->streams;
  const size_t count = model->tasks->streams().size();
  while (model->views.size() < count) {
    auto view = std::make_shared<AclModelStream>(AclModelStream{model, model->views.size()});
    model->views.push_back(AclProcess::Get().run_models.streams.Add(std::move(view)));
  }
  return model->views;
}

// Of which model a handle is which stream.
aclError NeedModelStream(const char* function, aclrtStream handle, AclModelStream* stream) {
  npumesh::RunModels& models = AclProcess::Get().run_models;
  if (const auto view = models.streams.Find(handle)) {
    *stream = *view;
    return ACL_SUCCESS;
  }
  stream->model = models.BoundTo(handle);
  if (stream->model == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, function,
                "{} is no stream of a model; aclmdlRIGetStreams gives those", fmt::ptr(handle));
  }
  const std::lock_guard lock(stream->model->mutex);
  const auto& streams = stream->model->streams;
  stream->member =
      static_cast<size_t>(std::find(streams.begin(), streams.end(), handle) - streams.begin());
  return stream->model->tasks->ended()
             ? ACL_SUCCESS
             : Fail(ACL_ERROR_RT_MODEL_CAPTURED, function,
                    "the model is being built; aclmdlRIBuildEnd ends that");
}

aclError NeedTask(const char* function, aclmdlRITask handle, std::shared_ptr<AclModelTask>* task) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "task is null");
  *task = AclProcess::Get().run_models.tasks.Find(handle);
  if (*task != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, function, "{} is no task of a model", fmt::ptr(handle));
}

const RecordedTask& TaskOf(const AclModelTask& task) {
  return task.model->tasks->tasks()[task.index];
}

nlohmann::json JsonOf(const AclModel& model, const RecordedTask& task, size_t index) {
  const int32_t stream = model.tasks->streams()[task.member];
  nlohmann::json event;
  event["name"] = NameOf(task);
  event["pid"] = fmt::format("{} aclGraph", getpid());
  event["tid"] = fmt::format("stream{}", stream);
  event["ts"] = index;
  event["dur"] = 1;
  event["ph"] = "X";
  event["args"] = {{"Model Id", model.id},
                   {"Stream Id", stream},
                   {"Task Id", index},
                   {"Task Type", NameOf(task)}};
  return event;
}

}  // namespace

aclError aclmdlRIGetStreams(aclmdlRI modelRI, aclrtStream* streams, uint32_t* numStreams) try {
  NPUMESH_ACL_EXPECT(numStreams != nullptr, "numStreams is null");
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(npumesh::NeedModel(__func__, modelRI, &model));
  const std::lock_guard lock(model->mutex);
  const auto& all = StreamsOf(model);
  return PutHandles(__func__, streams, numStreams, all.size(), [&](size_t i) { return all[i]; });
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIGetTasksByStream(aclrtStream stream, aclmdlRITask* tasks, uint32_t* numTasks) try {
  NPUMESH_ACL_EXPECT(numTasks != nullptr, "numTasks is null");
  AclModelStream of;
  NPUMESH_ACL_TRY(NeedModelStream(__func__, stream, &of));
  const std::lock_guard lock(of.model->mutex);
  const auto& all = of.model->tasks->tasks();
  std::vector<size_t> mine;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].member == of.member) mine.push_back(i);
  }
  return PutHandles(__func__, tasks, numTasks, mine.size(), [&](size_t i) {
    aclmdlRITask& handle = of.model->task_handles[mine[i]];
    if (handle == nullptr) {
      handle = AclProcess::Get().run_models.tasks.Add(
          std::make_shared<AclModelTask>(AclModelTask{of.model, mine[i]}));
    }
    return handle;
  });
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRITaskGetSeqId(aclmdlRITask task, uint32_t* id) try {
  NPUMESH_ACL_EXPECT(id != nullptr, "id is null");
  std::shared_ptr<AclModelTask> found;
  NPUMESH_ACL_TRY(NeedTask(__func__, task, &found));
  *id = static_cast<uint32_t>(found->index);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRITaskGetType(aclmdlRITask task, aclmdlRITaskType* type) try {
  NPUMESH_ACL_EXPECT(type != nullptr, "type is null");
  std::shared_ptr<AclModelTask> found;
  NPUMESH_ACL_TRY(NeedTask(__func__, task, &found));
  const AclTaskNote* note = NoteOf(TaskOf(*found));
  *type = note == nullptr ? ACL_MODEL_RI_TASK_DEFAULT : note->params.type;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRITaskGetParams(aclmdlRITask task, aclmdlRITaskParams* params) try {
  NPUMESH_ACL_EXPECT(params != nullptr, "params is null");
  std::shared_ptr<AclModelTask> found;
  NPUMESH_ACL_TRY(NeedTask(__func__, task, &found));
  const AclTaskNote* note = NoteOf(TaskOf(*found));
  *params = note == nullptr ? aclmdlRITaskParams{} : note->params;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRITaskSetParams(aclmdlRITask task, aclmdlRITaskParams* params) try {
  NPUMESH_ACL_EXPECT(params != nullptr, "params is null");
  std::shared_ptr<AclModelTask> found;
  NPUMESH_ACL_TRY(NeedTask(__func__, task, &found));
  const AclTaskNote* note = NoteOf(TaskOf(*found));
  if (note == nullptr || note->remake == nullptr) {
    return Fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, __func__,
                "task {} has no parameters that can be changed", found->index);
  }
  NPUMESH_ACL_EXPECT(params->type == note->params.type, "type is {}, expected {} as it was",
                     static_cast<int>(params->type), static_cast<int>(note->params.type));
  Recording::Change change;
  NPUMESH_ACL_TRY(note->remake(__func__, *params, &change));
  const std::lock_guard lock(found->model->mutex);
  Recording::Change& kept = found->model->changes[found->index];
  change.leave_out = kept.leave_out;
  kept = std::move(change);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRITaskDisable(aclmdlRITask task) try {
  std::shared_ptr<AclModelTask> found;
  NPUMESH_ACL_TRY(NeedTask(__func__, task, &found));
  if (TaskOf(*found).work == nullptr) {
    return Fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, __func__,
                "task {} is a part of the order of the model and cannot be left out", found->index);
  }
  const std::lock_guard lock(found->model->mutex);
  found->model->changes[found->index].leave_out = true;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIUpdate(aclmdlRI modelRI) try {
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(npumesh::NeedModel(__func__, modelRI, &model));
  const std::lock_guard lock(model->mutex);
  if (model->tasks->Update(&model->changes)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__,
              "the model runs; synchronise the stream that runs it first");
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char* path, uint32_t flags) try {
  NPUMESH_ACL_EXPECT(path != nullptr, "path is null");
  NPUMESH_ACL_EXPECT(flags <= ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE, "flags is {}, expected 0 or 1",
                     flags);
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(npumesh::NeedModel(__func__, modelRI, &model));
  nlohmann::json events = nlohmann::json::array();
  {
    const std::lock_guard lock(model->mutex);
    const auto& tasks = model->tasks->tasks();
    for (size_t i = 0; i < tasks.size(); ++i) events.push_back(JsonOf(*model, tasks[i], i));
  }
  return npumesh::Report(
      __func__, npumesh::WriteFile(path, events.dump(1) + "\n", npumesh::FileKind::kDebug));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIDebugPrint(aclmdlRI modelRI) try {
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(npumesh::NeedModel(__func__, modelRI, &model));
  const std::lock_guard lock(model->mutex);
  const auto& tasks = model->tasks->tasks();
  for (size_t i = 0; i < tasks.size(); ++i) {
    NPUMESH_INFO("model {}: stream {}, task {}, {}", model->id,
                 model->tasks->streams()[tasks[i].member], i, NameOf(tasks[i]));
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
