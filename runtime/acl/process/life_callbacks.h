// LifeCallbacks: what programs want to be told when the interface begins and ends.
//
// Thread-safety: all members may be called from any thread; callbacks run on the caller's.
#ifndef NPUMESH_RUNTIME_ACL_PROCESS_LIFE_CALLBACKS_H_
#define NPUMESH_RUNTIME_ACL_PROCESS_LIFE_CALLBACKS_H_

#include <mutex>
#include <string>
#include <vector>

#include "acl/acl_rt.h"

namespace npumesh {

class LifeCallbacks {
 public:
  static LifeCallbacks& Get();

  // The interface has begun with a file of this content: calls those that are registered, in
  // order, until one fails; its code.
  aclError Begin(std::string config);
  // It ends: likewise.
  aclError End();

  // Called at once when the interface has begun; then its code is returned.
  aclError Add(aclInitCallbackFunc function, void* data);
  void Add(aclFinalizeCallbackFunc function, void* data);
  // False for a function that is not registered.
  bool Remove(aclInitCallbackFunc function);
  bool Remove(aclFinalizeCallbackFunc function);

 private:
  template <typename Function>
  struct Registered {
    Function function;
    void* data;
  };

  std::mutex mutex_;
  bool begun_ = false;
  std::string config_;
  std::vector<Registered<aclInitCallbackFunc>> begins_;
  std::vector<Registered<aclFinalizeCallbackFunc>> ends_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_PROCESS_LIFE_CALLBACKS_H_
