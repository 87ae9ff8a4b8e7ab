#include "graph/acl_model/device_turns.h"

#include <map>

namespace npumesh {

std::mutex& TurnOf(const AclDevice& device) {
  static std::mutex mutex;
  static auto* const turns = new std::map<const AclDevice*, std::mutex>;
  const std::lock_guard lock(mutex);
  return (*turns)[&device];
}

}  // namespace npumesh
