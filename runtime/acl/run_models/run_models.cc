#include "runtime/acl/run_models/run_models.h"

#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

namespace npumesh {

AclCondition::AclCondition(const AclContext& context, uint64_t* word)
    : lives_as_(context.default_stream), word_(word) {}

AclCondition::~AclCondition() {
  const auto stream = lives_as_.lock();
  AclProcess& process = AclProcess::Get();
  if (stream == nullptr || process.streams.Find(stream.get()) != stream) return;
  static_cast<void>(process.memory.Free(word_));
}

std::shared_ptr<AclModel> RunModels::Make(AclModel::Origin origin,
                                          std::shared_ptr<Recording> recording) {
  auto model = std::make_shared<AclModel>(origin, next_id_.fetch_add(1));
  model->tasks = std::move(recording);
  models.Add(model);
  return model;
}

void RunModels::Forget(const std::shared_ptr<AclModel>& model) {
  static_cast<void>(models.Take(model.get()));
  std::vector<std::shared_ptr<AclModel>> branches;
  {
    const std::lock_guard lock(model->mutex);
    branches.swap(model->branches);
    for (const void* group : model->groups) static_cast<void>(groups.Take(group));
    for (const void* condition : model->conditions) static_cast<void>(conditions.Take(condition));
    for (const void* view : model->views) static_cast<void>(streams.Take(view));
    for (const auto& [index, task] : model->task_handles) static_cast<void>(tasks.Take(task));
  }
  for (const auto& branch : branches) Forget(branch);
  const std::lock_guard lock(mutex_);
  std::erase_if(bound_, [&](const auto& bound) { return bound.second == model; });
}

void RunModels::Clear() {
  {
    const std::lock_guard lock(mutex_);
    bound_.clear();
    updates_.clear();
  }
  models.Clear();
  groups.Clear();
  conditions.Clear();
  streams.Clear();
  tasks.Clear();
  labels.Clear();
  label_lists.Clear();
}

std::shared_ptr<AclModel> RunModels::BoundTo(aclrtStream stream) const {
  const std::lock_guard lock(mutex_);
  const auto found = bound_.find(stream);
  return found == bound_.end() ? nullptr : found->second;
}

void RunModels::Bind(aclrtStream stream, const std::shared_ptr<AclModel>& model) {
  const std::lock_guard lock(mutex_);
  bound_[stream] = model;
}

void RunModels::Unbind(aclrtStream stream) {
  const std::lock_guard lock(mutex_);
  bound_.erase(stream);
}

bool RunModels::BeginUpdate(aclrtStream stream, AclTaskUpdate update) {
  const std::lock_guard lock(mutex_);
  return updates_.try_emplace(stream, std::move(update)).second;
}

std::optional<AclTaskUpdate> RunModels::EndUpdate(aclrtStream stream) {
  const std::lock_guard lock(mutex_);
  auto found = updates_.extract(stream);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

aclError NeedAnyModel(const char* function, aclmdlRI handle, std::shared_ptr<AclModel>* model) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "modelRI is null");
  *model = AclProcess::Get().run_models.models.Find(handle);
  if (*model != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, function, "{} is no model", fmt::ptr(handle));
}

aclError NeedModel(const char* function, aclmdlRI handle, std::shared_ptr<AclModel>* model) {
  NPUMESH_ACL_TRY(NeedAnyModel(function, handle, model));
  const auto recording = (*model)->recording();
  if (recording != nullptr && recording->ended()) return ACL_SUCCESS;
  return Fail(
      ACL_ERROR_RT_MODEL_CAPTURED, function, "the model is being captured or built; {} ends that",
      (*model)->origin == AclModel::Origin::kBuilt ? "aclmdlRIBuildEnd" : "aclmdlRICaptureEnd");
}

}  // namespace npumesh
