// Models that are built of streams, their labels and branches: a part of acl_rt.h.
#include <algorithm>
#include <cstring>

#include "acl/acl_mdl.h"
#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/device/stream_program.h"

using npumesh::AclLabel;
using npumesh::AclLabelList;
using npumesh::AclModel;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::AclTaskNote;
using npumesh::Code;
using npumesh::Error;
using npumesh::Fail;
using npumesh::Flow;
using npumesh::RecordedPlace;
using npumesh::Recording;
using npumesh::Result;
using npumesh::StreamProgram;

namespace {

std::shared_ptr<AclTaskNote> NoteOf(const char* name) {
  return std::make_shared<AclTaskNote>(name, aclmdlRITaskParams{});
}

// A model whose building goes on.
aclError NeedBuilding(const char* function, aclmdlRI handle, std::shared_ptr<AclModel>* model) {
  NPUMESH_ACL_TRY(npumesh::NeedAnyModel(function, handle, model));
  if ((*model)->origin == AclModel::Origin::kBuilt && !(*model)->recording()->ended()) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, function,
              "the model is not being built; aclmdlRIBuildBegin begins one");
}

// A stream that is bound to a model whose building goes on, and which.
aclError NeedBound(const char* function, aclrtStream handle, std::shared_ptr<AclStream>* stream,
                   std::shared_ptr<AclModel>* model) {
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(function, handle, stream));
  *model = AclProcess::Get().run_models.BoundTo(handle);
  if (*model != nullptr && (*stream)->stream.records()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, function,
              "stream {} is bound to no model that is being built; aclmdlRIBindStream binds it",
              (*stream)->id);
}

// Both are bound to the same model.
aclError NeedBoundPair(const char* function, aclrtStream stream, aclrtStream other,
                       std::shared_ptr<AclStream>* found, RecordedPlace* start) {
  std::shared_ptr<AclModel> model;
  std::shared_ptr<AclStream> target;
  std::shared_ptr<AclModel> of_target;
  NPUMESH_ACL_TRY(NeedBound(function, stream, found, &model));
  NPUMESH_ACL_TRY(NeedBound(function, other, &target, &of_target));
  if (model != of_target) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, function, "streams {} and {} belong to two models",
                (*found)->id, target->id);
  }
  *start = {};
  static_cast<void>(target->stream.recording(&start->member));
  return ACL_SUCCESS;
}

aclError NeedLabel(const char* function, aclrtLabel handle, std::shared_ptr<AclLabel>* label) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "label is null");
  *label = AclProcess::Get().run_models.labels.Find(handle);
  if (*label != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, function, "{} is no label", fmt::ptr(handle));
}

// What decides in which way a stream goes on, read when it comes there.
template <typename T>
T ReadWord(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

template <typename T>
bool Compare(const void* left_address, aclrtCondition condition, const void* right_address) {
  const T left = ReadWord<T>(left_address);
  const T right = ReadWord<T>(right_address);
  switch (condition) {
    case ACL_RT_EQUAL:
      return left == right;
    case ACL_RT_NOT_EQUAL:
      return left != right;
    case ACL_RT_GREATER:
      return left > right;
    case ACL_RT_GREATER_OR_EQUAL:
      return left >= right;
    case ACL_RT_LESS:
      return left < right;
    default:
      return left <= right;
  }
}

// Goes on at a label, which must have been set in the recording by then.
Result<Flow> JumpTo(AclLabel& label, const Recording* recording, size_t number) {
  const std::lock_guard lock(label.mutex);
  if (label.recording.lock().get() == recording) return Flow{Flow::Kind::kJump, label.place};
  return Error(
      Code::kInvalidArgument,
      "aclrtSwitchLabelByIndex: label {} of the list was not set in a stream of this model; "
      "aclrtSetLabel sets it",
      number);
}

}  // namespace

aclError aclmdlRIBuildBegin(aclmdlRI* modelRI, uint32_t flag) try {
  NPUMESH_ACL_EXPECT(modelRI != nullptr, "modelRI is null");
  NPUMESH_ACL_EXPECT(flag == 0, "flag is {}, expected 0", flag);
  std::shared_ptr<npumesh::AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  *modelRI =
      AclProcess::Get()
          .run_models
          .Make(AclModel::Origin::kBuilt, std::make_shared<Recording>(Recording::Kind::kBuilt))
          .get();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream, uint32_t flag) try {
  NPUMESH_ACL_EXPECT(flag == ACL_MODEL_STREAM_FLAG_HEAD || flag == ACL_MODEL_STREAM_FLAG_DEFAULT,
                     "flag is {:#x}, expected ACL_MODEL_STREAM_FLAG_HEAD or _DEFAULT", flag);
  NPUMESH_ACL_EXPECT(stream != nullptr, "stream is null: the default stream belongs to no model");
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(NeedBuilding(__func__, modelRI, &model));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  NPUMESH_ACL_EXPECT((found->flags & ACL_STREAM_PERSISTENT) != 0,
                     "stream {} was made without ACL_STREAM_PERSISTENT", found->id);
  npumesh::RunModels& models = AclProcess::Get().run_models;
  const auto recording = model->recording();
  if (models.BoundTo(stream) != nullptr || !found->stream.BeginRecording(recording)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__,
                "stream {} is bound to a model or captured already", found->id);
  }
  size_t member = 0;
  static_cast<void>(found->stream.recording(&member));
  if (flag == ACL_MODEL_STREAM_FLAG_HEAD) recording->AddHead(member);
  models.Bind(stream, model);
  const std::lock_guard lock(model->mutex);
  model->streams.push_back(stream);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream) try {
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(npumesh::NeedAnyModel(__func__, modelRI, &model));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  if (AclProcess::Get().run_models.BoundTo(stream) != model) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__, "stream {} is not bound to this model",
                found->id);
  }
  if (found->stream.records()) {
    return Fail(ACL_ERROR_RT_MODEL_CAPTURED, __func__,
                "the model is being built; aclmdlRIBuildEnd ends that");
  }
  AclProcess::Get().run_models.Unbind(stream);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream) try {
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(NeedBuilding(__func__, modelRI, &model));
  std::shared_ptr<AclStream> found;
  std::shared_ptr<AclModel> bound;
  NPUMESH_ACL_TRY(NeedBound(__func__, stream, &found, &bound));
  NPUMESH_ACL_EXPECT(bound == model, "stream {} is bound to another model", found->id);
  const std::lock_guard lock(model->mutex);
  if (model->end_marked) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__, "the model has its end already");
  }
  model->end_marked = true;
  found->stream.TakeDown(
      [](const StreamProgram&) -> Result<Flow> {
        return Flow{Flow::Kind::kEnd, {}};
      },
      NoteOf("MODEL_END_GRAPH"));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void* reserve) try {
  NPUMESH_ACL_EXPECT(reserve == nullptr, "reserve is not null");
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(NeedBuilding(__func__, modelRI, &model));
  {
    const std::lock_guard lock(model->mutex);
    if (!model->end_marked) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__,
                  "no stream of the model has an end; aclmdlRIEndTask marks it");
    }
  }
  model->recording()->End();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCreateLabel(aclrtLabel* label) try {
  NPUMESH_ACL_EXPECT(label != nullptr, "label is null");
  std::shared_ptr<npumesh::AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  *label = AclProcess::Get().run_models.labels.Add(std::make_shared<AclLabel>());
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDestroyLabel(aclrtLabel label) try {
  std::shared_ptr<AclLabel> found;
  NPUMESH_ACL_TRY(NeedLabel(__func__, label, &found));
  static_cast<void>(AclProcess::Get().run_models.labels.Take(label));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetLabel(aclrtLabel label, aclrtStream stream) try {
  std::shared_ptr<AclLabel> found;
  NPUMESH_ACL_TRY(NeedLabel(__func__, label, &found));
  std::shared_ptr<AclStream> on;
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(NeedBound(__func__, stream, &on, &model));
  const std::lock_guard lock(found->mutex);
  if (found->recording.lock() != nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__, "the label is set already");
  }
  found->place = on->stream.RecordedEnd().value_or(RecordedPlace());
  found->recording = model->recording();
  on->stream.TakeDown(NoteOf("LABEL_SET"));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCreateLabelList(aclrtLabel* labels, size_t num, aclrtLabelList* labelList) try {
  NPUMESH_ACL_EXPECT(labels != nullptr && labelList != nullptr, "labels or labelList is null");
  NPUMESH_ACL_EXPECT(num > 0 && num <= 65535, "num is {}, expected 1 to 65535", num);
  auto list = std::make_shared<AclLabelList>();
  for (size_t i = 0; i < num; ++i) {
    std::shared_ptr<AclLabel> label;
    NPUMESH_ACL_TRY(NeedLabel(__func__, labels[i], &label));
    list->labels.push_back(std::move(label));
  }
  *labelList = AclProcess::Get().run_models.label_lists.Add(std::move(list));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDestroyLabelList(aclrtLabelList labelList) try {
  NPUMESH_ACL_EXPECT(labelList != nullptr, "labelList is null");
  if (AclProcess::Get().run_models.label_lists.Take(labelList) != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__, "{} is no list of labels", fmt::ptr(labelList));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSwitchLabelByIndex(void* ptr, uint32_t maxValue, aclrtLabelList labelList,
                                 aclrtStream stream) try {
  NPUMESH_ACL_EXPECT(AclProcess::Get().memory.OnDevice(ptr, sizeof(uint32_t)),
                     "ptr is {}, expected 4 bytes of device memory", fmt::ptr(ptr));
  NPUMESH_ACL_EXPECT(labelList != nullptr, "labelList is null");
  auto list = AclProcess::Get().run_models.label_lists.Find(labelList);
  if (list == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__, "{} is no list of labels",
                fmt::ptr(labelList));
  }
  NPUMESH_ACL_EXPECT(maxValue == list->labels.size(),
                     "maxValue is {}, expected the {} labels of the list", maxValue,
                     list->labels.size());
  std::shared_ptr<AclStream> found;
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(NeedBound(__func__, stream, &found, &model));
  // The recording holds this task, so it lives when the task runs.
  const Recording* recording = model->recording().get();
  found->stream.TakeDown(
      [ptr, list = std::move(list), recording](const StreamProgram&) {
        const size_t number = std::min<size_t>(ReadWord<uint32_t>(ptr), list->labels.size() - 1);
        return JumpTo(*list->labels[number], recording, number);
      },
      NoteOf("LABEL_SWITCH_BY_INDEX"));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream) try {
  std::shared_ptr<AclStream> found;
  RecordedPlace start;
  NPUMESH_ACL_TRY(NeedBoundPair(__func__, stream, activeStream, &found, &start));
  found->stream.TakeDown(
      [start](const StreamProgram&) -> Result<Flow> {
        return Flow{Flow::Kind::kStart, start};
      },
      NoteOf("STREAM_ACTIVE"));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSwitchStream(void* leftValue, aclrtCondition cond, void* rightValue,
                           aclrtCompareDataType dataType, aclrtStream trueStream,
                           aclrtStream falseStream, aclrtStream stream) try {
  NPUMESH_ACL_EXPECT(cond >= ACL_RT_EQUAL && cond <= ACL_RT_LESS_OR_EQUAL,
                     "cond is {}, expected 0 to 5", static_cast<int>(cond));
  NPUMESH_ACL_EXPECT(dataType == ACL_RT_SWITCH_INT32 || dataType == ACL_RT_SWITCH_INT64,
                     "dataType is {}, expected 0 or 1", static_cast<int>(dataType));
  NPUMESH_ACL_EXPECT(falseStream == nullptr, "falseStream is not null: it is reserved");
  const size_t bytes = dataType == ACL_RT_SWITCH_INT32 ? sizeof(int32_t) : sizeof(int64_t);
  const auto& memory = AclProcess::Get().memory;
  NPUMESH_ACL_EXPECT(memory.OnDevice(leftValue, bytes) && memory.OnDevice(rightValue, bytes),
                     "leftValue or rightValue is no device memory of {} bytes", bytes);
  std::shared_ptr<AclStream> found;
  RecordedPlace start;
  NPUMESH_ACL_TRY(NeedBoundPair(__func__, stream, trueStream, &found, &start));
  const auto compare = dataType == ACL_RT_SWITCH_INT32 ? Compare<int32_t> : Compare<int64_t>;
  found->stream.TakeDown(
      [=](const StreamProgram&) -> Result<Flow> {
        const bool jumps = compare(leftValue, cond, rightValue);
        return Flow{jumps ? Flow::Kind::kJump : Flow::Kind::kNext, start};
      },
      NoteOf("STREAM_SWITCH"));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
