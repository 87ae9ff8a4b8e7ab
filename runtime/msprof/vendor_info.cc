#include "runtime/msprof/vendor_info.h"

#include <fmt/format.h>

#include "runtime/msprof/profile_text.h"

namespace npumesh {
namespace {

using nlohmann::json;

// Readers count with these numbers, so they are not "N/A".
json OneDevice(int device) {
  return {{"id", device},
          {"env_type", 0},
          {"ctrl_cpu_core_num", 0},
          {"ctrl_cpu_endian_little", 1},
          {"ctrl_cpu_id", "N/A"},
          {"ctrl_cpu", ""},
          {"ts_cpu_core_num", 0},
          {"ai_cpu", ""},
          {"ai_cpu_core_id", 0},
          {"ai_cpu_core_num", 0},
          {"aicpu_occupy_bitmap", 0},
          {"ai_core_id", 0},
          {"ai_core_num", 1},
          {"aiv_num", 1},
          {"hwts_frequency", "1000"},
          {"aic_frequency", "1000"},
          {"aiv_frequency", "1000"}};
}

}  // namespace

json DeviceInfo(const VendorRows& rows) {
  const ProfileOwner& owner = rows.owner();
  return {{"version", "1.0"},
          {"jobInfo", owner.command},
          {"OS", "Linux"},
          {"hostname", owner.host},
          {"hostUid", owner.boot_id},
          {"hwtype", "N/A"},
          {"devices", fmt::format("{}", rows.device)},
          {"platform", "npumesh"},
          {"platform_version", owner.version},
          {"pid", fmt::format("{}", owner.process)},
          {"rank_id", owner.rank},
          {"upTime", ""},
          {"memoryTotal", 0},
          {"cpuNums", 0},
          {"cpuCores", 0},
          {"sysClockFreq", 0},
          {"netCardNums", 0},
          {"netCard", json::array()},
          {"CPU", json::array({{{"CPUId", "0"}, {"CPUName", "N/A"}, {"Frequency", "N/A"}}})},
          {"drvVersion", "N/A"},
          {"cannVersion", "N/A"},
          {"DeviceInfo", json::array({OneDevice(rows.device)})}};
}

json StartInfo(const VendorRows& rows, int64_t raw_ahead_ns) {
  const ProfileOwner& owner = rows.owner();
  return {{"collectionTimeBegin", fmt::format("{}", owner.start_realtime_ns / 1000)},
          {"clockMonotonicRaw", fmt::format("{}", owner.start_monotonic_ns + raw_ahead_ns)}};
}

json ProfilerInfo(const VendorRows& rows) {
  const ProfileOwner& owner = rows.owner();
  return {{"rank_id", owner.rank},
          {"npumesh_version", owner.version},
          {"config",
           {{"experimental_config",
             {{"_profiler_level", owner.task_trace ? "Level1" : "Level0"},
              {"_export_type", "text"}}}}}};
}

json ProfilerMetadata(const VendorRows& rows) {
  json groups = json::object();
  for (const GroupRow& row : rows.groups) {
    groups[row.id] = {{"group_name", row.group.name},
                      {"group_rank", row.own},
                      {"global_ranks", row.group.world_ranks}};
  }
  return {{"parallel_group_info", std::move(groups)}};
}

std::string ReadMe(const VendorRows& rows) {
  const ProfileOwner& owner = rows.owner();
  std::string text = fmt::format(
      "Profile of rank {} of {}, written by npumesh in the layout of msprof.\n"
      "The device is simulated: times are those of a CPU, and what a CPU does not have is N/A.\n\n"
      "msprof_*.json: timeline; open it in MindStudio Insight, chrome://tracing or Perfetto\n"
      "api_statistic_*.csv: calls of the C interface, plans and blocking copies\n"
      "communication_statistic_*.csv: collectives and messages by kind\n",
      owner.rank, owner.world_size);
  if (owner.task_trace) {
    text +=
        "op_summary_*.csv: each operator and each collective\n"
        "op_statistic_*.csv: operators by type\n"
        "task_time_*.csv: each task of the device, copies too\n";
  }
  if (owner.training_trace) text += "step_trace_*.csv: iterations\n";
  return text;
}

}  // namespace npumesh
