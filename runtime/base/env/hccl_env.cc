#include "runtime/base/env/hccl_env.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

using Text = std::string_view;

// The fields of a list, blanks at their ends removed.
std::vector<Text> Fields(Text text, Text separator) {
  std::vector<Text> fields = Split(text, separator);
  for (Text& field : fields) field = Trimmed(field);
  return fields;
}

template <int64_t min, int64_t max, int64_t step = 1>
bool IsInteger(Text text) {
  const Result<int64_t> value = ParseInt(text, min, max, "value");
  return value.ok() && *value % step == 0;
}

bool IsAny(Text) {
  return true;
}

bool IsFlag(Text text) {
  return text == "0" || text == "1";
}

bool IsTrueFalse(Text text) {
  return text == "TRUE" || text == "FALSE";
}

bool IsDeterministic(Text text) {
  return text == "false" || text == "true" || text == "strict";
}

bool IsExpansionMode(Text text) {
  constexpr Text kModes[] = {"HOST", "HOST_TS", "AI_CPU",   "AICPU_TS", "AICPU_CacheDisable",
                             "AIV",  "CCU_MS",  "CCU_SCHED"};
  return std::find(std::begin(kModes), std::end(kModes), text) != std::end(kModes);
}

bool IsRatio(Text text) {
  return ParseDouble(text, 0, 1, "value").ok();
}

bool IsPodId(Text text) {
  return !text.empty() && text.size() < 128;
}

bool IsAddress(Text text) {
  in6_addr room{};
  const std::string ended(text);
  return inet_pton(AF_INET, ended.c_str(), &room) == 1 ||
         inet_pton(AF_INET6, ended.c_str(), &room) == 1;
}

bool IsInterfaceRule(Text text) {
  if (text.starts_with('^')) text.remove_prefix(1);
  if (text.starts_with('=')) text.remove_prefix(1);
  const std::vector<Text> names = Fields(text, ",");
  return std::none_of(names.begin(), names.end(), [](Text name) { return name.empty(); });
}

bool IsFamily(Text text) {
  return text == "AF_INET" || text == "AF_INET6";
}

// "a-b[,c-d]" as ports; nullopt for other texts.
std::optional<std::vector<uint16_t>> ParsePorts(Text text) {
  std::vector<uint16_t> ports;
  for (const Text range : Fields(text, ",")) {
    const std::vector<Text> ends = Fields(range, "-");
    if (ends.empty() || ends.size() > 2) return std::nullopt;
    const Result<int64_t> first = ParseInt(ends.front(), 1, 65535, "port");
    const Result<int64_t> last = ParseInt(ends.back(), 1, 65535, "port");
    if (!first.ok() || !last.ok() || *first > *last) return std::nullopt;
    for (int64_t port = *first; port <= *last; ++port) ports.push_back(static_cast<uint16_t>(port));
  }
  return ports;
}

bool IsPortRange(Text text) {
  return text == "auto" || ParsePorts(text).has_value();
}

// "L0:0, L1:1, L2:0": every field once, at least one.
bool IsRetryEnable(Text text) {
  std::vector<Text> seen;
  for (const Text field : Fields(text, ",")) {
    const std::vector<Text> parts = Fields(field, ":");
    if (parts.size() != 2 || !IsFlag(parts[1])) return false;
    if (parts[0] != "L0" && parts[0] != "L1" && parts[0] != "L2") return false;
    if (std::find(seen.begin(), seen.end(), parts[0]) != seen.end()) return false;
    seen.push_back(parts[0]);
  }
  return true;
}

// A comma list of "key:value"; `accepts` judges each.
bool IsKeyed(Text text, bool (*accepts)(Text key, Text value)) {
  for (const Text field : Fields(text, ",")) {
    const std::vector<Text> parts = Fields(field, ":");
    if (parts.size() != 2 || !accepts(parts[0], parts[1])) return false;
  }
  return true;
}

bool IsRetryParams(Text text) {
  return IsKeyed(text, [](Text key, Text value) {
    if (key == "MaxCnt") return IsInteger<1, 10>(value);
    return (key == "HoldTime" || key == "IntervalTime") && IsInteger<0, 60000>(value);
  });
}

bool IsDfsConfig(Text text) {
  return IsKeyed(text, [](Text key, Text value) {
    const bool on_off = value == "on" || value == "off";
    if (key == "connection_fault_detection_time") return value == "0" || IsInteger<20, 7200>(value);
    if (key == "inconsistent_check") return on_off || value == "first";
    if (key == "task_monitor_interval") return IsInteger<0, 7200000>(value);
    return (key == "cluster_heartbeat" || key == "stuck_detection" || key == "task_exception") &&
           on_off;
  });
}

bool IsModuleList(Text text) {
  if (text.starts_with('^')) text.remove_prefix(1);
  const std::vector<Text> modules = Fields(text, ",");
  return std::all_of(modules.begin(), modules.end(), [](Text module) {
    return module == "ALG" || module == "TASK" || module == "RESOURCE" || module == "alg" ||
           module == "task" || module == "resource";
  });
}

struct Setting {
  EnvVariable manual;
  bool (*accepts)(Text text);
};

constexpr std::string_view kChecked = "Checked; without effect here.";

constexpr std::array kSettings = {
    Setting{{"HCCL_BUFFSIZE", "integer of at least 1 (MB)", "200", kChecked},
            IsInteger<1, 1 << 30>},
    Setting{{"HCCL_DETERMINISTIC", "false, true or strict", "false",
             "What HcclGetConfig says; results are the same bits in any case."},
            IsDeterministic},
    Setting{{"HCCL_OP_EXPANSION_MODE",
             "HOST, HOST_TS, AI_CPU, AICPU_TS, AICPU_CacheDisable, AIV, CCU_MS or CCU_SCHED",
             "the product's", kChecked},
            IsExpansionMode},
    Setting{{"HCCL_INTRA_PCIE_ENABLE", "0 or 1", "1", kChecked}, IsFlag},
    Setting{{"HCCL_INTRA_ROCE_ENABLE", "0 or 1; not 1 together with HCCL_INTRA_PCIE_ENABLE", "0",
             kChecked},
            IsFlag},
    Setting{{"HCCL_INTER_HCCS_DISABLE", "TRUE or FALSE", "FALSE", kChecked}, IsTrueFalse},
    Setting{{"HCCL_LOGIC_SUPERPOD_ID", "text of 1 to 127 characters", "unset", kChecked}, IsPodId},
    Setting{{"HCCL_ALG_MULTIPLE_DIMENSION_SPLIT_RATIO", "number in [0, 1]", "0.5", kChecked},
            IsRatio},
    Setting{{"HCCL_RDMA_TC", "integer in [0, 255], a multiple of 4", "132", kChecked},
            IsInteger<0, 255, 4>},
    Setting{{"HCCL_RDMA_SL", "integer in [0, 7]", "4", kChecked}, IsInteger<0, 7>},
    Setting{{"HCCL_RDMA_TIMEOUT", "integer in [5, 24]", "20", kChecked}, IsInteger<5, 24>},
    Setting{{"HCCL_RDMA_RETRY_CNT", "integer in [1, 7]", "7", kChecked}, IsInteger<1, 7>},
    Setting{{"HCCL_RDMA_QPS_PER_CONNECTION", "integer in [1, 32]", "1", kChecked},
            IsInteger<1, 32>},
    Setting{{"HCCL_MULTI_QP_THRESHOLD", "integer in [1, 8192] (KB)", "512", kChecked},
            IsInteger<1, 8192>},
    Setting{{"HCCL_RDMA_QP_PORT_CONFIG_PATH", "a folder", "unset", kChecked}, IsAny},
    Setting{{"HCCL_RDMA_PCIE_DIRECT_POST_NOSTRICT", "TRUE or FALSE", "FALSE", kChecked},
            IsTrueFalse},
    Setting{{"HCCL_IF_IP", "an IPv4 or IPv6 address", "chosen by HCCL_SOCKET_IFNAME",
             "Address of this host for the ranks of other hosts."},
            IsAddress},
    Setting{{"HCCL_SOCKET_IFNAME", "\"p,q\" prefixes, \"=n,m\" names, \"^...\" all but these",
             "any; docker and lo last", "Interface for the ranks of other hosts."},
            IsInterfaceRule},
    Setting{
        {"HCCL_SOCKET_FAMILY", "AF_INET or AF_INET6", "AF_INET, AF_INET6 where there is no other",
         "Kind of the address that HCCL_SOCKET_IFNAME chooses."},
        IsFamily},
    Setting{{"HCCL_IF_BASE_PORT", "integer in [1024, 65520]", "any free port",
             "The first of 32 ports at which a root info listens."},
            IsInteger<1024, 65520>},
    Setting{{"HCCL_HOST_SOCKET_PORT_RANGE", "\"a-b[,c-d]\" or auto", "any free port",
             "Ports at which a root info listens."},
            IsPortRange},
    Setting{{"HCCL_NPU_SOCKET_PORT_RANGE", "\"a-b[,c-d]\" or auto", "16666", kChecked},
            IsPortRange},
    Setting{{"HCCL_WHITELIST_DISABLE", "0 or 1", "1", kChecked}, IsFlag},
    Setting{{"HCCL_WHITELIST_FILE", "a file", "unset", kChecked}, IsAny},
    Setting{{"HCCL_ENTRY_LOG_ENABLE", "0 or 1", "0",
             "1: a line in the log for every call of an operator of the C interface."},
            IsFlag},
    Setting{{"HCCL_OP_RETRY_ENABLE", "\"L1:<0 or 1>,L2:<0 or 1>\", also with L0", "off", kChecked},
            IsRetryEnable},
    Setting{
        {"HCCL_OP_RETRY_PARAMS", "\"MaxCnt:[1,10],HoldTime:[0,60000],IntervalTime:[0,60000]\" (ms)",
         "1,5000,1000", kChecked},
        IsRetryParams},
    Setting{{"HCCL_DFS_CONFIG",
             "comma list of connection_fault_detection_time, cluster_heartbeat, stuck_detection, "
             "inconsistent_check, task_exception, task_monitor_interval with \":\" and a value",
             "20, on, on, first, on, 0", kChecked},
            IsDfsConfig},
    Setting{{"HCCL_DIAGNOSE_ENABLE", "0 or 1", "0", kChecked}, IsFlag},
    Setting{{"HCCL_DEBUG_CONFIG",
             "comma list of ALG, TASK, RESOURCE; \"^\" in front: all but these", "unset", kChecked},
            IsModuleList},
};

constexpr auto kHcclManual = ManualOf(kSettings);

Status Invalid(Text value, Text variable, Text accepted) {
  return Error(Code::kInvalidArgument,
               "EI0001: Value {} for environment variable {} is invalid. Expected value: {}.",
               value, variable, accepted);
}

Text TextOf(const EnvGetter& get, const char* name) {
  const char* text = get(name);
  return text ? Text(text) : Text();
}

// The two switches for links inside a server exclude each other.
Status CheckLinkPair(const EnvGetter& get) {
  const Text pcie = TextOf(get, "HCCL_INTRA_PCIE_ENABLE");
  const Text roce = TextOf(get, "HCCL_INTRA_ROCE_ENABLE");
  const bool wrong = (pcie == "1" && roce == "1") || (pcie == "0" && roce.empty()) ||
                     (pcie.empty() && roce == "0");
  if (!wrong) return Status();
  return Invalid(fmt::format("\"{}\" and \"{}\"", pcie, roce),
                 "HCCL_INTRA_PCIE_ENABLE and HCCL_INTRA_ROCE_ENABLE",
                 "1 for one of them, 0 or nothing for the other, or 0 for both");
}

}  // namespace

std::span<const EnvVariable> HcclEnvTable() {
  return kHcclManual;
}

Result<HcclEnv> HcclEnv::From(const EnvGetter& get) {
  for (const Setting& setting : kSettings) {
    const char* text = get(setting.manual.name.data());
    if (text == nullptr || setting.accepts(text)) continue;
    return Invalid(text, setting.manual.name, setting.manual.accepted);
  }
  NPUMESH_RETURN_IF_ERROR(CheckLinkPair(get));
  HcclEnv env;
  env.if_ip = TextOf(get, "HCCL_IF_IP");
  env.socket_ifname = TextOf(get, "HCCL_SOCKET_IFNAME");
  const Text family = TextOf(get, "HCCL_SOCKET_FAMILY");
  if (!family.empty()) env.socket_family = family == "AF_INET6" ? 6 : 4;
  const Text deterministic = TextOf(get, "HCCL_DETERMINISTIC");
  if (!deterministic.empty()) {
    env.deterministic = deterministic == "false" ? 0 : deterministic == "true" ? 1 : 2;
  }
  env.entry_log = TextOf(get, "HCCL_ENTRY_LOG_ENABLE") == "1";
  const Text range = TextOf(get, "HCCL_HOST_SOCKET_PORT_RANGE");
  const Text base = TextOf(get, "HCCL_IF_BASE_PORT");
  if (!range.empty() && range != "auto") {
    env.ports = *ParsePorts(range);
  } else if (range.empty() && !base.empty()) {
    constexpr int64_t kPorts = 32;
    const int64_t first = *ParseInt(base, 1024, 65520, "HCCL_IF_BASE_PORT");
    const int64_t end = std::min<int64_t>(first + kPorts, 65536);
    for (int64_t port = first; port < end; ++port) env.ports.push_back(static_cast<uint16_t>(port));
  }
  return env;
}

Result<HcclEnv> HcclEnv::FromProcess() {
  return From([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace npumesh
