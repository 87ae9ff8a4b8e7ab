// The profiler of acl_prof.h: checks the order of the calls and their arguments; the profiles
// themselves are of runtime/acl (device_profiles.h).
#include "acl/acl_prof.h"

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/base/files/secure_file.h"

using npumesh::AclProcess;
using npumesh::Fail;
using npumesh::SpanKind;

struct aclprofConfig {
  std::vector<uint32_t> devices;
  uint64_t data_types = 0;
};

namespace {

// The state of the process's profiler, from aclprofInit to aclprofFinalize.
struct ProfilerState {
  std::mutex mutex;
  bool initialized = false;
  bool running = false;
  int starts = 0;      // that succeeded
  std::string folder;  // absolute
};

ProfilerState& TheProfiler() {
  static auto* const state = new ProfilerState;
  return *state;
}

constexpr uint32_t SetOf(SpanKind first, SpanKind second) {
  return npumesh::Profiler::SetOf(first) | npumesh::Profiler::SetOf(second);
}

constexpr uint64_t kTaskTimes =
    ACL_PROF_TASK_TIME | ACL_PROF_TASK_TIME_L0 | ACL_PROF_TASK_TIME_L2 | ACL_PROF_TASK_TIME_L3;

uint32_t KindsOf(uint64_t data_types) {
  uint32_t kinds = 0;
  if (data_types & ACL_PROF_ACL_API) kinds |= SetOf(SpanKind::kApi, SpanKind::kMemory);
  if (data_types & ACL_PROF_MSPROFTX) kinds |= npumesh::Profiler::SetOf(SpanKind::kTask);
  if (data_types & kTaskTimes) kinds |= SetOf(SpanKind::kTask, SpanKind::kCopy);
  if (data_types & ACL_PROF_HCCL_TRACE) kinds |= SetOf(SpanKind::kCollective, SpanKind::kMessage);
  return kinds;
}

// A start replaces the files of no other one: the first has the folder, the n-th "start_<n>" in it.
std::string NextFolder(const ProfilerState& profiler) {
  if (profiler.starts == 0) return profiler.folder;
  return fmt::format("{}/start_{}", profiler.folder, profiler.starts + 1);
}

npumesh::ProfileRequest RequestOf(const aclprofConfig& config, std::string folder) {
  npumesh::ProfileRequest request;
  request.folder = std::move(folder);
  request.devices.assign(config.devices.begin(), config.devices.end());
  request.kinds = KindsOf(config.data_types);
  request.training_trace = (config.data_types & ACL_PROF_TRAINING_TRACE) != 0;
  return request;
}

aclError MakeFolder(const char* function, const std::string& path) {
  const npumesh::Status made = npumesh::MakeFolders(path, npumesh::FileKind::kDebug);
  if (made.ok()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_FILE, function, "\"{}\" of aclprofInit cannot be made: {}", path,
              made.message());
}

aclError Stop(const char* function, ProfilerState& profiler) {
  profiler.running = false;
  return AclProcess::Get().StopProfile(function);
}

}  // namespace

aclError aclprofInit(const char* profilerResultPath, size_t length) try {
  NPUMESH_ACL_EXPECT(profilerResultPath != nullptr && length > 0, "the path is null or empty");
  ProfilerState& profiler = TheProfiler();
  const std::lock_guard lock(profiler.mutex);
  if (profiler.initialized) {
    return Fail(ACL_ERROR_PROF_ALREADY_RUN, __func__, "it was called already");
  }
  profiler.initialized = true;
  profiler.starts = 0;
  const std::string path =
      std::string(profilerResultPath, length).c_str();  // up to a terminating 0
  std::error_code error;
  profiler.folder = std::filesystem::absolute(path, error).string();
  if (error) profiler.folder = path;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofFinalize() try {
  ProfilerState& profiler = TheProfiler();
  const std::lock_guard lock(profiler.mutex);
  if (!profiler.initialized) {
    return Fail(ACL_ERROR_PROF_NOT_RUN, __func__, "aclprofInit was not called");
  }
  profiler.initialized = false;
  return profiler.running ? Stop(__func__, profiler) : ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofStart(const aclprofConfig* profilerConfig) try {
  NPUMESH_ACL_EXPECT(profilerConfig != nullptr, "profilerConfig is null");
  ProfilerState& profiler = TheProfiler();
  const std::lock_guard lock(profiler.mutex);
  if (!profiler.initialized) {
    return Fail(ACL_ERROR_PROF_NOT_RUN, __func__, "aclprofInit was not called");
  }
  if (profiler.running) return Fail(ACL_ERROR_PROF_ALREADY_RUN, __func__, "it runs already");
  const std::string folder = NextFolder(profiler);
  NPUMESH_ACL_TRY(MakeFolder(__func__, folder));
  NPUMESH_ACL_TRY(AclProcess::Get().StartProfile(__func__, RequestOf(*profilerConfig, folder)));
  profiler.running = true;
  ++profiler.starts;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclprofStop(const aclprofConfig* profilerConfig) try {
  NPUMESH_ACL_EXPECT(profilerConfig != nullptr, "profilerConfig is null");
  ProfilerState& profiler = TheProfiler();
  const std::lock_guard lock(profiler.mutex);
  if (!profiler.running) return Fail(ACL_ERROR_PROF_NOT_RUN, __func__, "it does not run");
  return Stop(__func__, profiler);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclprofConfig* aclprofCreateConfig(uint32_t* deviceIdList, uint32_t deviceNums,
                                   aclprofAicoreMetrics, const aclprofAicoreEvents*,
                                   uint64_t dataTypeConfig) try {
  if (deviceIdList == nullptr || deviceNums == 0) {
    static_cast<void>(
        Fail(ACL_ERROR_INVALID_PROFILING_CONFIG, __func__, "the list of devices is empty"));
    return nullptr;
  }
  return new aclprofConfig{{deviceIdList, deviceIdList + deviceNums}, dataTypeConfig};
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig) try {
  NPUMESH_ACL_EXPECT(profilerConfig != nullptr, "profilerConfig is null");
  delete profilerConfig;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
