// Apart from WaitNotices, because readers of records need the names without a world.
#include <array>

#include "runtime/world/wait_notices.h"

namespace npumesh {

std::string_view Name(WaitReason reason) {
  constexpr std::array<std::string_view, 5> kNames = {"", "late", "ended", "stopped", "circle"};
  return kNames[static_cast<size_t>(reason)];
}

}  // namespace npumesh
