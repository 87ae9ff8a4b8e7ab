#include "collectives/hccl/comm/config.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "hccl/hccl_comm.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

static_assert(sizeof(HcclRootInfo) == HCCL_ROOT_INFO_BYTES);
static_assert(offsetof(HcclCommConfig, hcclBufferSize) == 24);
static_assert(offsetof(HcclCommConfig, hcclDeterministic) == 28);
static_assert(offsetof(HcclCommConfig, hcclCommName) == 32);
static_assert(offsetof(HcclCommConfig, hcclUdi) == 160);
static_assert(offsetof(HcclCommConfig, hcclOpExpansionMode) == 288);
static_assert(offsetof(HcclCommConfig, hcclRdmaTrafficClass) == 292);
static_assert(offsetof(HcclCommConfig, hcclRdmaServiceLevel) == 296);
static_assert(offsetof(HcclCommConfig, hcclWorldRankID) == 300);
static_assert(offsetof(HcclCommConfig, hcclJobID) == 304);
static_assert(offsetof(HcclCommConfig, aclGraphZeroCopyEnable) == 312);
static_assert(offsetof(HcclCommConfig, hcclExecTimeOut) == 316);
static_assert(offsetof(HcclCommConfig, hcclAlgo) == 320);
static_assert(offsetof(HcclCommConfig, hcclRetryEnable) == 1920);
static_assert(offsetof(HcclCommConfig, hcclRetryParams) == 1970);
static_assert(offsetof(HcclCommConfig, hcclBufferName) == 2098);
static_assert(offsetof(HcclCommConfig, hcclQos) == 2228);
static_assert(offsetof(HcclCommConfig, hcclSymWinMaxMemSizePerRank) == 2232);
static_assert(offsetof(HcclCommConfig, hcclChannelSqDepth) == 2240);
static_assert(sizeof(HcclCommConfig) == 2248);

// What lies over HcclCommConfig::reserved.
struct Header {
  size_t size;
  uint32_t magic;
  uint32_t version;
  uint64_t reserved;
};
static_assert(sizeof(Header) == HCCL_COMM_CONFIG_INFO_BYTES);

// Where the fields end that a version knows.
struct Growth {
  uint32_t version;
  size_t end;
};
constexpr Growth kGrowth[] = {
    {1, offsetof(HcclCommConfig, hcclCommName)},
    {2, offsetof(HcclCommConfig, hcclUdi)},
    {3, offsetof(HcclCommConfig, hcclOpExpansionMode)},
    {4, offsetof(HcclCommConfig, hcclRdmaTrafficClass)},
    {5, offsetof(HcclCommConfig, hcclWorldRankID)},
    {6, offsetof(HcclCommConfig, aclGraphZeroCopyEnable)},
    {7, offsetof(HcclCommConfig, hcclExecTimeOut)},
    {8, offsetof(HcclCommConfig, hcclBufferName)},
    {9, offsetof(HcclCommConfig, hcclQos)},
    {10, offsetof(HcclCommConfig, hcclChannelSqDepth)},
    {11, sizeof(HcclCommConfig)},
};

size_t EndOfVersion(uint32_t version) {
  size_t end = HCCL_COMM_CONFIG_INFO_BYTES;
  for (const Growth& step : kGrowth) {
    if (step.version <= version) end = step.end;
  }
  return end;
}

// The structure with everything that its program could not know at its default.
Verdict Complete(const HcclCommConfig& given, HcclCommConfig* complete) {
  Header header;
  std::memcpy(&header, &given, sizeof(header));
  if (header.magic != HCCL_COMM_CONFIG_MAGIC_WORD) {
    return Refuse(HCCL_E_PARA,
                  "EI0003: the HcclCommConfig has magic word {:#x} instead of {:#x}; call "
                  "HcclCommConfigInit before setting its fields",
                  header.magic, HCCL_COMM_CONFIG_MAGIC_WORD);
  }
  if (header.version > HCCL_COMM_CONFIG_VERSION) {
    NPUMESH_WARNING_ONCE(
        "the HcclCommConfig has version {}, this library knows {}; newer fields "
        "are ignored",
        header.version, HCCL_COMM_CONFIG_VERSION);
  }
  HcclCommConfigInit(complete);
  const size_t end = std::min(header.size, EndOfVersion(header.version));
  if (end > sizeof(header)) {
    std::memcpy(reinterpret_cast<char*>(complete) + sizeof(header),
                reinterpret_cast<const char*>(&given) + sizeof(header), end - sizeof(header));
  }
  return {};
}

struct Range {
  const char* field;
  uint32_t value;
  uint32_t min;
  uint32_t max;
  uint32_t step;
};

Verdict CheckRanges(const HcclCommConfig& config) {
  constexpr uint32_t kNotSet = 0xffffffff;
  constexpr uint32_t kMany = 0xfffffffe;
  const Range ranges[] = {
      {"hcclBufferSize", config.hcclBufferSize, 1, kMany, 1},
      {"hcclDeterministic", config.hcclDeterministic, 0, 2, 1},
      {"hcclOpExpansionMode", config.hcclOpExpansionMode, 0, 7, 1},
      {"hcclRdmaTrafficClass", config.hcclRdmaTrafficClass, 0, 255, 4},
      {"hcclRdmaServiceLevel", config.hcclRdmaServiceLevel, 0, 7, 1},
      {"aclGraphZeroCopyEnable", config.aclGraphZeroCopyEnable, 0, 1, 1},
      {"hcclQos", config.hcclQos, 0, 7, 1},
  };
  for (const Range& range : ranges) {
    if (range.value == kNotSet) continue;
    if (range.value >= range.min && range.value <= range.max && range.value % range.step == 0) {
      continue;
    }
    return Refuse(HCCL_E_PARA, "EI0003: HcclCommConfig.{} is {}; expected {} to {}{}", range.field,
                  range.value, range.min, range.max, range.step == 4 ? ", a multiple of 4" : "");
  }
  if (config.hcclExecTimeOut < HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET) {
    return Refuse(HCCL_E_PARA, "EI0003: HcclCommConfig.hcclExecTimeOut is {}; expected seconds",
                  config.hcclExecTimeOut);
  }
  return {};
}

// A text field of `room` bytes that must end inside of it.
Verdict ReadText(const char* field, const char* text, size_t room, std::string* read) {
  const size_t length = strnlen(text, room);
  if (length == room) {
    return Refuse(HCCL_E_PARA, "EI0003: HcclCommConfig.{} does not end within its {} bytes", field,
                  room);
  }
  read->assign(text, length);
  return {};
}

Verdict ReadTexts(const HcclCommConfig& config, CommConfig* loaded) {
  std::string unused;
  NPUMESH_RETURN_IF_REFUSED(
      ReadText("hcclCommName", config.hcclCommName, COMM_NAME_MAX_LENGTH, &loaded->name));
  NPUMESH_RETURN_IF_REFUSED(ReadText("hcclUdi", config.hcclUdi, UDI_MAX_LENGTH, &unused));
  NPUMESH_RETURN_IF_REFUSED(
      ReadText("hcclAlgo", config.hcclAlgo, HCCL_COMM_ALGO_MAX_LENGTH, &loaded->algo));
  NPUMESH_RETURN_IF_REFUSED(ReadText("hcclRetryEnable", config.hcclRetryEnable,
                                     HCCL_COMM_RETRY_ENABLE_MAX_LENGTH, &unused));
  NPUMESH_RETURN_IF_REFUSED(ReadText("hcclRetryParams", config.hcclRetryParams,
                                     HCCL_COMM_RETRY_PARAMS_MAX_LENGTH, &unused));
  return ReadText("hcclBufferName", config.hcclBufferName, BUFFER_NAME_MAX_LENGTH, &unused);
}

}  // namespace

Verdict LoadCommConfig(const HcclCommConfig* config, CommConfig* loaded) {
  if (config == nullptr) return Refuse(HCCL_E_PTR, "EI0003: config is null");
  HcclCommConfig complete;
  NPUMESH_RETURN_IF_REFUSED(Complete(*config, &complete));
  NPUMESH_RETURN_IF_REFUSED(CheckRanges(complete));
  NPUMESH_RETURN_IF_REFUSED(ReadTexts(complete, loaded));
  if (complete.hcclExecTimeOut != HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET) {
    loaded->exec_timeout = std::chrono::seconds(complete.hcclExecTimeOut);
  }
  loaded->op_expansion_mode = complete.hcclOpExpansionMode;
  constexpr uint64_t kMostGigabytes = uint64_t{1} << 20;
  loaded->symmetric_bytes = std::min(complete.hcclSymWinMaxMemSizePerRank, kMostGigabytes) << 30;
  return {};
}

}  // namespace npumesh
