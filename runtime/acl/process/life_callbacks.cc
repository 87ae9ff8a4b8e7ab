#include "runtime/acl/process/life_callbacks.h"

#include <utility>

namespace npumesh {

LifeCallbacks& LifeCallbacks::Get() {
  static LifeCallbacks* const callbacks = new LifeCallbacks;
  return *callbacks;
}

// A callback may register another, so none is called with the lock.
aclError LifeCallbacks::Begin(std::string config) {
  std::unique_lock lock(mutex_);
  begun_ = true;
  config_ = std::move(config);
  const auto callbacks = begins_;
  const std::string text = config_;
  lock.unlock();
  for (const auto& [function, data] : callbacks) {
    if (const aclError code = function(text.c_str(), text.size(), data); code != ACL_SUCCESS) {
      return code;
    }
  }
  return ACL_SUCCESS;
}

aclError LifeCallbacks::End() {
  std::unique_lock lock(mutex_);
  if (!std::exchange(begun_, false)) return ACL_SUCCESS;
  const auto callbacks = ends_;
  lock.unlock();
  for (const auto& [function, data] : callbacks) {
    if (const aclError code = function(data); code != ACL_SUCCESS) return code;
  }
  return ACL_SUCCESS;
}

aclError LifeCallbacks::Add(aclInitCallbackFunc function, void* data) {
  std::unique_lock lock(mutex_);
  begins_.push_back({function, data});
  if (!begun_) return ACL_SUCCESS;
  const std::string text = config_;
  lock.unlock();
  return function(text.c_str(), text.size(), data);
}

void LifeCallbacks::Add(aclFinalizeCallbackFunc function, void* data) {
  const std::lock_guard lock(mutex_);
  ends_.push_back({function, data});
}

bool LifeCallbacks::Remove(aclInitCallbackFunc function) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(begins_, [&](const auto& one) { return one.function == function; }) > 0;
}

bool LifeCallbacks::Remove(aclFinalizeCallbackFunc function) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(ends_, [&](const auto& one) { return one.function == function; }) > 0;
}

}  // namespace npumesh
