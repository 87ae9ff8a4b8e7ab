// libmsprofiler: the order of the calls and their arguments are checked, nothing is recorded
// (acl_prof.h says why).
#include "acl/acl_prof.h"

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/acl/errors.h"

using npumesh::Fail;

struct aclprofConfig {
  std::vector<uint32_t> devices;
  uint64_t data_types = 0;
};

namespace {

// The state of the process's profiler, from aclprofInit to aclprofFinalize.
struct Profiler {
  std::mutex mutex;
  bool initialized = false;
  bool running = false;
  std::string folder;
};

Profiler& TheProfiler() {
  static Profiler profiler;
  return profiler;
}

aclError MakeFolder(const char* function, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && std::filesystem::is_directory(path, error)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_FILE, function, "\"{}\" of aclprofInit cannot be made: {}", path,
              error ? error.message() : "it is no folder");
}

}  // namespace

aclError aclprofInit(const char* profilerResultPath, size_t length) {
  NPUMESH_ACL_EXPECT(profilerResultPath != nullptr && length > 0, "the path is null or empty");
  Profiler& profiler = TheProfiler();
  const std::lock_guard lock(profiler.mutex);
  if (profiler.initialized) {
    return Fail(ACL_ERROR_PROF_ALREADY_RUN, __func__, "it was called already");
  }
  profiler.initialized = true;
  profiler.folder = std::string(profilerResultPath, length).c_str();  // up to a terminating 0
  return ACL_SUCCESS;
}

aclError aclprofFinalize() {
  Profiler& profiler = TheProfiler();
  const std::lock_guard lock(profiler.mutex);
  if (!profiler.initialized) {
    return Fail(ACL_ERROR_PROF_NOT_RUN, __func__, "aclprofInit was not called");
  }
  profiler.initialized = false;
  profiler.running = false;
  return ACL_SUCCESS;
}

aclError aclprofStart(const aclprofConfig* profilerConfig) {
  NPUMESH_ACL_EXPECT(profilerConfig != nullptr, "profilerConfig is null");
  Profiler& profiler = TheProfiler();
  const std::lock_guard lock(profiler.mutex);
  if (!profiler.initialized) {
    return Fail(ACL_ERROR_PROF_NOT_RUN, __func__, "aclprofInit was not called");
  }
  if (profiler.running) return Fail(ACL_ERROR_PROF_ALREADY_RUN, __func__, "it runs already");
  NPUMESH_ACL_TRY(MakeFolder(__func__, profiler.folder));
  profiler.running = true;
  return ACL_SUCCESS;
}

aclError aclprofStop(const aclprofConfig* profilerConfig) {
  NPUMESH_ACL_EXPECT(profilerConfig != nullptr, "profilerConfig is null");
  Profiler& profiler = TheProfiler();
  const std::lock_guard lock(profiler.mutex);
  if (!profiler.running) return Fail(ACL_ERROR_PROF_NOT_RUN, __func__, "it does not run");
  profiler.running = false;
  return ACL_SUCCESS;
}

aclprofConfig* aclprofCreateConfig(uint32_t* deviceIdList, uint32_t deviceNums,
                                   aclprofAicoreMetrics, const aclprofAicoreEvents*,
                                   uint64_t dataTypeConfig) {
  if (deviceIdList == nullptr || deviceNums == 0) {
    static_cast<void>(
        Fail(ACL_ERROR_INVALID_PROFILING_CONFIG, __func__, "the list of devices is empty"));
    return nullptr;
  }
  return new aclprofConfig{{deviceIdList, deviceIdList + deviceNums}, dataTypeConfig};
}

aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig) {
  NPUMESH_ACL_EXPECT(profilerConfig != nullptr, "profilerConfig is null");
  delete profilerConfig;
  return ACL_SUCCESS;
}
