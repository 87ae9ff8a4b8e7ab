// Operators: the operators that a process has called alone, ready to run again.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_OPERATORS_OPERATORS_H_
#define NPUMESH_RUNTIME_ACL_OPERATORS_OPERATORS_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/acl/models/model_machine.h"

namespace npumesh {

class Operators {
 public:
  // The ones of this process. Made by the first call, never destroyed; aclFinalize empties them.
  static Operators& Get();

  // Null: not kept for the device.
  std::shared_ptr<MadeOperator> Find(const AclDevice& device, const std::string& key);
  // What was used longest ago makes room.
  void Keep(const AclDevice& device, const std::string& key, std::shared_ptr<MadeOperator> made);
  // aclFinalize empties this table and the machine's.
  void EndWithProcess();
  // How many are kept; aclopSetMaxOpQueueNum. REQUIRES: most > 0.
  void set_most(uint64_t most);
  // Once between two calls of aclFinalize: true the first time.
  bool TakeModelDir();
  // A folder that could not be read may be tried again.
  void ForgetModelDir();

 private:
  using Place = std::pair<const AclDevice*, std::string>;
  struct Entry {
    std::shared_ptr<MadeOperator> made;
    std::list<const Place*>::iterator age;
  };
  void MakeRoom();
  void RegisterEnd();

  std::mutex mutex_;
  uint64_t most_ = 20000;  // the vendor's
  bool ends_with_process_ = false;
  bool has_model_dir_ = false;
  std::map<Place, Entry> kept_;
  std::list<const Place*> ages_;  // the one that was used last is last
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_OPERATORS_OPERATORS_H_
