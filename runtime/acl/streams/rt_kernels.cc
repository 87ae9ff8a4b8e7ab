// Functions of libruntime that older programs launch kernels by; no public header has them. Kernels
// of device cores do not run on a simulated NPU: each call is refused. Parameters: the
// internal headers of the open hicann/runtime.
#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"

namespace {

aclError RefuseKernel(std::string_view function) {
  return npumesh::FailWith(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, function,
                           "compiled device code does not run on a simulated NPU");
}

}  // namespace

extern "C" {

int32_t rtDevBinaryRegister(const void* /*binary*/, void** /*handle*/) try {
  return RefuseKernel(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

int32_t rtFunctionRegister(void* /*binary*/, const void* /*function*/, const char* /*name*/,
                           const void* /*kernel*/, uint32_t /*mode*/) try {
  return RefuseKernel(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

int32_t rtKernelLaunch(const void* /*function*/, uint32_t /*blocks*/, void* /*arguments*/,
                       uint32_t /*argument_bytes*/, void* /*shared_memory*/, void* /*stream*/) try {
  return RefuseKernel(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

// The address by which the cores of a kernel wait for each other.
int32_t rtGetC2cCtrlAddr(uint64_t* /*address*/, uint32_t* /*bytes*/) try {
  return RefuseKernel(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

}  // extern "C"
