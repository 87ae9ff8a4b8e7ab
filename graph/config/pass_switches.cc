#include "graph/config/pass_switches.h"

#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using nlohmann::json;
using Switches = std::map<std::string, bool, std::less<>>;

constexpr uint64_t kLargestSwitchFile = uint64_t{1} << 20;

Result<bool> IsOn(std::string_view state, std::string_view pass) {
  if (state == "on") return true;
  if (state == "off") return false;
  return Error(Code::kInvalidArgument, "pass \"{}\" is \"{}\", expected \"on\" or \"off\"", pass,
               state);
}

// "PassName:on" into `switches`.
Status AddSwitch(std::string_view text, Switches& switches) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0) {
    return Error(Code::kInvalidArgument, "\"{}\" is no PassName:on or PassName:off", text);
  }
  const std::string_view pass = text.substr(0, colon);
  NPUMESH_ASSIGN_OR_RETURN(const bool on, IsOn(text.substr(colon + 1), pass));
  if (switches.emplace(pass, on).second) return Status();
  return Error(Code::kInvalidArgument, "pass \"{}\" stands there twice", pass);
}

Status AddParts(std::string_view text, char separator, Switches& switches) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, end);
    if (part.ends_with('\r')) part.remove_suffix(1);
    if (!part.empty()) NPUMESH_RETURN_IF_ERROR(AddSwitch(part, switches));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return Status();
}

// One object of Switch: pass name -> state.
Status AddObject(const json& object, std::string_view name, Switches& switches) {
  if (!object.is_object()) {
    return Error(Code::kInvalidArgument, "Switch.{} is no object of passes", name);
  }
  for (const auto& [pass, state] : object.items()) {
    if (!state.is_string()) {
      return Error(Code::kInvalidArgument, "pass \"{}\": expected \"on\" or \"off\"", pass);
    }
    NPUMESH_ASSIGN_OR_RETURN(const bool on, IsOn(state.get<std::string>(), pass));
    switches.insert_or_assign(pass, on);
  }
  return Status();
}

Status AddJson(const json& root, Switches& switches, std::set<std::string, std::less<>>& kept) {
  const json none = json::object();
  const auto part = [&none](const json& object, const char* key) -> const json& {
    const auto found = object.find(key);
    return found == object.end() ? none : *found;
  };
  const json& groups = part(root, "Switch");
  if (!groups.is_object()) return Error(Code::kInvalidArgument, "Switch is no object");
  // Passes of npumesh are passes over graphs; UBFusion fuses kernels.
  NPUMESH_RETURN_IF_ERROR(AddObject(part(groups, "GraphFusion"), "GraphFusion", switches));
  Switches kernels;
  NPUMESH_RETURN_IF_ERROR(AddObject(part(groups, "UBFusion"), "UBFusion", kernels));
  for (const json& pass : part(root, "ExceptionalPassOfO1Level")) {
    if (!pass.is_string()) {
      return Error(Code::kInvalidArgument, "ExceptionalPassOfO1Level is no list of names");
    }
    kept.insert(pass.get<std::string>());
  }
  return Status();
}

}  // namespace

Result<PassSwitches> PassSwitches::Parse(std::string_view text, std::string_view file) {
  PassSwitches switches;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) {
    return Error(Code::kInvalidArgument, "{}: the switch file is empty", file);
  }
  const json root = ParseForeignJson(text);
  if (text[first] == '{' && !root.is_object()) {
    return Error(Code::kInvalidArgument, "{}: begins like JSON, but is not JSON", file);
  }
  const Status read = root.is_object() ? AddJson(root, switches.file_, switches.kept_by_o1_)
                                       : AddParts(text, '\n', switches.file_);
  NPUMESH_RETURN_IF_ERROR(read.WithContext(file));
  const auto all = switches.file_.find("ALL");
  if (all != switches.file_.end()) switches.all_ = all->second;
  return switches;
}

Result<PassSwitches> PassSwitches::From(const CompilerConfig& config) {
  PassSwitches switches;
  if (const std::optional<std::string>& file = config.fusion_config.fusion_switch_file) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string text, ReadFile(*file, kLargestSwitchFile));
    NPUMESH_ASSIGN_OR_RETURN(switches, Parse(text, *file));
  }
  if (const std::optional<std::string>& option = config.ge_config.optimization_switch) {
    NPUMESH_RETURN_IF_ERROR(
        AddParts(*option, ';', switches.option_).WithContext("ge_config.optimization_switch"));
  }
  switches.o1_ = config.ge_config.oo_level == "O1";
  return switches;
}

bool PassSwitches::On(std::string_view pass) const {
  if (const auto said = option_.find(pass); said != option_.end()) return said->second;
  if (kept_by_o1_.contains(pass)) return true;
  if (o1_) return false;
  if (const auto said = file_.find(pass); said != file_.end()) return said->second;
  return all_.value_or(true);
}

}  // namespace npumesh
