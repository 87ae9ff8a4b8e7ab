#include "graph/export/export_config.h"

#include "graph/config/option_tables.h"
#include "graph/config/validation.h"
#include "runtime/base/advice.h"

namespace npumesh {
namespace {

// Options with an effect that were set and concern running a graph, joined by commas.
std::string OptionsOfSessions(CompilerConfig config) {
  CompilerConfig fresh;
  const OptionTable table = OptionsOf(config);
  const OptionTable fresh_table = OptionsOf(fresh);
  std::string paths;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const Option& option = table.rows[i];
    if (option.effect == OptionEffect::kNone || option.path.starts_with("export.")) continue;
    if (!Differs(option, fresh_table.rows[i])) continue;
    if (!paths.empty()) paths += ", ";
    paths += option.path;
  }
  return paths;
}

}  // namespace

Result<ExportOptions> ExportOptionsFor(const CompilerConfig& config) {
  CompilerConfig exporting = config;
  exporting.export_config.export_mode = true;
  NPUMESH_RETURN_IF_ERROR(Validate(exporting));
  SayOnce(NoticesOf(config));
  const std::string idle = OptionsOfSessions(config);
  if (!idle.empty()) {
    Advise(fmt::format(
        "{} has no effect on an export, which writes the graph as it was given; set it where the "
        "graph runs",
        idle));
  }
  const ExportConfig& from = config.export_config;
  ExportOptions options;
  if (from.export_path_dir) options.export_path = *from.export_path_dir;
  if (from.export_name) options.export_name = *from.export_name;
  options.enable_record_nn_module_stack = from.experimental.enable_record_nn_module_stack;
  options.auto_atc_config_generated = from.experimental.auto_atc_config_generated;
  return options;
}

}  // namespace npumesh
