// StateCallbacks: functions of the client that hear of what becomes of streams or devices, each
// under a name.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_STREAMS_STATE_CALLBACKS_H_
#define NPUMESH_RUNTIME_ACL_STREAMS_STATE_CALLBACKS_H_

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace npumesh {

// `Function`: of the client, with `void* args` as the last argument.
template <typename Function>
class StateCallbacks {
 public:
  // False when the name is taken.
  bool Add(const std::string& name, Function function, void* args) {
    const std::lock_guard lock(mutex_);
    return callbacks_.try_emplace(name, function, args).second;
  }
  // False when no function has this name.
  bool Remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return callbacks_.erase(name) != 0;
  }
  // Calls all, in the order of their names; they may add and remove.
  template <typename... Args>
  void Tell(Args... args) const {
    for (const auto& [name, callback] : Copy()) callback.first(args..., callback.second);
  }

 private:
  using Callbacks = std::map<std::string, std::pair<Function, void*>>;

  Callbacks Copy() const {
    const std::lock_guard lock(mutex_);
    return callbacks_;
  }

  mutable std::mutex mutex_;
  Callbacks callbacks_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_STREAMS_STATE_CALLBACKS_H_
