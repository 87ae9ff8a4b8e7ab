// Refusal: what a function of the C interface returns that is not part of npumesh.
#ifndef NPUMESH_RUNTIME_ACL_DVPP_REFUSAL_H_
#define NPUMESH_RUNTIME_ACL_DVPP_REFUSAL_H_

#include <type_traits>

#include "runtime/acl/process/errors.h"
#include "runtime/acl/without_effect.h"

namespace npumesh {

// The code of Refuse where the function returns one, else null or 0. REQUIRES: as Refuse.
// Thread-safety: any thread.
template <typename Returned>
Returned Refusal(const char* function) noexcept {
  aclError code = ACL_SUCCESS;
  try {
    code = Refuse(function);
  } catch (...) {
    code = FailThrown(function);
  }
  if constexpr (std::is_same_v<Returned, aclError>) {
    return code;
  } else {
    return Returned{};
  }
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_DVPP_REFUSAL_H_
