#include "graph/config/validation.h"

#include "graph/config/option_tables.h"
#include "runtime/base/advice.h"

namespace npumesh {
namespace {

Status Combination(std::string_view text) {
  return Error(Code::kInvalidArgument, "{}", text);
}

Status CheckRows(const OptionTable& table) {
  for (const Option& option : table.rows) {
    NPUMESH_RETURN_IF_ERROR(Check(option, Get(option)));
  }
  return Status();
}

// Captured graphs: what belongs to them, and what they refuse.
Status CheckCapture(const CompilerConfig& config) {
  const AclGraphConfig& graph = config.experimental_config.aclgraph;
  if (!config.captures() && graph.aclnn_static_shape_kernel) {
    return Combination(
        "experimental_config.aclgraph._aclnn_static_shape_kernel: true needs mode "
        "\"reduce-overhead\", but mode is \"max-autotune\"");
  }
  if (graph.aclnn_static_shape_kernel && config.profiler.record_op_args &&
      config.profiler.skip_first == 0) {
    return Combination(
        "experimental_config.aclgraph._aclnn_static_shape_kernel: true does not go with a profiler "
        "that has record_op_args=true and skip_first=0, because both record operators; let the "
        "profiler skip the first steps");
  }
  const std::optional<std::string>& dump = config.debug.graph_dump.type;
  if (config.captures() && dump && *dump != "py") {
    return Error(Code::kInvalidArgument,
                 "debug.graph_dump.type: \"{}\" does not go with mode \"{}\", which accepts "
                 "\"py\" only",
                 *dump, config.mode);
  }
  return Status();
}

Status CheckExport(const CompilerConfig& config) {
  if (!config.export_config.export_mode) return Status();
  if (config.captures()) {
    return Error(Code::kInvalidArgument,
                 "export.export_mode: true does not go with mode \"{}\"; use \"max-autotune\"",
                 config.mode);
  }
  if (config.experimental_config.frozen_parameter) {
    return Combination(
        "experimental_config.frozen_parameter: true does not go with export.export_mode");
  }
  return Status();
}

Status CheckProfiling(const SystemOptions& options) {
  if (!options.profiling_mode) return Status();
  if (!options.profiling_options) {
    return Combination("session.profiling_options: needed because session.profiling_mode is true");
  }
  const bool json = options.profiling_options->starts_with("{");
  const bool asks = options.profiling_options->find("training_trace") != std::string::npos;
  if (json || !asks || (options.fp_point && options.bp_point)) return Status();
  return Error(Code::kInvalidArgument,
               "session.{}: needed because session.profiling_options has "
               "training_trace; name the {} operator",
               options.fp_point ? "bp_point" : "fp_point",
               options.fp_point ? "last backward" : "first forward");
}

Status CheckDump(const SystemOptions& options) {
  if (options.enable_dump && options.enable_dump_debug) {
    return Combination(
        "session.enable_dump_debug: true does not go with session.enable_dump; switch one off");
  }
  if ((options.enable_dump || options.enable_dump_debug) && !options.dump_path) {
    return Error(Code::kInvalidArgument, "session.dump_path: needed because session.{} is true",
                 options.enable_dump ? "enable_dump" : "enable_dump_debug");
  }
  return Status();
}

std::vector<std::string> IdleRows(const OptionTable& table, const OptionTable& fresh) {
  std::vector<std::string> notices;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const Option& option = table.rows[i];
    if (option.effect == OptionEffect::kHere || !Differs(option, fresh.rows[i])) continue;
    notices.push_back(fmt::format("{}={} has no effect on a simulated NPU: {}", option.path,
                                  ToText(Get(option)), option.does));
  }
  return notices;
}

// Options with an effect, but not in this mode.
std::vector<std::string> RowsOfOtherModes(const OptionTable& table, const OptionTable& fresh,
                                          const CompilerConfig& config) {
  const OptionMode other = config.captures() ? OptionMode::kMaxAutotune : OptionMode::kCapture;
  std::vector<std::string> notices;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const Option& option = table.rows[i];
    const bool relevant = option.mode == other && option.effect == OptionEffect::kHere;
    if (!relevant || !Differs(option, fresh.rows[i])) continue;
    notices.push_back(fmt::format(
        "config.{}:{} has no effect in mode \"{}\", only in {}", option.path, ToText(Get(option)),
        config.mode,
        config.captures() ? "\"max-autotune\"" : "\"reduce-overhead\" and \"npugraph_ex\""));
  }
  return notices;
}

}  // namespace

Status Validate(const CompilerConfig& config) {
  CompilerConfig copy = config;
  NPUMESH_RETURN_IF_ERROR(CheckRows(OptionsOf(copy)));
  NPUMESH_RETURN_IF_ERROR(CheckCapture(config));
  return CheckExport(config);
}

Status Validate(const SystemOptions& options) {
  SystemOptions copy = options;
  NPUMESH_RETURN_IF_ERROR(CheckRows(OptionsOf(copy)));
  NPUMESH_RETURN_IF_ERROR(CheckProfiling(options));
  NPUMESH_RETURN_IF_ERROR(CheckDump(options));
  if (options.optypelist_for_implmode && !options.op_select_implmode) {
    return Combination(
        "session.op_select_implmode: needed because session.optypelist_for_implmode "
        "is given");
  }
  return Status();
}

std::vector<std::string> NoticesOf(const CompilerConfig& config) {
  CompilerConfig copy = config;
  CompilerConfig fresh;
  const OptionTable table = OptionsOf(copy);
  const OptionTable fresh_table = OptionsOf(fresh);
  std::vector<std::string> notices = IdleRows(table, fresh_table);
  const std::vector<std::string> others = RowsOfOtherModes(table, fresh_table, config);
  notices.insert(notices.end(), others.begin(), others.end());
  if (config.dump_config.enable_dump && config.dump_config.dump_config_path) {
    notices.emplace_back(
        "dump_config.dump_config_path has no effect beside dump_config.enable_dump=true: the "
        "single options hold");
  }
  const bool dumps = config.dump_config.enable_dump || config.dump_config.dump_config_path;
  if (config.debug.data_dump.type && dumps) {
    notices.emplace_back(
        "dump_config has no effect beside debug.data_dump.type=\"npy\", which writes the tensors "
        "of an eager run");
  }
  const std::string& order = config.experimental_config.topology_sorting_strategy;
  if (config.ge_config.oo_level == "O1" && order != "StableRDFS" && order != "DFS") {
    notices.push_back(
        fmt::format("experimental_config.topology_sorting_strategy=\"{}\" has no effect beside "
                    "ge_config.oo_level=\"O1\", which keeps the order of the file",
                    order));
  }
  return notices;
}

std::vector<std::string> NoticesOf(const SystemOptions& options) {
  SystemOptions copy = options;
  SystemOptions fresh;
  std::vector<std::string> notices = IdleRows(OptionsOf(copy), OptionsOf(fresh));
  const std::string mode = options.precision_mode.value_or("");
  if (options.modify_mixlist && !mode.starts_with("allow_mix_precision")) {
    notices.push_back(
        fmt::format("session.modify_mixlist has no effect beside session.precision_mode={}, only "
                    "with allow_mix_precision, allow_mix_precision_fp16 and "
                    "allow_mix_precision_bf16",
                    options.precision_mode.value_or("null")));
  }
  return notices;
}

void SayOnce(const std::vector<std::string>& notices) {
  for (const std::string& notice : notices) Advise(notice);
}

}  // namespace npumesh
