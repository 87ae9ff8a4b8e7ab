#include "launch/run/run_dump.h"

#include "graph/dump/options.h"

namespace npumesh {

namespace {

Result<std::optional<DumpSettings>> OfCompiler(const CompilerConfig& config) {
  const DumpConfig& from = config.dump_config;
  CompilerDumpOptions options;
  options.enable_dump = from.enable_dump;
  options.dump_path = from.dump_path;
  options.dump_mode = from.dump_mode;
  options.quant_dumpable = from.quant_dumpable;
  options.dump_step = from.dump_step;
  options.dump_layer = from.dump_layer;
  options.dump_data = from.dump_data;
  options.dump_config_path = from.dump_config_path;
  return SettingsOf(options, config.mode);
}

Result<std::optional<DumpSettings>> OfSession(const SystemOptions& from) {
  SessionDumpOptions options;
  options.enable_dump = from.enable_dump;
  options.dump_path = from.dump_path;
  options.dump_step = from.dump_step;
  options.dump_mode = from.dump_mode;
  options.enable_exception_dump = static_cast<int>(from.enable_exception_dump);
  options.enable_dump_debug = from.enable_dump_debug;
  if (from.enable_dump_debug) options.dump_debug_mode = from.dump_debug_mode;
  return SettingsOf(options);
}

}  // namespace

Result<std::optional<DumpSettings>> DumpSettingsOf(const DumpArguments& arguments,
                                                   const std::optional<Configuration>& config) {
  if (arguments.mode.empty() && arguments.config.empty() && config) {
    NPUMESH_ASSIGN_OR_RETURN(std::optional<DumpSettings> settings, OfCompiler(config->compiler));
    if (settings) return settings;
    return OfSession(config->session);
  }
  CompilerDumpOptions options;
  options.enable_dump = !arguments.mode.empty();
  options.dump_path = arguments.path;
  if (options.enable_dump) options.dump_mode = arguments.mode;
  options.dump_step = arguments.step;
  options.dump_layer = arguments.layer;
  options.dump_data = arguments.data;
  if (!arguments.config.empty()) options.dump_config_path = arguments.config;
  return SettingsOf(options);
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
