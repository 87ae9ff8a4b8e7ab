// CoreLimits: how many cores of each kind a client wants its work to take. npumesh keeps the
// numbers and returns them; its work takes the cores of the host.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_LIMITS_CORE_LIMITS_H_
#define NPUMESH_RUNTIME_ACL_LIMITS_CORE_LIMITS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "acl/acl_rt.h"
#include "runtime/acl/limits/soc.h"

namespace npumesh {

class CoreLimits {
 public:
  static bool IsKind(aclrtDevResLimitType kind) {
    return kind == ACL_RT_DEV_RES_CUBE_CORE || kind == ACL_RT_DEV_RES_VECTOR_CORE;
  }
  // What the SoC has. REQUIRES, here and below: IsKind.
  static uint32_t Most(aclrtDevResLimitType kind) {
    return kind == ACL_RT_DEV_RES_CUBE_CORE ? kSocCubeCores : kSocVectorCores;
  }

  void Set(aclrtDevResLimitType kind, uint32_t value) { limits_[kind] = value; }
  std::optional<uint32_t> Get(aclrtDevResLimitType kind) const {
    const uint32_t value = limits_[kind];
    return value == 0 ? std::nullopt : std::optional(value);
  }
  void Reset() {
    for (auto& limit : limits_) limit = 0;
  }

 private:
  std::array<std::atomic<uint32_t>, 2> limits_{};  // 0: none
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_LIMITS_CORE_LIMITS_H_
