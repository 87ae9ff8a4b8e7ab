#include "runtime/acl/captures.h"

#include <algorithm>
#include <utility>

#include "runtime/acl/errors.h"

namespace npumesh {
namespace {

aclmdlRICaptureMode& ModeOfThisThread() {
  thread_local aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
  return mode;
}

bool Forbids(const AclModel& model) {
  const aclmdlRICaptureMode mine = ModeOfThisThread();
  if (mine == ACL_MODEL_RI_CAPTURE_MODE_RELAXED) return false;
  if (model.thread == std::this_thread::get_id()) {
    return model.mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  }
  return mine == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && model.mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
}

}  // namespace

void Captures::Begin(const std::shared_ptr<AclModel>& model) {
  models.Add(model);
  const std::lock_guard lock(mutex_);
  active_.push_back(model);
  active_count_ = static_cast<int>(active_.size());
}

void Captures::End(const std::shared_ptr<AclModel>& model) {
  model->recording->End();
  const std::lock_guard lock(mutex_);
  std::erase(active_, model);
  active_count_ = static_cast<int>(active_.size());
}

void Captures::Clear() {
  std::vector<std::shared_ptr<AclModel>> ending;
  {
    const std::lock_guard lock(mutex_);
    ending = active_;
  }
  for (const auto& model : ending) End(model);
  models.Clear();
}

std::shared_ptr<AclModel> Captures::ModelOf(const std::shared_ptr<Recording>& recording) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(active_.begin(), active_.end(),
                                  [&](const auto& model) { return model->recording == recording; });
  return found == active_.end() ? nullptr : *found;
}

aclError Captures::Permit(std::string_view function) const {
  if (active_count_ == 0) return ACL_SUCCESS;
  const std::lock_guard lock(mutex_);
  const bool forbidden = std::any_of(active_.begin(), active_.end(),
                                     [](const auto& model) { return Forbids(*model); });
  if (!forbidden) return ACL_SUCCESS;
  return Fail(
      ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, function,
      "it does not only queue work, and a capture that forbids this goes on; call it before "
      "aclmdlRICaptureBegin, or capture with ACL_MODEL_RI_CAPTURE_MODE_RELAXED");
}

aclmdlRICaptureMode Captures::ExchangeMode(aclmdlRICaptureMode mode) {
  return std::exchange(ModeOfThisThread(), mode);
}

}  // namespace npumesh
