// What programs ask of the driver (libascend_hal) without AscendCL.
#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"

extern "C" {

// How many devices the node has. 0 without an error, as the driver's functions. Declaration: the
// public sources of torch_npu, which calls it.
__attribute__((visibility("default"))) int32_t drvGetDevNum(uint32_t* count) try {
  return aclrtGetDeviceCount(count);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

}  // extern "C"
