#include "graph/config/mix_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json_error.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr uint64_t kMostMixListBytes = uint64_t{1} << 20;

Status WrongPart(const std::string& path, std::string_view member, const json& seen,
                 std::string_view expected) {
  return Error(Code::kInvalidArgument, "{}: {}: expected {}, found {}", path, member, expected,
               seen.dump(-1, ' ', false, json::error_handler_t::replace));
}

Result<std::vector<std::string>> OperatorTypes(const std::string& path, const std::string& member,
                                               const json& value) {
  constexpr std::string_view kExpected = "a list of operator types, as [\"MatMul\", \"Add\"]";
  if (!value.is_array()) return WrongPart(path, member, value, kExpected);
  std::vector<std::string> types;
  for (const json& each : value) {
    if (!each.is_string() || each.get<std::string>().empty()) {
      return WrongPart(path, member, each, kExpected);
    }
    types.push_back(each.get<std::string>());
  }
  return types;
}

Result<MixListChanges> ReadChanges(const std::string& path, const std::string& list,
                                   const json& value) {
  constexpr std::string_view kExpected = "an object with \"to-add\" and \"to-remove\"";
  if (!value.is_object()) return WrongPart(path, list, value, kExpected);
  MixListChanges changes;
  for (const auto& [member, types] : value.items()) {
    const std::string name = fmt::format("{}.{}", list, member);
    if (member == "to-add") {
      NPUMESH_ASSIGN_OR_RETURN(changes.add, OperatorTypes(path, name, types));
    } else if (member == "to-remove") {
      NPUMESH_ASSIGN_OR_RETURN(changes.remove, OperatorTypes(path, name, types));
    } else {
      return WrongPart(path, list, member, kExpected);
    }
  }
  return changes;
}

bool Contains(const std::vector<std::string>& list, const std::string& type) {
  return std::find(list.begin(), list.end(), type) != list.end();
}

Status CheckContradictions(const std::string& path, const MixList& lists) {
  for (const std::string& type : lists.black.add) {
    if (!Contains(lists.white.add, type)) continue;
    return Error(Code::kInvalidArgument,
                 "{}: \"{}\" is added to black-list and to white-list; leave it out of one", path,
                 type);
  }
  for (const auto* list : {&lists.black, &lists.white}) {
    for (const std::string& type : list->add) {
      if (!Contains(list->remove, type)) continue;
      return Error(Code::kInvalidArgument,
                   "{}: \"{}\" is in to-add and to-remove of {}; leave it out of one", path, type,
                   list == &lists.black ? "black-list" : "white-list");
    }
  }
  return Status();
}

}  // namespace

Result<MixList> ReadMixList(const std::string& path) {
  constexpr std::string_view kExpected = "\"black-list\" and \"white-list\"";
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostMixListBytes));
  const json document = ParseForeignJson(text);
  if (!document.is_object()) {
    return Error(Code::kInvalidArgument, "{}: expected a JSON object with {}, found {}", path,
                 kExpected,
                 document.is_discarded() ? "text that is no JSON: " + JsonErrorIn(text)
                                         : std::string(document.type_name()));
  }
  MixList lists;
  for (const auto& [member, value] : document.items()) {
    if (member != "black-list" && member != "white-list") {
      return Error(Code::kInvalidArgument, "{}: expected {}, found \"{}\"", path, kExpected,
                   member);
    }
    MixListChanges& list = member == "black-list" ? lists.black : lists.white;
    NPUMESH_ASSIGN_OR_RETURN(list, ReadChanges(path, member, value));
  }
  NPUMESH_RETURN_IF_ERROR(CheckContradictions(path, lists));
  return lists;
}

}  // namespace npumesh
