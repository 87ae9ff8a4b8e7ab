// Conditional tasks of captured models: a part of acl_rt.h.
#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/device/running_task.h"

using npumesh::AclCondition;
using npumesh::AclModel;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::AclTaskNote;
using npumesh::Fail;
using npumesh::Status;

namespace {

// The conditional task: which of its branches run, by the condition as it is by then.
struct Branching {
  std::shared_ptr<AclCondition> condition;
  aclmdlRICondTaskType type;
  std::vector<std::shared_ptr<AclModel>> branches;

  Status operator()() const;

 private:
  Status Run(size_t branch) const;
};

Status Branching::operator()() const {
  switch (type) {
    case ACL_MODEL_RI_COND_TYPE_IF:
      return Run(condition->value() != 0 ? 0 : 1);
    case ACL_MODEL_RI_COND_TYPE_WHILE:
      while (condition->value() != 0 && !npumesh::RunningTask::Aborted()) {
        NPUMESH_RETURN_IF_ERROR(Run(0));
      }
      return Status();
    default:
      return Run(condition->value());
  }
}

// One that does not exist, or was not captured, does nothing.
Status Branching::Run(size_t branch) const {
  if (branch >= branches.size()) return Status();
  const auto recording = branches[branch]->recording();
  return recording == nullptr || !recording->ended() ? Status() : recording->Run();
}

const char* NameOf(aclmdlRICondTaskType type) {
  switch (type) {
    case ACL_MODEL_RI_COND_TYPE_IF:
      return "COND_IF";
    case ACL_MODEL_RI_COND_TYPE_WHILE:
      return "COND_WHILE";
    default:
      return "COND_SWITCH";
  }
}

aclError CheckBranches(const char* function, const aclmdlRICondTaskParams& params) {
  const bool known =
      params.type >= ACL_MODEL_RI_COND_TYPE_IF && params.type <= ACL_MODEL_RI_COND_TYPE_SWITCH;
  if (!known || params.modelRIArray == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "type is {}, expected 0 to 2, with an array of models",
                static_cast<int>(params.type));
  }
  constexpr uint32_t kMostCases = 65535;
  const uint32_t most = params.type == ACL_MODEL_RI_COND_TYPE_IF      ? 2
                        : params.type == ACL_MODEL_RI_COND_TYPE_WHILE ? 1
                                                                      : kMostCases;
  if (params.size >= 1 && params.size <= most) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "{} with {} branches, expected 1 to {}",
              NameOf(params.type), params.size, most);
}

aclError NeedCondition(const char* function, aclmdlRICondHandle handle,
                       std::shared_ptr<AclCondition>* condition) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "handle is null");
  *condition = AclProcess::Get().run_models.conditions.Find(handle);
  if (*condition != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, function, "{} is no condition of a model",
              fmt::ptr(handle));
}

}  // namespace

aclError aclmdlRICondHandleCreate(aclmdlRI modelRI, uint32_t defaultLaunchValue,
                                  aclmdlRICondHandleFlag flag, aclmdlRICondHandle* handle) try {
  NPUMESH_ACL_EXPECT(handle != nullptr, "handle is null");
  const auto flags = static_cast<unsigned>(flag);
  NPUMESH_ACL_EXPECT(flags <= ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT,
                     "flag is {}, expected 0 or 1", flags);
  std::shared_ptr<AclModel> model;
  NPUMESH_ACL_TRY(npumesh::NeedAnyModel(__func__, modelRI, &model));
  const auto recording = model->recording();
  if (recording == nullptr || recording->ended()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, __func__,
                "the model is not being captured; a condition is made between "
                "aclmdlRICaptureBegin and aclmdlRICaptureEnd");
  }
  AclProcess& process = AclProcess::Get();
  std::shared_ptr<npumesh::AclContext> context;
  NPUMESH_ACL_TRY(process.NeedContext(__func__, &context));
  const auto block = process.memory.Allocate(context->device->memory, sizeof(uint64_t));
  NPUMESH_ACL_TRY(npumesh::Report(__func__, block.status()));
  auto* const word = static_cast<uint64_t*>(*block);
  *word = defaultLaunchValue;
  auto condition = std::make_shared<AclCondition>(*context, word);
  if (flags != 0) {
    recording->AddBeginning([condition, value = uint64_t{defaultLaunchValue}] {
      std::atomic_ref(*condition->word()).store(value, std::memory_order_release);
      return Status();
    });
  }
  *handle = process.run_models.conditions.Add(std::move(condition));
  const std::lock_guard lock(model->mutex);
  model->conditions.push_back(*handle);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRICondHandleGetCondPtr(aclmdlRICondHandle handle, uint64_t** ptr) try {
  NPUMESH_ACL_EXPECT(ptr != nullptr, "ptr is null");
  std::shared_ptr<AclCondition> condition;
  NPUMESH_ACL_TRY(NeedCondition(__func__, handle, &condition));
  *ptr = condition->word();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIAddCondTask(aclmdlRICondTaskParams params, aclrtStream stream,
                             uint32_t flags) try {
  NPUMESH_ACL_EXPECT(flags == 0, "flags is {}, expected 0", flags);
  NPUMESH_ACL_TRY(CheckBranches(__func__, params));
  Branching branching{nullptr, params.type, {}};
  NPUMESH_ACL_TRY(NeedCondition(__func__, params.handle, &branching.condition));
  AclProcess& process = AclProcess::Get();
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(process.NeedStream(__func__, stream, &found));
  const auto capture = process.captures.Find(found->stream.recording());
  if (!capture) {
    return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, __func__,
                "stream {} is not captured; aclmdlRICaptureBegin begins it", found->id);
  }
  for (uint32_t i = 0; i < params.size; ++i) {
    branching.branches.push_back(process.run_models.Make(AclModel::Origin::kBranch, nullptr));
    params.modelRIArray[i] = branching.branches.back().get();
  }
  {
    const std::lock_guard lock(capture->model->mutex);
    auto& all = capture->model->branches;
    all.insert(all.end(), branching.branches.begin(), branching.branches.end());
  }
  found->stream.Enqueue(std::move(branching),
                        std::make_shared<AclTaskNote>(NameOf(params.type), aclmdlRITaskParams{}));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
