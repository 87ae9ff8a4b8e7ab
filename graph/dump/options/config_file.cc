#include "graph/dump/options/config_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "graph/dump/options/config_list.h"
#include "graph/dump/options/option_values.h"
#include "runtime/base/advice.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/json_error.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 10;
constexpr uint64_t kMaxFileBytes = uint64_t{16} << 20;
constexpr size_t kMaxPathLength = 512;

constexpr std::array<std::string_view, 11> kKeys = {
    "dump_path",  "dump_mode",        "dump_op_switch", "dump_level", "dump_scene", "dump_data",
    "dump_debug", "dump_kernel_data", "dump_step",      "dump_stats", "dump_list"};

// What `dump_scene` says.
enum class Scene { kNone, kWatcher, kBrief, kNormal, kDetail };
constexpr Words<Scene, 5> kScenes = {{{"watcher", Scene::kWatcher},
                                      {"lite_exception", Scene::kBrief},
                                      {"aic_err_brief_dump", Scene::kBrief},
                                      {"aic_err_norm_dump", Scene::kNormal},
                                      {"aic_err_detail_dump", Scene::kDetail}}};

enum class Level { kOperator, kKernel, kAll };
constexpr Words<Level, 3> kLevels = {
    {{"op", Level::kOperator}, {"kernel", Level::kKernel}, {"all", Level::kAll}}};

constexpr Words<bool, 5> kKernelData = {
    {{"all", true}, {"printf", true}, {"tensor", true}, {"assert", true}, {"timestamp", true}}};

// What the file says, before the rules of combination.
struct Content {
  DumpSettings settings;
  bool has_path = false;
  bool has_list = false;
  bool has_statistics = false;
  bool op_switch = false;
  bool debug = false;
  Scene scene = Scene::kNone;
  Level level = Level::kAll;

  bool exception_scene() const { return scene != Scene::kNone && scene != Scene::kWatcher; }
};

Status Conflict(std::string_view a, std::string_view b, std::string_view advice) {
  return Error(Code::kInvalidArgument, "{} and {} exclude each other; {}", a, b, advice);
}

// The string at `key`, or `fallback` when it is absent. All scalars are strings.
Result<std::string> Text(const json& dump, std::string_view key, std::string_view fallback) {
  const auto found = dump.find(key);
  if (found == dump.end()) return std::string(fallback);
  if (!found->is_string()) {
    return Error(Code::kInvalidArgument, "{} is {}; expected a string", key,
                 Quotable(found->dump()));
  }
  return found->get<std::string>();
}

template <typename T, size_t n>
Result<T> Word(const json& dump, std::string_view key, const Words<T, n>& words, T fallback) {
  if (!dump.contains(key)) return fallback;
  NPUMESH_ASSIGN_OR_RETURN(const std::string value, Text(dump, key, ""));
  return FromWord(words, value, key);
}

Status CheckKernelData(const json& dump) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, Text(dump, "dump_kernel_data", "all"));
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    NPUMESH_RETURN_IF_ERROR(
        FromWord(kKernelData, rest.substr(0, comma), "dump_kernel_data").status());
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (dump.contains("dump_kernel_data")) {
    Advise("dump_kernel_data has no effect: simulated kernels print and assert nothing");
  }
  return Status();
}

Status ReadStatistics(const json& dump, Content* content) {
  const auto found = dump.find("dump_stats");
  if (found == dump.end()) return Status();
  content->has_statistics = true;
  if (!found->is_array() || found->empty()) {
    return Error(Code::kInvalidArgument, "dump_stats is {}; expected a list that is not empty",
                 Quotable(found->dump()));
  }
  std::vector<Statistic>& chosen = content->settings.statistics;
  chosen.clear();
  for (const json& item : *found) {
    if (!item.is_string()) {
      return Error(Code::kInvalidArgument, "dump_stats holds {}; expected strings",
                   Quotable(item.dump()));
    }
    NPUMESH_ASSIGN_OR_RETURN(const Statistic statistic,
                             FromWord(kStatistics, item.get<std::string>(), "dump_stats"));
    chosen.push_back(statistic);
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return Status();
}

Status ReadPath(const json& dump, Content* content) {
  content->has_path = dump.contains("dump_path");
  NPUMESH_ASSIGN_OR_RETURN(content->settings.path, Text(dump, "dump_path", ""));
  if (content->settings.path.size() > kMaxPathLength) {
    return Error(Code::kInvalidArgument, "dump_path has {} characters, at most {} are possible",
                 content->settings.path.size(), kMaxPathLength);
  }
  return Status();
}

Result<Content> ReadKeys(const json& dump) {
  for (const auto& [key, value] : dump.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) continue;
    return Error(Code::kInvalidArgument, "\"{}\" is no key of \"dump\"; the keys are {}", key,
                 fmt::join(kKeys, ", "));
  }
  Content content;
  DumpSettings& settings = content.settings;
  settings.always_rank_folder = false;
  NPUMESH_RETURN_IF_ERROR(ReadPath(dump, &content));
  NPUMESH_ASSIGN_OR_RETURN(settings.mode, Word(dump, "dump_mode", kDumpModes, DumpMode::kOutput));
  NPUMESH_ASSIGN_OR_RETURN(settings.content,
                           Word(dump, "dump_data", kDumpContents, DumpContent::kTensor));
  NPUMESH_ASSIGN_OR_RETURN(content.op_switch, Word(dump, "dump_op_switch", kSwitch, false));
  NPUMESH_ASSIGN_OR_RETURN(content.debug, Word(dump, "dump_debug", kSwitch, false));
  NPUMESH_ASSIGN_OR_RETURN(content.scene, Word(dump, "dump_scene", kScenes, Scene::kNone));
  NPUMESH_ASSIGN_OR_RETURN(content.level, Word(dump, "dump_level", kLevels, Level::kAll));
  NPUMESH_RETURN_IF_ERROR(CheckKernelData(dump));
  NPUMESH_ASSIGN_OR_RETURN(const std::string steps, Text(dump, "dump_step", ""));
  NPUMESH_ASSIGN_OR_RETURN(settings.steps, StepSet::Parse(steps, true, "dump_step"));
  NPUMESH_RETURN_IF_ERROR(ReadStatistics(dump, &content));
  if (const auto list = dump.find("dump_list"); list != dump.end()) {
    content.has_list = true;
    NPUMESH_ASSIGN_OR_RETURN(settings.choices, ReadDumpList(*list));
  }
  return content;
}

// The forbidden combinations that concern watch mode.
Status CheckWatcher(const Content& content) {
  if (content.debug) {
    return Conflict("dump_scene \"watcher\"", "dump_debug \"on\"", "run once for each");
  }
  if (content.op_switch) {
    return Conflict("dump_scene \"watcher\"", "dump_op_switch \"on\"", "run once for each");
  }
  if (content.settings.mode != DumpMode::kOutput) {
    return Conflict("dump_scene \"watcher\"", "a dump_mode other than \"output\"",
                    "watch mode looks at outputs only");
  }
  if (content.settings.choices.empty()) {
    return Error(Code::kInvalidArgument,
                 "dump_scene \"watcher\" needs watcher_nodes in dump_list, which is empty");
  }
  for (const OperatorChoice& choice : content.settings.choices) {
    if (!choice.model_name.empty()) {
      return Conflict("dump_scene \"watcher\"", "model_name in dump_list",
                      "operators are found by their names");
    }
    if (choice.watched.empty()) {
      return Error(Code::kInvalidArgument,
                   "dump_scene \"watcher\" needs watcher_nodes in each item of dump_list");
    }
  }
  return Status();
}

Status CheckLists(const Content& content) {
  for (const OperatorChoice& choice : content.settings.choices) {
    if (!choice.watched.empty() && content.scene != Scene::kWatcher) {
      return Error(Code::kInvalidArgument, "watcher_nodes needs dump_scene \"watcher\"");
    }
    const std::string_view listed = !choice.type_blacklist.empty()   ? "optype_blacklist"
                                    : !choice.name_blacklist.empty() ? "opname_blacklist"
                                    : !choice.ranges.empty()         ? "opname_range"
                                                                     : "";
    if (!listed.empty() && content.level != Level::kOperator) {
      return Error(Code::kInvalidArgument, "{} needs dump_level \"op\"", listed);
    }
  }
  return Status();
}

// Keys that GE refuses together.
Status CheckCombinations(const Content& content) {
  if (content.scene == Scene::kWatcher) NPUMESH_RETURN_IF_ERROR(CheckWatcher(content));
  if (content.exception_scene() && content.debug) {
    return Conflict("an exception dump_scene", "dump_debug \"on\"", "run once for each");
  }
  if (content.exception_scene() && content.op_switch) {
    return Conflict("an exception dump_scene", "dump_op_switch \"on\"", "run once for each");
  }
  if (content.debug && content.op_switch) {
    return Conflict("dump_debug \"on\"", "dump_op_switch \"on\"", "run once for each");
  }
  if (content.debug && !content.settings.choices.empty()) {
    return Conflict("dump_debug \"on\"", "a dump_list that is not empty",
                    "overflow dump looks at all operators");
  }
  if (content.has_statistics && content.settings.content != DumpContent::kStatistics) {
    return Error(Code::kInvalidArgument, "dump_stats needs dump_data \"stats\"");
  }
  return CheckLists(content);
}

// False: the file asks for no dump.
bool Decide(Content* content) {
  DumpSettings& settings = content->settings;
  settings.watch = content->scene == Scene::kWatcher;
  settings.overflow = content->debug;
  settings.single_operators = content->op_switch;
  if (content->scene == Scene::kBrief) settings.exception = ExceptionDump::kBrief;
  if (content->scene == Scene::kNormal) settings.exception = ExceptionDump::kNormal;
  if (content->scene == Scene::kDetail) {
    Advise(
        "dump_scene \"aic_err_detail_dump\": there is no core to write; "
        "the failed operator is written as with \"aic_err_norm_dump\"");
    settings.exception = ExceptionDump::kNormal;
  }
  if (settings.overflow) settings.mode = DumpMode::kAll;
  if (settings.watch || settings.overflow) return true;
  // An empty list is all models, but beside dump_op_switch it is no model: TorchAir's example of a
  // single-operator dump.
  settings.models = content->has_list && (!settings.choices.empty() || !content->op_switch);
  return settings.dumps_steps() || settings.exception != ExceptionDump::kOff;
}

Status CheckPath(const Content& content) {
  DumpSettings settings = content.settings;
  if (!content.has_path && !settings.dumps_steps()) return Status();
  if (settings.path.empty()) {
    return Error(Code::kInvalidArgument, "dump_path is missing or empty; name an existing folder");
  }
  return CheckDumpFolder(settings.path, "dump_path");
}

Result<json> ParseJson(std::string_view text) {
  bool too_deep = false;
  const json::parser_callback_t limit = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  json document = json::parse(text, limit, /*allow_exceptions=*/false);
  if (too_deep) {
    return Error(Code::kInvalidArgument, "nested deeper than {} levels", kMaxDepth);
  }
  if (document.is_discarded()) {
    return Error(Code::kInvalidArgument, "this is no JSON: {}", JsonErrorIn(std::string(text)));
  }
  if (!document.is_object()) {
    return Error(Code::kInvalidArgument, "expected an object with the key \"dump\"");
  }
  return document;
}

Result<std::optional<DumpSettings>> Parse(std::string_view text) {
  NPUMESH_ASSIGN_OR_RETURN(const json document, ParseJson(text));
  const auto dump = document.find("dump");
  if (dump == document.end()) return std::optional<DumpSettings>();
  if (!dump->is_object()) {
    return Error(Code::kInvalidArgument, "\"dump\" is {}; expected an object", dump->type_name());
  }
  NPUMESH_ASSIGN_OR_RETURN(Content content, ReadKeys(*dump));
  NPUMESH_RETURN_IF_ERROR(CheckCombinations(content));
  if (!Decide(&content)) return std::optional<DumpSettings>();
  NPUMESH_RETURN_IF_ERROR(CheckPath(content));
  if (content.settings.path.empty()) content.settings.path = ".";
  return std::optional<DumpSettings>(std::move(content.settings));
}

}  // namespace

Result<std::optional<DumpSettings>> ReadDumpConfig(const std::string& path) {
  if (!path.ends_with(".json")) {
    return Error(Code::kInvalidArgument,
                 "dump_config_path is \"{}\"; expected an existing file that ends in .json", path);
  }
  const Result<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) return text.status().WithContext("dump_config_path");
  return ParseDumpConfig(*text, path);
}

Result<std::optional<DumpSettings>> ParseDumpConfig(std::string_view text, std::string_view what) {
  Result<std::optional<DumpSettings>> settings = Parse(text);
  if (!settings.ok()) return settings.status().WithContext(what);
  return settings;
}

}  // namespace npumesh
