#include "runtime/acl/streams/captures.h"

#include <algorithm>
#include <utility>

#include "runtime/acl/process/errors.h"

namespace npumesh {
namespace {

aclmdlRICaptureMode& ModeOfThisThread() {
  thread_local aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
  return mode;
}

bool Forbids(const AclCapture& capture) {
  const aclmdlRICaptureMode mine = ModeOfThisThread();
  if (mine == ACL_MODEL_RI_CAPTURE_MODE_RELAXED) return false;
  if (capture.thread == std::this_thread::get_id()) {
    return capture.mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  }
  return mine == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL &&
         capture.mode == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
}

}  // namespace

void Captures::Begin(AclCapture capture) {
  const std::lock_guard lock(mutex_);
  active_.push_back(std::move(capture));
  active_count_ = static_cast<int>(active_.size());
}

void Captures::End(const AclCapture& capture) {
  capture.recording->End();
  const std::lock_guard lock(mutex_);
  std::erase_if(active_, [&](const auto& one) { return one.recording == capture.recording; });
  active_count_ = static_cast<int>(active_.size());
}

void Captures::Invalidate(const std::shared_ptr<Recording>& recording) {
  const std::lock_guard lock(mutex_);
  for (AclCapture& capture : active_) {
    capture.invalid = capture.invalid || capture.recording == recording;
  }
}

void Captures::Clear() {
  std::vector<AclCapture> ending;
  {
    const std::lock_guard lock(mutex_);
    ending = active_;
  }
  for (const AclCapture& capture : ending) End(capture);
}

std::optional<AclCapture> Captures::Find(const std::shared_ptr<Recording>& recording) const {
  if (recording == nullptr) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(active_.begin(), active_.end(), [&](const auto& capture) {
    return capture.recording == recording;
  });
  if (found == active_.end()) return std::nullopt;
  return *found;
}

aclError Captures::Permit(std::string_view function) const {
  if (active_count_ == 0) return ACL_SUCCESS;
  const std::lock_guard lock(mutex_);
  const bool forbidden = std::any_of(active_.begin(), active_.end(),
                                     [](const auto& capture) { return Forbids(capture); });
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
