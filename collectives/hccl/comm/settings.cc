#include "collectives/hccl/comm/settings.h"

#include <cstring>

#include "runtime/base/log.h"

namespace npumesh {

Settings::Settings() : env_(HcclEnv::FromProcess()) {}

Settings& Settings::OfProcess() {
  static Settings* const settings = new Settings;
  return *settings;
}

Verdict Settings::Environment(const HcclEnv** env) const {
  if (!env_.ok()) return VerdictOf(env_.status());
  *env = &env_.value();
  return {};
}

int32_t Settings::deterministic() const {
  if (env_.ok() && env_.value().deterministic) return *env_.value().deterministic;
  return deterministic_.load();
}

Verdict Settings::SetDeterministic(int32_t value) {
  if (value < 0 || value > 2) {
    return Refuse(HCCL_E_PARA, "EI0003: HCCL_DETERMINISTIC is {}; expected 0, 1 or 2", value);
  }
  if (env_.ok() && env_.value().deterministic) {
    NPUMESH_WARNING("HcclSetConfig is ignored: the environment sets HCCL_DETERMINISTIC");
    return {};
  }
  deterministic_.store(value);
  return {};
}

Verdict Settings::AddCallback(const char* name, HcclCommStateCallback callback, void* args) {
  constexpr size_t kLongest = 160;
  if (name == nullptr || callback == nullptr) {
    return Refuse(HCCL_E_PTR, "EI0003: regName or cb is null");
  }
  const size_t length = strnlen(name, kLongest + 1);
  if (length == 0 || length > kLongest) {
    return Refuse(HCCL_E_PARA, "EI0003: regName has {} characters or more; expected 1 to {}",
                  length, kLongest);
  }
  std::lock_guard lock(mutex_);
  callbacks_[std::string(name, length)] = {callback, args};
  return {};
}

void Settings::Call(HcclComm comm, HcclCommStatePhase phase) const {
  std::map<std::string, Callback> callbacks;
  {
    std::lock_guard lock(mutex_);
    callbacks = callbacks_;
  }
  for (const auto& [name, callback] : callbacks) {
    const HcclResult result = callback.function(comm, phase, callback.args);
    if (result != HCCL_SUCCESS) {
      NPUMESH_WARNING("state callback \"{}\" returned {}", name, static_cast<int>(result));
    }
  }
}

}  // namespace npumesh
