// What programs ask of devices and versions: parts of acl_rt.h and acl_base_rt.h.
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>

#include "acl/acl_rt.h"
#include "runtime/acl/limits/soc.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/acl/without_effect.h"
#include "runtime/base/log.h"

using npumesh::AclProcess;
using npumesh::Fail;

namespace {

// The release whose interface these headers have, of each of its packages.
constexpr const char* kPackageVersion = "9.1.0";
constexpr int32_t kPackageNumber = 90100000;  // 9, 1 and 0 weighted by 10^7, 10^5 and 10^3
// The first eight are numbered so; the others are named only.
constexpr std::array<std::string_view, 13> kPackages = {
    "cann",     "runtime", "compiler",        "hccl",   "toolkit",   "opp", "opp_kernel", "driver",
    "ops_math", "ops_nn",  "ops_transformer", "ops_cv", "ops_legacy"};

aclError CheckPackage(const char* function, const char* package, const void* result) {
  if (package == nullptr || result == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "pkgName or the place for the result is null");
  }
  const std::string_view name(package, strnlen(package, ACL_PKG_VERSION_MAX_SIZE));
  if (std::find(kPackages.begin(), kPackages.end(), name) != kPackages.end()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_FILE, function,
              "there is no package \"{}\"; npumesh answers for {}", name,
              fmt::join(kPackages, ", "));
}

void PutText(char* room, size_t bytes, std::string_view text) {
  std::snprintf(room, bytes, "%.*s", static_cast<int>(text.size()), text.data());
}

constexpr std::array kCannAttributes = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16,
                                        ACL_CANN_ATTR_JIT_COMPILE};

// Of every device; nullopt for what npumesh does not know.
std::optional<int64_t> SocAttribute(aclrtDevAttr attribute) {
  switch (attribute) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM:
      return npumesh::kSocAicpuCores;
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
      return npumesh::kSocCubeCores;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
      return npumesh::kSocVectorCores;
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
      return npumesh::kSocL2Bytes;
    case ACL_DEV_ATTR_NPU_ARCH:
      return npumesh::kSocArchitecture;
    case ACL_DEV_ATTR_HD_CONNECT_TYPE:
      return ACL_HOST_DEVICE_CONNECT_TYPE_HCCS;
    case ACL_DEV_ATTR_SMP_ID:
    case ACL_DEV_ATTR_IS_VIRTUAL:
    case ACL_DEV_ATTR_CUST_OP_PRIVILEGE:
      return 0;
    default:
      break;
  }
  // Of SIMT, which this SoC does not have.
  const bool simt =
      attribute >= ACL_DEV_ATTR_WARP_SIZE && attribute <= ACL_DEV_ATTR_MAX_BLOCK_DIM_Z;
  return simt ? std::optional<int64_t>(0) : std::nullopt;
}

aclError CheckDeviceQuery(const char* function, uint32_t device, const void* value) {
  if (value == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "value is null");
  return AclProcess::Get().CheckNodeDevice(function, static_cast<int32_t>(device));
}

// "0000:<device, two hexadecimal digits>:00.0"
constexpr const char* kBusIdFormat = "0000:%02x:00.0";
constexpr size_t kBusIdBytes = 13;

}  // namespace

void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line,
               const char* fmt, ...) try {
  if (func == nullptr || file == nullptr || fmt == nullptr) return;
  char text[1024];
  va_list args;
  va_start(args, fmt);
  std::vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  constexpr std::array kLevels = {npumesh::LogLevel::kDebug, npumesh::LogLevel::kInfo,
                                  npumesh::LogLevel::kWarning, npumesh::LogLevel::kError};
  if (logLevel < ACL_DEBUG || logLevel > ACL_ERROR) return;
  NPUMESH_LOG(kLevels[static_cast<size_t>(logLevel)], "{}:{} {}: {}", file, line, func, text);
} catch (...) {
  npumesh::FailThrown(__func__);
}

aclError aclsysGetVersionStr(char* pkgName, char* versionStr) try {
  NPUMESH_ACL_TRY(CheckPackage(__func__, pkgName, versionStr));
  PutText(versionStr, ACL_PKG_VERSION_MAX_SIZE, kPackageVersion);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum) try {
  NPUMESH_ACL_TRY(CheckPackage(__func__, pkgName, versionNum));
  *versionNum = kPackageNumber;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) try {
  NPUMESH_ACL_EXPECT(version != nullptr, "version is null");
  NPUMESH_ACL_EXPECT(name >= ACL_PKG_NAME_CANN && name <= ACL_PKG_NAME_DRIVER,
                     "name is {}, expected 0 to 7", static_cast<int>(name));
  *version = {};
  PutText(version->version, sizeof version->version, kPackageVersion);
  PutText(version->majorVersion, sizeof version->majorVersion, "9");
  PutText(version->minorVersion, sizeof version->minorVersion, "1");
  PutText(version->releaseVersion, sizeof version->releaseVersion, "0");
  PutText(version->patchVersion, sizeof version->patchVersion, "0");
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) try {
  NPUMESH_ACL_EXPECT(cannAttrList != nullptr && num != nullptr, "cannAttrList or num is null");
  *cannAttrList = kCannAttributes.data();
  *num = kCannAttributes.size();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) try {
  NPUMESH_ACL_EXPECT(value != nullptr, "value is null");
  NPUMESH_ACL_EXPECT(cannAttr >= ACL_CANN_ATTR_INF_NAN && cannAttr <= ACL_CANN_ATTR_JIT_COMPILE,
                     "cannAttr is {}, expected 0 to 2", static_cast<int>(cannAttr));
  *value = 1;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) try {
  switch (deviceInfo) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
      return aclrtGetDeviceInfo(deviceId, ACL_DEV_ATTR_AICORE_CORE_NUM, value);
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
      return aclrtGetDeviceInfo(deviceId, ACL_DEV_ATTR_VECTOR_CORE_NUM, value);
    case ACL_DEVICE_INFO_L2_SIZE:
      return aclrtGetDeviceInfo(deviceId, ACL_DEV_ATTR_L2_CACHE_SIZE, value);
    default:
      return Fail(ACL_ERROR_INVALID_PARAM, __func__, "deviceInfo is {}, expected 0 to 2",
                  static_cast<int>(deviceInfo));
  }
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) try {
  NPUMESH_ACL_TRY(CheckDeviceQuery(__func__, deviceId, value));
  if (const auto known = SocAttribute(attr)) {
    *value = *known;
    return ACL_SUCCESS;
  }
  if (attr == ACL_DEV_ATTR_PHY_CHIP_ID) {
    *value = deviceId;
    return ACL_SUCCESS;
  }
  if (attr == ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE) {
    npumesh::DeviceUsage usage;
    NPUMESH_ACL_TRY(AclProcess::Get().UsageOf(__func__, static_cast<int32_t>(deviceId), &usage));
    *value = static_cast<int64_t>(usage.total_bytes);
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __func__,
              "a simulated device has no attribute {}; see aclrtDevAttr", static_cast<int>(attr));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
                                  int32_t* value) try {
  NPUMESH_ACL_TRY(CheckDeviceQuery(__func__, static_cast<uint32_t>(deviceId), value));
  NPUMESH_ACL_EXPECT(devFeatureType == ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV ||
                         devFeatureType == ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV,
                     "devFeatureType is {}, expected 1 or 21", static_cast<int>(devFeatureType));
  *value = ACL_DEV_FEATURE_NOT_SUPPORT;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId,
                                       aclrtUtilizationInfo* utilizationInfo) try {
  NPUMESH_ACL_TRY(CheckDeviceQuery(__func__, static_cast<uint32_t>(deviceId), utilizationInfo));
  NPUMESH_ACL_EXPECT(utilizationInfo->utilizationExtend == nullptr,
                     "utilizationExtend is not null; it is reserved");
  npumesh::DeviceUsage usage;
  NPUMESH_ACL_TRY(AclProcess::Get().UsageOf(__func__, deviceId, &usage));
  const int32_t busy = usage.busy ? 100 : 0;
  utilizationInfo->cubeUtilization = busy;
  utilizationInfo->vectorUtilization = busy;
  utilizationInfo->aicpuUtilization = 0;
  utilizationInfo->memoryUtilization =
      static_cast<int32_t>(usage.used_bytes * 100 / std::max<uint64_t>(usage.total_bytes, 1));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo, size_t inputNum,
                              size_t* outputNum) try {
  NPUMESH_ACL_EXPECT(memUsageInfo != nullptr && outputNum != nullptr && inputNum > 0,
                     "memUsageInfo or outputNum is null, or inputNum is 0");
  npumesh::DeviceUsage usage;
  NPUMESH_ACL_TRY(AclProcess::Get().UsageOf(__func__, deviceId, &usage));
  *memUsageInfo = {};
  PutText(memUsageInfo->name, sizeof memUsageInfo->name, "npumesh");
  memUsageInfo->curMemSize = usage.used_bytes;
  memUsageInfo->memPeakSize = usage.peak_bytes;
  *outputNum = 1;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority) try {
  NPUMESH_ACL_EXPECT(leastPriority != nullptr && greatestPriority != nullptr,
                     "leastPriority or greatestPriority is null");
  *leastPriority = npumesh::kLeastStreamPriority;
  *greatestPriority = npumesh::kGreatestStreamPriority;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCheckArchCompatibility(const char* socVersion, int32_t* canCompatible) try {
  NPUMESH_ACL_EXPECT(socVersion != nullptr && canCompatible != nullptr,
                     "socVersion or canCompatible is null");
  *canCompatible = std::string_view(socVersion).starts_with(npumesh::kSocFamily) ? 1 : 0;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceGetBareTgid(int32_t* pid) try {
  NPUMESH_ACL_EXPECT(pid != nullptr, "pid is null");
  *pid = getpid();
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid) try {
  NPUMESH_ACL_TRY(CheckDeviceQuery(__func__, static_cast<uint32_t>(deviceId), uuid));
  PutText(uuid->bytes, sizeof uuid->bytes, "npumesh-" + std::to_string(deviceId));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char* pciBusId, int32_t len) try {
  NPUMESH_ACL_TRY(CheckDeviceQuery(__func__, static_cast<uint32_t>(deviceId), pciBusId));
  NPUMESH_ACL_EXPECT(len >= static_cast<int32_t>(kBusIdBytes), "len is {}, expected at least {}",
                     len, kBusIdBytes);
  std::snprintf(pciBusId, static_cast<size_t>(len), kBusIdFormat, static_cast<unsigned>(deviceId));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceGetByPCIBusId(const char* pciBusId, int32_t* deviceId) try {
  NPUMESH_ACL_EXPECT(pciBusId != nullptr && deviceId != nullptr, "pciBusId or deviceId is null");
  const npumesh::Result<int> count = AclProcess::Get().DeviceCount();
  NPUMESH_ACL_TRY(npumesh::Report(__func__, count.status()));
  for (int device = 0; device < *count; ++device) {
    char id[kBusIdBytes + 8];
    std::snprintf(id, sizeof id, kBusIdFormat, static_cast<unsigned>(device));
    if (std::string_view(id) != pciBusId) continue;
    *deviceId = device;
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_INVALID_DEVICEID, __func__, "no device has the bus id \"{}\"",
              std::string_view(pciBusId, strnlen(pciBusId, 64)));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId, uint64_t* value) try {
  NPUMESH_ACL_TRY(CheckDeviceQuery(__func__, deviceId, value));
  NPUMESH_ACL_TRY(CheckDeviceQuery(__func__, otherDeviceId, value));
  *value = ACL_RT_DEVS_TOPOLOGY_HCCS;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) try {
  NPUMESH_ACL_EXPECT(active != nullptr, "active is null");
  NPUMESH_ACL_TRY(AclProcess::Get().CheckNodeDevice(__func__, deviceId));
  if (flags != nullptr) *flags = 0;
  *active = AclProcess::Get().HasImplicitContext(deviceId) ? 1 : 0;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo* errorInfo) try {
  NPUMESH_ACL_TRY(CheckDeviceQuery(__func__, static_cast<uint32_t>(deviceId), errorInfo));
  *errorInfo = {};
  errorInfo->errorType = ACL_RT_NO_ERROR;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t* status) try {
  return aclrtDeviceCanAccessPeer(status, deviceId, peerDeviceId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
