#include "graph/tuning/tune_selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/ops/core/operator.h"
#include "runtime/base/advice.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json_error.h"

namespace npumesh {
namespace {

constexpr uint64_t kMostSelectionBytes = uint64_t{1} << 24;

bool Contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

Status WrongMember(const std::string& path, std::string_view member, const nlohmann::json& seen,
                   std::string_view expected) {
  return Error(Code::kInvalidArgument, "{}: {}: expected {}, found {}", path, member, expected,
               seen.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Result<std::vector<std::string>> ReadTexts(const std::string& path, std::string_view member,
                                           const nlohmann::json& value) {
  constexpr std::string_view kExpected = "a list of texts, as [\"MatMul\", \"Conv2D\"]";
  if (!value.is_array()) return WrongMember(path, member, value, kExpected);
  std::vector<std::string> texts;
  for (const nlohmann::json& each : value) {
    if (!each.is_string()) return WrongMember(path, member, each, kExpected);
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

Status TakeMember(const std::string& path, const std::string& member, const nlohmann::json& value,
                  TuneSelection& selection) {
  if (member == "tune_ops_name") {
    NPUMESH_ASSIGN_OR_RETURN(selection.names, ReadTexts(path, member, value));
  } else if (member == "tune_ops_type") {
    NPUMESH_ASSIGN_OR_RETURN(selection.types, ReadTexts(path, member, value));
  } else if (member == "tune_optimization_level") {
    if (value != "O1" && value != "O2") return WrongMember(path, member, value, "\"O1\" or \"O2\"");
    selection.quick = value == "O1";
  } else {
    Advise(fmt::format(
        "{}: {} has no effect; known are tune_ops_name, tune_ops_type and tune_optimization_level",
        path, member));
  }
  return Status();
}

}  // namespace

bool TuneSelection::Has(const TunableStep& step) const {
  if (names.empty() && types.empty()) return true;
  return Contains(names, step.name) || Contains(types, step.type) ||
         std::any_of(step.operators.begin(), step.operators.end(), [this](const auto& each) {
           const Node& node = each.context->node();
           return Contains(names, node.name) || Contains(types, node.type);
         });
}

Result<TuneSelection> ReadTuneSelection(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostSelectionBytes));
  const nlohmann::json document = ParseForeignJson(text);
  if (!document.is_object()) {
    return Error(Code::kInvalidArgument,
                 "{}: expected a JSON object as {{\"tune_ops_type\": [\"MatMul\"]}}, found {}",
                 path,
                 document.is_discarded() ? "text that is no JSON: " + JsonErrorIn(text)
                                         : std::string(document.type_name()));
  }
  TuneSelection selection;
  for (const auto& [member, value] : document.items()) {
    NPUMESH_RETURN_IF_ERROR(TakeMember(path, member, value, selection));
  }
  return selection;
}

}  // namespace npumesh
