#include "runtime/acl/without_effect.h"

#include <algorithm>
#include <array>

#include "runtime/acl/errors.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

constexpr FunctionNote kWithoutEffect[] = {
    {"aclSetCompileopt", "no kernels are compiled; the value is kept and returned"},
    {"aclopStartDumpArgs", "no kernels with arguments run; the path is kept for acldumpGetPath"},
    {"aclopSetCompileFlag", "no kernels are compiled"},
    {"aclprofSetConfig", "no hardware is sampled"},
    {"aclrtCmoAsync", "a simulated device has no caches beside its memory"},
    {"aclrtMemFlush", "a simulated device has no caches beside its memory"},
    {"aclrtMemInvalidate", "a simulated device has no caches beside its memory"},
    {"aclrtMemManagedAdvise", "host and devices read one memory"},
    {"aclrtMemManagedPrefetchAsync", "host and devices read one memory"},
    {"aclrtMemMapSetLink", "a simulated device has one way to a memory"},
    {"aclrtMemP2PMap", "the devices of a node reach each other's memory"},
    {"aclrtSetOpExecuteTimeOut",
     "no kernel of hardware can hang; HCCL_EXEC_TIMEOUT bounds collectives"},
    {"aclrtSetOpExecuteTimeOutV2",
     "no kernel of hardware can hang; HCCL_EXEC_TIMEOUT bounds collectives"},
    {"aclrtSetOpExecuteTimeOutWithMs",
     "no kernel of hardware can hang; HCCL_EXEC_TIMEOUT bounds collectives"},
    {"aclrtSetTsDevice", "a simulated device has one scheduler"},
};

constexpr FunctionNote kRefused[] = {
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
    {"aclrtGetArgsFromExceptionInfo", "no kernels of cores run here"},
    {"aclrtGetFuncHandleFromExceptionInfo", "no kernels of cores run here"},
    {"aclrtMemMapSelectedLink", "a simulated device has one way to a memory; use aclrtMapMem"},
    {"aclrtReserveMemAddressNoUCMemory",
     "addresses of a simulated device cannot be chosen; use aclrtReserveMemAddress"},
};

std::string_view ReasonOf(std::span<const FunctionNote> notes, std::string_view function) {
  const auto note = std::find_if(notes.begin(), notes.end(),
                                 [&](const auto& entry) { return entry.function == function; });
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
