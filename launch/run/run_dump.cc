#include "launch/run/run_dump.h"

#include "graph/dump/options/options.h"

namespace npumesh {
namespace {

// What the arguments say in the words of a configuration.
DumpConfig ConfigOf(const DumpArguments& arguments) {
  DumpConfig config;
  config.enable_dump = !arguments.mode.empty();
  config.dump_path = arguments.path;
  if (config.enable_dump) config.dump_mode = arguments.mode;
  config.dump_step = arguments.step;
  config.dump_layer = arguments.layer;
  config.dump_data = arguments.data;
  if (!arguments.config.empty()) config.dump_config_path = arguments.config;
  return config;
}

}  // namespace

Result<TensorDumpOptions> ChooseDump(const DumpArguments& arguments, TensorDumpOptions compiler,
                                     const SystemOptions& session) {
  TensorDumpOptions dump = std::move(compiler);
  if (!arguments.mode.empty() || !arguments.config.empty()) {
    dump.npy.reset();
    NPUMESH_ASSIGN_OR_RETURN(dump.operators, SettingsOf(ConfigOf(arguments)));
  } else if (!dump.wanted()) {
    NPUMESH_ASSIGN_OR_RETURN(dump, TensorDumpOf(session));
  }
  dump.limits.max_bytes = arguments.max_bytes;
  dump.limits.stop_on_error = arguments.stop_on_error;
  return dump;
}

RankDump ToRankDump(const DumpReport& report) {
  RankDump dump;
  dump.folder = report.folder;
  dump.files = report.counts.files;
  dump.bytes = report.counts.bytes;
  dump.statistics_files = report.counts.statistics_files;
  dump.degraded_files = report.degraded_files;
  dump.lost_files = report.counts.lost_files;
  dump.error = report.error.message();
  return dump;
}

std::string DumpLines(const std::vector<RankDump>& ranks) {
  std::string lines;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankDump& dump = ranks[rank];
    if (dump.folder.empty()) continue;
    lines += fmt::format("rank {} dump: {} tensor files, {} bytes, {} statistics files in {}", rank,
                         dump.files, dump.bytes, dump.statistics_files, dump.folder);
    if (dump.degraded_files > 0) {
      lines += fmt::format("; {} statistics in place of tensors (--dump-max-bytes)",
                           dump.degraded_files);
    }
    if (dump.lost_files > 0) lines += fmt::format("; {} files lost", dump.lost_files);
    if (!dump.error.empty()) lines += "; stopped: " + dump.error;
    lines += "\n";
  }
  return lines;
}

}  // namespace npumesh
