#include "runtime/acl/without_effect.h"

#include <algorithm>
#include <array>

#include "runtime/acl/errors.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

constexpr std::string_view kOneMemory = "a simulated device has no caches beside its memory";
constexpr std::string_view kNoKernels = "npumesh has no device code: graphs and operators run";
constexpr std::string_view kNoTimes = "time limits of kernels are those of hardware";
constexpr std::string_view kOneScheduler = "a simulated device has one scheduler";
constexpr std::string_view kNoSnapshots = "the state of a process cannot be stored";

constexpr auto kWithoutEffect = std::to_array<FunctionNote>({
    {"aclrtCmoAsync", kOneMemory},
    {"aclrtMemFlush", kOneMemory},
    {"aclrtMemInvalidate", kOneMemory},
    {"aclrtSetOpExecuteTimeOut", kNoTimes},
    {"aclrtSetOpExecuteTimeOutV2", kNoTimes},
    {"aclrtSetOpExecuteTimeOutWithMs", kNoTimes},
    {"aclrtSetTsDevice", kOneScheduler},
});

constexpr auto kRefused = std::to_array<FunctionNote>({
    {"aclrtBinaryGetDevAddress", kNoKernels},
    {"aclrtBinaryGetFunction", kNoKernels},
    {"aclrtBinaryLoad", kNoKernels},
    {"aclrtBinaryLoadFromData", kNoKernels},
    {"aclrtBinaryLoadFromFile", kNoKernels},
    {"aclrtBinaryUnLoad", kNoKernels},
    {"aclrtLaunchKernel", kNoKernels},
    {"aclrtLaunchKernelV2", kNoKernels},
    {"aclrtLaunchKernelWithConfig", kNoKernels},
    {"aclrtLaunchKernelWithHostArgs", kNoKernels},
    {"aclrtSnapShotProcessBackup", kNoSnapshots},
    {"aclrtSnapShotProcessLock", kNoSnapshots},
    {"aclrtSnapShotProcessRestore", kNoSnapshots},
    {"aclrtSnapShotProcessUnlock", kNoSnapshots},
});

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
  return FailWith(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, function, ReasonOf(kRefused, function));
}

}  // namespace npumesh
