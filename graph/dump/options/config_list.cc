#include "graph/dump/options/config_list.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "runtime/base/advice.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr size_t kMaxBlackEntries = 100;
constexpr std::array<std::string_view, 6> kItemKeys = {
    "model_name", "layer", "watcher_nodes", "optype_blacklist", "opname_blacklist", "opname_range"};

// A string that is not empty.
Result<std::string> Name(const json& value, std::string_view key) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    return Error(Code::kInvalidArgument, "{} is {}; expected a string that is not empty", key,
                 Quotable(value.dump()));
  }
  return value.get<std::string>();
}

// A list of names that is not empty; no key, no names.
Result<std::vector<std::string>> NameList(const json& item, std::string_view key) {
  std::vector<std::string> names;
  const auto found = item.find(key);
  if (found == item.end()) return names;
  if (!found->is_array() || found->empty()) {
    return Error(Code::kInvalidArgument, "{} is {}; expected a list that is not empty", key,
                 Quotable(found->dump()));
  }
  for (const json& value : *found) {
    NPUMESH_ASSIGN_OR_RETURN(std::string name, Name(value, key));
    names.push_back(std::move(name));
  }
  return names;
}

// "input0", "output12"; nullopt for anything else.
std::optional<BlackTensor> ParsePosition(std::string_view text) {
  BlackTensor tensor;
  tensor.input = text.starts_with("input");
  if (!tensor.input && !text.starts_with("output")) return std::nullopt;
  text.remove_prefix(tensor.input ? 5 : 6);
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  const Result<int64_t> index = ParseInt(text, 0, std::numeric_limits<int>::max(), "pos");
  if (!index.ok()) return std::nullopt;
  tensor.index = static_cast<int>(*index);
  return tensor;
}

Result<BlackEntry> ReadBlackEntry(const json& value, std::string_view key) {
  if (!value.is_object() || !value.contains("name")) {
    return Error(Code::kInvalidArgument, "{} holds {}; expected objects with \"name\" and \"pos\"",
                 key, Quotable(value.dump()));
  }
  BlackEntry entry;
  NPUMESH_ASSIGN_OR_RETURN(entry.name, Name(value["name"], "name"));
  const auto positions = value.find("pos");
  if (positions == value.end() || positions->empty()) return entry;
  if (!positions->is_array()) {
    return Error(Code::kInvalidArgument, "{}: pos is {}; expected a list", key,
                 Quotable(positions->dump()));
  }
  for (const json& position : *positions) {
    const auto tensor =
        position.is_string() ? ParsePosition(position.get<std::string>()) : std::nullopt;
    if (tensor) {
      entry.tensors.push_back(*tensor);
    } else {
      Advise(fmt::format("{}: pos {} of \"{}\" is neither inputN nor outputN and has no effect",
                         key, Quotable(position.dump()), entry.name));
    }
  }
  // Nothing but unknown positions must not black out the operator as an empty list does.
  if (entry.tensors.empty()) entry.tensors.push_back({false, -1});
  return entry;
}

Result<std::vector<BlackEntry>> ReadBlacklist(const json& item, std::string_view key) {
  std::vector<BlackEntry> entries;
  const auto found = item.find(key);
  if (found == item.end()) return entries;
  if (!found->is_array() || found->size() > kMaxBlackEntries) {
    return Error(Code::kInvalidArgument, "{} is no list of at most {} objects", key,
                 kMaxBlackEntries);
  }
  for (const json& value : *found) {
    NPUMESH_ASSIGN_OR_RETURN(BlackEntry entry, ReadBlackEntry(value, key));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::vector<OperatorRange>> ReadRanges(const json& item) {
  std::vector<OperatorRange> ranges;
  const auto found = item.find("opname_range");
  if (found == item.end()) return ranges;
  if (!item.contains("model_name")) {
    return Error(Code::kInvalidArgument, "opname_range needs model_name beside it");
  }
  if (!found->is_array()) {
    return Error(Code::kInvalidArgument, "opname_range is {}; expected a list",
                 Quotable(found->dump()));
  }
  for (const json& value : *found) {
    if (!value.is_object() || !value.contains("begin") || !value.contains("end")) {
      return Error(Code::kInvalidArgument,
                   "opname_range holds {}; expected objects with \"begin\" and \"end\"",
                   Quotable(value.dump()));
    }
    OperatorRange range;
    NPUMESH_ASSIGN_OR_RETURN(range.begin, Name(value["begin"], "begin"));
    NPUMESH_ASSIGN_OR_RETURN(range.end, Name(value["end"], "end"));
    ranges.push_back(std::move(range));
  }
  return ranges;
}

Result<OperatorChoice> ReadChoice(const json& item) {
  if (!item.is_object()) {
    return Error(Code::kInvalidArgument, "this is {}; expected an object", Quotable(item.dump()));
  }
  for (const auto& [key, value] : item.items()) {
    if (std::find(kItemKeys.begin(), kItemKeys.end(), key) != kItemKeys.end()) continue;
    return Error(Code::kInvalidArgument, "\"{}\" is no key of an item; the keys are {}", key,
                 fmt::join(kItemKeys, ", "));
  }
  OperatorChoice choice;
  if (item.contains("model_name")) {
    NPUMESH_ASSIGN_OR_RETURN(choice.model_name, Name(item["model_name"], "model_name"));
  }
  NPUMESH_ASSIGN_OR_RETURN(choice.layers, NameList(item, "layer"));
  NPUMESH_ASSIGN_OR_RETURN(choice.watched, NameList(item, "watcher_nodes"));
  NPUMESH_ASSIGN_OR_RETURN(choice.type_blacklist, ReadBlacklist(item, "optype_blacklist"));
  NPUMESH_ASSIGN_OR_RETURN(choice.name_blacklist, ReadBlacklist(item, "opname_blacklist"));
  NPUMESH_ASSIGN_OR_RETURN(choice.ranges, ReadRanges(item));
  return choice;
}

}  // namespace

Result<std::vector<OperatorChoice>> ReadDumpList(const json& list) {
  if (!list.is_array()) {
    return Error(Code::kInvalidArgument, "dump_list is {}; expected a list", list.type_name());
  }
  std::vector<OperatorChoice> choices;
  if (list.size() == 1 && list[0].is_object() && list[0].empty()) return choices;
  for (size_t i = 0; i < list.size(); ++i) {
    Result<OperatorChoice> choice = ReadChoice(list[i]);
    if (!choice.ok()) return choice.status().WithContext(fmt::format("dump_list[{}]", i));
    choices.push_back(*std::move(choice));
  }
  return choices;
}

}  // namespace npumesh
