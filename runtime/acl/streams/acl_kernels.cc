// Kernels of device cores: none runs on a simulated NPU, so each call is refused.
#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/without_effect.h"

aclError aclrtBinaryGetDevAddress(const aclrtBinHandle, void**, size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle, const char*, aclrtFuncHandle*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtBinaryGetFunctionByEntry(aclrtBinHandle, uint64_t, aclrtFuncHandle*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtBinaryGetGlobal(aclrtBinHandle, const char*, void**, size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtBinaryLoad(const aclrtBinary, aclrtBinHandle*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtBinaryLoadFromData(const void*, size_t, const aclrtBinaryLoadOptions*,
                                 aclrtBinHandle*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtBinaryLoadFromFile(const char*, aclrtBinaryLoadOptions*, aclrtBinHandle*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtBinarySetExceptionCallback(aclrtBinHandle, aclrtOpExceptionCallback, void*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtBinaryUnLoad(aclrtBinHandle) try { return npumesh::Refuse(__func__); } catch (...) {
  return npumesh::FailThrown(__func__);
}

aclrtBinary aclrtCreateBinary(const void*, size_t) try {
  npumesh::Refuse(__func__);
  return nullptr;
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError aclrtDestroyBinary(aclrtBinary) try { return npumesh::Refuse(__func__); } catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtRegisterCpuFunc(const aclrtBinHandle, const char*, const char*,
                              aclrtFuncHandle*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtFunctionGetAvailDynUbufPerBlock(void*, uint32_t, size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtFunctionGetBinary(const aclrtFuncHandle, aclrtBinHandle*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtFunctionGetParamCount(const void*, size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtFunctionGetParamInfo(const void*, size_t, size_t*, size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetFuncBySymbol(const void*, aclrtFuncHandle*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetFunctionAddr(aclrtFuncHandle, void**, void**) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetFunctionAttribute(aclrtFuncHandle, aclrtFuncAttribute, int64_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetFunctionName(aclrtFuncHandle, uint32_t, char*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetFunctionSize(aclrtFuncHandle, size_t*, size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtKernelArgsAppend(aclrtArgsHandle, void*, size_t, aclrtParamHandle*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle, aclrtParamHandle*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtKernelArgsFinalize(aclrtArgsHandle) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtKernelArgsGetHandleMemSize(aclrtFuncHandle, size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtKernelArgsGetMemSize(aclrtFuncHandle, size_t, size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle, aclrtParamHandle, size_t,
                                             void**) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtKernelArgsInit(aclrtFuncHandle, aclrtArgsHandle*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtKernelArgsInitByUserMem(aclrtFuncHandle, aclrtArgsHandle, void*, size_t) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle, aclrtParamHandle, void*, size_t) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlRIKernelTaskGetAttribute(aclmdlRITask, aclrtLaunchKernelAttrId,
                                        aclrtLaunchKernelAttrValue*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtLaunchKernel(aclrtFuncHandle, uint32_t, const void*, size_t, aclrtStream) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtLaunchKernelV2(aclrtFuncHandle, uint32_t, const void*, size_t, aclrtLaunchKernelCfg*,
                             aclrtStream) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtLaunchKernelWithArgsArray(void*, uint32_t, aclrtStream, aclrtLaunchKernelCfg*,
                                        void**) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle, uint32_t, aclrtStream, aclrtLaunchKernelCfg*,
                                     aclrtArgsHandle, void*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle, uint32_t, aclrtStream,
                                       aclrtLaunchKernelCfg*, void*, size_t, aclrtPlaceHolderInfo*,
                                       size_t) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetSymbolAddress(const void*, void**) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetSymbolSize(const void*, size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpyFromSymbol(void*, size_t, const void*, size_t, size_t, aclrtMemcpyKind) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpyFromSymbolAsync(void*, size_t, const void*, size_t, size_t, aclrtMemcpyKind,
                                    aclrtStream) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpyToSymbol(const void*, const void*, size_t, size_t, aclrtMemcpyKind) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemcpyToSymbolAsync(const void*, const void*, size_t, size_t, aclrtMemcpyKind,
                                  aclrtStream) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
