// The memory of images is device memory: programs that start no channel take their buffers here.
#include "acl/acl_rt.h"
#include "acl/ops/acl_dvpp.h"
#include "runtime/acl/process/errors.h"

aclError acldvppMalloc(void** devPtr, size_t size) try {
  return aclrtMalloc(devPtr, size, ACL_MEM_MALLOC_HUGE_FIRST);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acldvppFree(void* devPtr) try { return aclrtFree(devPtr); } catch (...) {
  return npumesh::FailThrown(__func__);
}
