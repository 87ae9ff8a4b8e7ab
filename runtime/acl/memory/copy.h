// Copies between the memories of host and devices: their rules, and how they are done.
//
// Thread-safety: all functions may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_MEMORY_COPY_H_
#define NPUMESH_RUNTIME_ACL_MEMORY_COPY_H_

#include <cstddef>
#include <string_view>

#include "acl/acl_rt.h"
#include "runtime/acl/process/objects.h"

namespace npumesh {

struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
  bool pageable = false;       // one side is host memory that aclrtMallocHost did not return
  const char* direction = "";  // for the profile: "host to device"
};

// What a copy says, as a client does.
struct CopyWish {
  void* dst = nullptr;
  size_t dest_max = 0;
  const void* src = nullptr;
  size_t count = 0;
  aclrtMemcpyKind kind = ACL_MEMCPY_DEFAULT;
};

// The rules of aclrtMemcpy and aclrtMemcpyAsync; a copy of nothing may have null pointers. Error:
// ACL_ERROR_INVALID_PARAM.
aclError CheckCopy(std::string_view function, const CopyWish& wish, Copy* copy);

// Whether the process may read, or write, what it has mapped (aclrtMemSetAccess). Error:
// ACL_ERROR_INVALID_PARAM.
aclError CheckAccess(std::string_view function, const void* pointer, size_t bytes, bool writes);

// REQUIRES, here and below: a copy that CheckCopy has made.
void CopyNow(const Copy& copy);
void QueueCopy(const Copy& copy, AclStream& stream);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_MEMORY_COPY_H_
