#include "runtime/acl/without_effect.h"

#include <algorithm>
#include <array>

#include "runtime/acl/process/errors.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

constexpr FunctionNote kWithoutEffect[] = {
    {"aclRecoverAllHcclTasks", "a simulated device has no faults"},
    {"aclSetCompileopt", "no kernels are compiled; the value is kept and returned"},
    {"aclopSetCompileFlag", "no kernels are compiled"},
    {"aclopStartDumpArgs", "no kernels with arguments run; the path is kept for acldumpGetPath"},
    {"aclprofSetConfig", "no hardware is sampled"},
    {"aclrtCacheLastTaskExtendInfo", "profiles have what models and operators say of themselves"},
    {"aclrtCacheLastTaskOpInfo", "profiles have what models and operators say of themselves"},
    {"aclrtCmoAsync", "a simulated device has no caches beside its memory"},
    {"aclrtCmoAsyncWithBarrier", "a simulated device has no caches beside its memory"},
    {"aclrtCmoAsyncWithDesc", "a simulated device has no caches beside its memory"},
    {"aclrtCmoSetDesc", "a simulated device has no caches beside its memory"},
    {"aclrtCmoWaitBarrier", "a simulated device has no caches beside its memory"},
    {"aclrtDeviceL2CacheFlush", "a simulated device has no caches beside its memory"},
    {"aclrtIpcMemSetAttr", "a simulated device has one way to a memory"},
    {"aclrtMemFlush", "a simulated device has no caches beside its memory"},
    {"aclrtMemInvalidate", "a simulated device has no caches beside its memory"},
    {"aclrtMemManagedAdvise", "host and devices read one memory"},
    {"aclrtMemManagedPrefetchAsync", "host and devices read one memory"},
    {"aclrtMemManagedPrefetchBatchAsync", "host and devices read one memory"},
    {"aclrtMemMapSetLink", "a simulated device has one way to a memory"},
    {"aclrtMemP2PMap", "the devices of a node reach each other's memory"},
    {"aclrtMemUceRepair", "a simulated device has no faults"},
    {"aclrtPersistentTaskClean", "streams keep no tasks that have run"},
    {"aclrtRepairError", "a simulated device has no faults"},
    {"aclrtSetOpExecuteTimeOut",
     "no kernel of hardware can hang; HCCL_EXEC_TIMEOUT bounds collectives"},
    {"aclrtSetOpExecuteTimeOutV2",
     "no kernel of hardware can hang; HCCL_EXEC_TIMEOUT bounds collectives"},
    {"aclrtSetOpExecuteTimeOutWithMs",
     "no kernel of hardware can hang; HCCL_EXEC_TIMEOUT bounds collectives"},
    {"aclrtSetTsDevice", "a simulated device has one scheduler"},
};

constexpr FunctionNote kRefused[] = {
    {"acldvppClear*",
     "images and video (DVPP) are not part of npumesh; decode and resize on the host"},
    {"acldvppCreate*",
     "images and video (DVPP) are not part of npumesh; decode and resize on the host"},
    {"acldvppDestroy*",
     "images and video (DVPP) are not part of npumesh; decode and resize on the host"},
    {"acldvppGet*",
     "images and video (DVPP) are not part of npumesh; decode and resize on the host"},
    {"acldvppJpeg*",
     "images and video (DVPP) are not part of npumesh; decode and resize on the host"},
    {"acldvppPng*",
     "images and video (DVPP) are not part of npumesh; decode and resize on the host"},
    {"acldvppSet*",
     "images and video (DVPP) are not part of npumesh; decode and resize on the host"},
    {"acldvppVpc*",
     "images and video (DVPP) are not part of npumesh; decode and resize on the host"},
    {"aclmdlCreateAIPP", "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlCreateAndGetOpDesc",
     "aclGetRecentErrMsg names the operator that failed, with its inputs; there are no tasks to "
     "ask for"},
    {"aclmdlDestroyAIPP", "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlGetAippDataSize", "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlGetFirstAippInfo", "no model of npumesh has AIPP"},
    {"aclmdlLoadFromFileWithQ",
     "models between queues are not part of npumesh; load without queues and execute"},
    {"aclmdlLoadFromMemWithQ",
     "models between queues are not part of npumesh; load without queues and execute"},
    {"aclmdlRIKernelTaskGetAttribute", "compiled device code does not run on a simulated NPU"},
    {"aclmdlSetAIPPAxSwapSwitch",
     "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlSetAIPPByInputIndex",
     "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlSetAIPPCropParams", "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlSetAIPPCscParams", "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlSetAIPPDtcPixelMean",
     "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlSetAIPPDtcPixelMin", "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlSetAIPPInputFormat", "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlSetAIPPPaddingParams",
     "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlSetAIPPPixelVarReci",
     "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlSetAIPPRbuvSwapSwitch",
     "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlSetAIPPScfParams", "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlSetAIPPSrcImageSize",
     "AIPP is not part of npumesh; process the image before the model"},
    {"aclmdlSetInputAIPP", "AIPP is not part of npumesh; process the image before the model"},
    {"aclopCreateKernel", "compiled device code does not run on a simulated NPU"},
    {"aclopRegisterCompileFunc", "compiled device code does not run on a simulated NPU"},
    {"aclopSetKernelArgs", "compiled device code does not run on a simulated NPU"},
    {"aclopSetKernelWorkspaceSizes", "compiled device code does not run on a simulated NPU"},
    {"aclopUnregisterCompileFunc", "compiled device code does not run on a simulated NPU"},
    {"aclopUpdateParams", "compiled device code does not run on a simulated NPU"},
    {"aclrtBinaryGetDevAddress", "compiled device code does not run on a simulated NPU"},
    {"aclrtBinaryGetFunction", "compiled device code does not run on a simulated NPU"},
    {"aclrtBinaryGetFunctionByEntry", "compiled device code does not run on a simulated NPU"},
    {"aclrtBinaryGetGlobal", "compiled device code does not run on a simulated NPU"},
    {"aclrtBinaryLoad", "compiled device code does not run on a simulated NPU"},
    {"aclrtBinaryLoadFromData", "compiled device code does not run on a simulated NPU"},
    {"aclrtBinaryLoadFromFile", "compiled device code does not run on a simulated NPU"},
    {"aclrtBinarySetExceptionCallback", "compiled device code does not run on a simulated NPU"},
    {"aclrtBinaryUnLoad", "compiled device code does not run on a simulated NPU"},
    {"aclrtCreateBinary", "compiled device code does not run on a simulated NPU"},
    {"aclrtCreateGroupInfo", "the cores of a simulated device are not divided into groups"},
    {"aclrtCtxGetFloatOverflowAddr", "no kernels of cores run here"},
    {"aclrtDestroyBinary", "compiled device code does not run on a simulated NPU"},
    {"aclrtDestroyGroupInfo", "the cores of a simulated device are not divided into groups"},
    {"aclrtDeviceGetHostAtomicCapabilities", "no kernels of cores run here"},
    {"aclrtDeviceGetLimit", "no kernels of cores run here"},
    {"aclrtDeviceGetP2PAtomicCapabilities", "no kernels of cores run here"},
    {"aclrtDeviceSetLimit", "no kernels of cores run here"},
    {"aclrtFunctionGetAvailDynUbufPerBlock",
     "compiled device code does not run on a simulated NPU"},
    {"aclrtFunctionGetBinary", "compiled device code does not run on a simulated NPU"},
    {"aclrtFunctionGetParamCount", "compiled device code does not run on a simulated NPU"},
    {"aclrtFunctionGetParamInfo", "compiled device code does not run on a simulated NPU"},
    {"aclrtGetAllGroupInfo", "the cores of a simulated device are not divided into groups"},
    {"aclrtGetArgsFromExceptionInfo", "no kernels of cores run here"},
    {"aclrtGetFuncBySymbol", "compiled device code does not run on a simulated NPU"},
    {"aclrtGetFuncHandleFromExceptionInfo", "no kernels of cores run here"},
    {"aclrtGetFunctionAddr", "compiled device code does not run on a simulated NPU"},
    {"aclrtGetFunctionAttribute", "compiled device code does not run on a simulated NPU"},
    {"aclrtGetFunctionName", "compiled device code does not run on a simulated NPU"},
    {"aclrtGetFunctionSize", "compiled device code does not run on a simulated NPU"},
    {"aclrtGetGroupCount", "the cores of a simulated device are not divided into groups"},
    {"aclrtGetGroupInfoDetail", "the cores of a simulated device are not divided into groups"},
    {"aclrtGetHardwareSyncAddr", "no kernels of cores run here"},
    {"aclrtGetSymbolAddress", "compiled device code does not run on a simulated NPU"},
    {"aclrtGetSymbolSize", "compiled device code does not run on a simulated NPU"},
    {"aclrtIpcMemImportPidInterServer", "processes share memory within a host"},
    {"aclrtKernelArgsAppend", "compiled device code does not run on a simulated NPU"},
    {"aclrtKernelArgsAppendPlaceHolder", "compiled device code does not run on a simulated NPU"},
    {"aclrtKernelArgsFinalize", "compiled device code does not run on a simulated NPU"},
    {"aclrtKernelArgsGetHandleMemSize", "compiled device code does not run on a simulated NPU"},
    {"aclrtKernelArgsGetMemSize", "compiled device code does not run on a simulated NPU"},
    {"aclrtKernelArgsGetPlaceHolderBuffer", "compiled device code does not run on a simulated NPU"},
    {"aclrtKernelArgsInit", "compiled device code does not run on a simulated NPU"},
    {"aclrtKernelArgsInitByUserMem", "compiled device code does not run on a simulated NPU"},
    {"aclrtKernelArgsParaUpdate", "compiled device code does not run on a simulated NPU"},
    {"aclrtLaunchKernel", "compiled device code does not run on a simulated NPU"},
    {"aclrtLaunchKernelV2", "compiled device code does not run on a simulated NPU"},
    {"aclrtLaunchKernelWithArgsArray", "compiled device code does not run on a simulated NPU"},
    {"aclrtLaunchKernelWithConfig", "compiled device code does not run on a simulated NPU"},
    {"aclrtLaunchKernelWithHostArgs", "compiled device code does not run on a simulated NPU"},
    {"aclrtMemManagedGetAttr", "advice has no effect, so there is nothing to ask for"},
    {"aclrtMemManagedGetAttrs", "advice has no effect, so there is nothing to ask for"},
    {"aclrtMemMapSelectedLink", "a simulated device has one way to a memory; use aclrtMapMem"},
    {"aclrtMemcpyFromSymbol", "compiled device code does not run on a simulated NPU"},
    {"aclrtMemcpyFromSymbolAsync", "compiled device code does not run on a simulated NPU"},
    {"aclrtMemcpyToSymbol", "compiled device code does not run on a simulated NPU"},
    {"aclrtMemcpyToSymbolAsync", "compiled device code does not run on a simulated NPU"},
    {"aclrtNotifySetImportPidInterServer", "processes share notifies within a host"},
    {"aclrtRegisterCpuFunc", "compiled device code does not run on a simulated NPU"},
    {"aclrtReserveMemAddressNoUCMemory",
     "addresses of a simulated device cannot be chosen; use aclrtReserveMemAddress"},
    {"aclrtSetGroup", "the cores of a simulated device are not divided into groups"},
    {"aclvdec*", "images and video (DVPP) are not part of npumesh; decode and resize on the host"},
    {"aclvenc*", "images and video (DVPP) are not part of npumesh; decode and resize on the host"},
};

// A name that ends with a star stands for all that begin with it.
bool Names(std::string_view entry, std::string_view function) {
  if (!entry.ends_with('*')) return entry == function;
  return function.starts_with(entry.substr(0, entry.size() - 1));
}

std::string_view ReasonOf(std::span<const FunctionNote> notes, std::string_view function) {
  const auto note = std::find_if(notes.begin(), notes.end(), [&](const auto& entry) {
    return Names(entry.function, function);
  });
  return note == notes.end() ? "of no use here" : note->reason;
}

}  // namespace

std::span<const FunctionNote> FunctionsWithoutEffect() {
  return kWithoutEffect;
}

std::span<const FunctionNote> RefusedFunctions() {
  return kRefused;
}

aclError AcceptWithoutEffect(std::string_view function) {
  NPUMESH_WARNING_ONCE("{} has no effect: {}", function, ReasonOf(kWithoutEffect, function));
  return ACL_SUCCESS;
}

aclError Refuse(std::string_view function) {
  return FailWith(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, function,
                  ReasonOf(RefusedFunctions(), function));
}

}  // namespace npumesh
