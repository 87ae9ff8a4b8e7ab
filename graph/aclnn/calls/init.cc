// aclnnInit and aclnnFinalize of acl_meta.h.
#include <atomic>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "runtime/acl/process/errors.h"

namespace {

// Whether aclnnInit has begun the interface, and aclnnFinalize ends it.
std::atomic<bool> begun{false};

}  // namespace

aclnnStatus aclnnInit(const char* configPath) try {
  const aclError code = aclInit(configPath);
  if (code == ACL_ERROR_REPEAT_INITIALIZE) return ACL_SUCCESS;
  begun = code == ACL_SUCCESS;
  return code;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclnnStatus aclnnFinalize() try {
  return begun.exchange(false) ? aclFinalize() : ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
