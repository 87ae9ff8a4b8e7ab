#include "runtime/base/env/ascend_env.h"

namespace npumesh {
namespace {

constexpr std::array kAscendManual = {
    EnvVariable{kAscendLogLevel, "0 to 4", "3",
                "What the log prints where TNG_LOG_LEVEL is unset; the same values."},
    EnvVariable{"ASCEND_SLOG_PRINT_TO_STDOUT", "any", "unset",
                "Without effect: the log always goes to standard error (docs/logging.md)."},
    EnvVariable{"ASCEND_PROCESS_LOG_PATH", "any", "unset",
                "Without effect: no log files are written; NPUMESH_RECORD keeps a flight record."},
    EnvVariable{"ASCEND_GLOBAL_EVENT_ENABLE", "any", "unset", "Without effect."},
    EnvVariable{"ASCEND_MODULE_LOG_LEVEL", "any", "unset",
                "Without effect: modules have one level."},
    EnvVariable{"ASCEND_RT_VISIBLE_DEVICES", "any", "unset",
                "Without effect: each rank has one simulated device; NPUMESH_DEVICE_COUNT gives a "
                "process several."},
    EnvVariable{"ASCEND_VISIBLE_DEVICES", "any", "unset",
                "Without effect: each rank has one simulated device."},
    EnvVariable{"ASCEND_DEVICE_ID", "any", "unset", "Without effect: the rank is the launcher's."},
    EnvVariable{"DEVICE_ID", "any", "unset", "Without effect: the rank is the launcher's."},
    EnvVariable{
        "RANK_TABLE_FILE", "any", "unset",
        "Without effect: ranks are those of mpirun; HcclCommInitClusterInfo reads the table "
        "that it is given."},
    EnvVariable{"ASCEND_LAUNCH_BLOCKING", "any", "unset",
                "Without effect: an error names its operator in any case."},
};

}  // namespace

std::span<const EnvVariable> AscendEnvTable() {
  return kAscendManual;
}

}  // namespace npumesh
