#include "graph/dump/options/options.h"

#include <cctype>

#include "graph/dump/options/config_file.h"
#include "graph/dump/options/option_values.h"
#include "runtime/base/advice.h"

namespace npumesh {
namespace {

constexpr std::string_view kMaxAutotune = "max-autotune";

// TorchAir's pattern: digits, letters and _ blank " / \ .
bool IsLayerText(std::string_view text) {
  for (const char c : text) {
    const bool alphanumeric = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!alphanumeric && std::string_view("_ \"/\\.").find(c) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

std::vector<std::string> SplitAtBlanks(std::string_view text) {
  std::vector<std::string> names;
  for (;;) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return names;
    text.remove_prefix(begin);
    const size_t end = text.find(' ');
    names.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return names;
    text.remove_prefix(end);
  }
}

Result<std::vector<std::string>> ParseLayers(const std::string& text) {
  if (!IsLayerText(text)) {
    return Error(Code::kInvalidArgument,
                 "dump_config.dump_layer is \"{}\"; accepted are operator names of digits, letters "
                 "and _ / \\ . between blanks, as in \"Add_1 MatMul_7\"",
                 text);
  }
  return SplitAtBlanks(text);
}

// By a dump_scene of the exception kind. A simulated core has nothing that a detail dump would add.
ExceptionDump ExceptionDumpOf(std::string_view scene) {
  if (scene.empty()) return ExceptionDump::kOff;
  const bool brief = scene == "lite_exception" || scene == "aic_err_brief_dump";
  return brief ? ExceptionDump::kBrief : ExceptionDump::kNormal;
}

Result<DumpSettings> FromFields(const DumpConfig& config) {
  DumpSettings settings;
  settings.models = true;
  settings.path = config.dump_path;
  settings.quant_dumpable = config.quant_dumpable;
  NPUMESH_RETURN_IF_ERROR(CheckDumpFolder(settings.path, "dump_config.dump_path"));
  NPUMESH_ASSIGN_OR_RETURN(settings.mode,
                           FromWord(kDumpModes, config.dump_mode, "dump_config.dump_mode"));
  NPUMESH_ASSIGN_OR_RETURN(settings.content,
                           FromWord(kDumpContents, config.dump_data, "dump_config.dump_data"));
  NPUMESH_ASSIGN_OR_RETURN(settings.steps, StepSet::Parse(config.dump_step, /*equal_ends=*/false,
                                                          "dump_config.dump_step"));
  NPUMESH_ASSIGN_OR_RETURN(std::vector<std::string> layers, ParseLayers(config.dump_layer));
  if (!layers.empty()) settings.choices.emplace_back().layers = std::move(layers);
  return settings;
}

}  // namespace

Result<std::optional<DumpSettings>> SettingsOf(const DumpConfig& config, std::string_view mode) {
  if (!config.enable_dump && !config.dump_config_path) return std::optional<DumpSettings>();
  if (mode != kMaxAutotune) {
    return Error(Code::kInvalidArgument, "{} needs mode \"{}\", but mode is \"{}\"",
                 config.enable_dump ? "dump_config.enable_dump" : "dump_config.dump_config_path",
                 kMaxAutotune, mode);
  }
  if (!config.enable_dump) return ReadDumpConfig(*config.dump_config_path);
  if (config.dump_config_path) {
    Advise(fmt::format(
        "dump_config.dump_config_path \"{}\" has no effect beside dump_config.enable_dump: the "
        "individual options hold; leave one of the two out",
        *config.dump_config_path));
  }
  NPUMESH_ASSIGN_OR_RETURN(DumpSettings settings, FromFields(config));
  return std::optional<DumpSettings>(std::move(settings));
}

Result<std::optional<DumpSettings>> SettingsOf(const SystemOptions& options) {
  if (options.enable_exception_dump != 0 && options.enable_exception_dump != 1) {
    return Error(Code::kInvalidArgument, "enable_exception_dump is {}; accepted are 0, 1",
                 options.enable_exception_dump);
  }
  if (!options.enable_dump && options.enable_exception_dump == 0) {
    return std::optional<DumpSettings>();
  }
  DumpSettings settings;
  if (options.enable_exception_dump == 1) settings.exception = ExceptionDump::kNormal;
  settings.path = options.dump_path.value_or(".");
  if (options.enable_dump) {
    if (!options.dump_path) {
      return Error(Code::kInvalidArgument,
                   "enable_dump is on, but dump_path is not given; name an existing folder");
    }
    settings.models = true;
    NPUMESH_ASSIGN_OR_RETURN(settings.mode, FromWord(kDumpModes, options.dump_mode, "dump_mode"));
    NPUMESH_ASSIGN_OR_RETURN(settings.steps, StepSet::Parse(options.dump_step.value_or(""),
                                                            /*equal_ends=*/false, "dump_step"));
  }
  NPUMESH_RETURN_IF_ERROR(CheckDumpFolder(settings.path, "dump_path"));
  return std::optional<DumpSettings>(std::move(settings));
}

std::optional<DumpSettings> WithEnvironment(std::optional<DumpSettings> settings,
                                            const DumpEnv& env) {
  ExceptionDump exception = settings ? settings->exception : ExceptionDump::kOff;
  if (exception == ExceptionDump::kOff) exception = ExceptionDumpOf(env.ascend_dump_scene);
  if (!env.npu_collect_path.empty()) exception = ExceptionDump::kNormal;
  if (exception == ExceptionDump::kOff) return settings;
  if (!settings) settings.emplace().path = ".";
  settings->exception = exception;
  for (const std::string* root :
       {&env.npu_collect_path, &env.ascend_dump_path, &env.ascend_work_path}) {
    if (root->empty()) continue;
    settings->exception_path = *root;
    break;
  }
  return settings;
}

}  // namespace npumesh
