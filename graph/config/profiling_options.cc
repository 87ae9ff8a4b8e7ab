// profiling_options: the list of documented words, and the JSON of newer releases.

#include "graph/config/system_options.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/json_text.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

// Training data that must be "on" if it is named at all.
Result<bool> IsOn(const json& options, const char* key, bool only_on) {
  const auto found = options.find(key);
  if (found == options.end()) return false;
  if (*found == "on") return true;
  if (!only_on && (*found == "off" || *found == "l0" || *found == "l1")) return *found != "off";
  return Error(Code::kInvalidArgument, "{} is {}, expected \"on\"", key, Quotable(found->dump()));
}

Result<ProfilingChoice> ParseJson(const std::string& text) {
  const json options = ParseForeignJson(text);
  if (!options.is_object()) return Error(Code::kInvalidArgument, "not a JSON object");
  ProfilingChoice choice;
  NPUMESH_ASSIGN_OR_RETURN(choice.training_trace, IsOn(options, "training_trace", true));
  NPUMESH_ASSIGN_OR_RETURN(choice.task_trace, IsOn(options, "task_trace", false));
  choice.output = TextMember(options, "output");
  choice.fp_point = TextMember(options, "fp_point");
  choice.bp_point = TextMember(options, "bp_point");
  return choice;
}

Result<ProfilingChoice> ParseList(std::string_view text) {
  ProfilingChoice choice;
  for (;;) {
    const size_t end = std::min(text.find(':'), text.size());
    const std::string_view item = text.substr(0, end);
    if (item == "training_trace") {
      choice.training_trace = true;
    } else if (item == "task_trace") {
      choice.task_trace = true;
    } else if (item == "op_trace") {
      choice.op_trace = true;
    } else {
      return Error(Code::kInvalidArgument, "\"{}\" is none of training_trace, task_trace, op_trace",
                   item);
    }
    if (end == text.size()) return choice;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Result<ProfilingChoice> ParseProfilingOptions(const std::string& text) {
  NPUMESH_ASSIGN_OR_RETURN(ProfilingChoice choice,
                           text.starts_with("{") ? ParseJson(text) : ParseList(text));
  if (choice.op_trace && (choice.training_trace || choice.task_trace)) {
    return Error(Code::kInvalidArgument, "op_trace stands alone");
  }
  choice.training_trace = choice.training_trace || choice.task_trace;
  return choice;
}

}  // namespace npumesh
