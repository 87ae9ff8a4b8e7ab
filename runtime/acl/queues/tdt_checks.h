// Checks that channels and queues have in common.
#ifndef NPUMESH_RUNTIME_ACL_QUEUES_TDT_CHECKS_H_
#define NPUMESH_RUNTIME_ACL_QUEUES_TDT_CHECKS_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/handle_table.h"

namespace npumesh {

// Error, of both: ACL_ERROR_INVALID_PARAM.
inline aclError NotLive(std::string_view function, const void* handle) {
  return Fail(ACL_ERROR_INVALID_PARAM, function, "{} is not live: null, destroyed or foreign",
              fmt::ptr(handle));
}

template <typename T>
aclError NeedLive(std::string_view function, const HandleTable<T>& table, const T* handle,
                  std::shared_ptr<T>* object) {
  *object = table.Find(handle);
  return *object != nullptr ? ACL_SUCCESS : NotLive(function, handle);
}

inline aclError CheckQueueTimeout(std::string_view function, int32_t timeout) {
  if (timeout >= -1) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "timeout is {}, expected -1 or more", timeout);
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_QUEUES_TDT_CHECKS_H_
