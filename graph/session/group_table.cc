// `comm_group` of model_relation_config.json (docs/export.md).
#include "graph/session/group_table.h"

#include <unistd.h>

#include "runtime/base/files/mapped_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using Json = nlohmann::json;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

const Json* Member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto member = object.find(key);
  return member == object.end() ? nullptr : &*member;
}

const std::string* StringMember(const Json& object, const char* key) {
  const Json* member = Member(object, key);
  return member == nullptr ? nullptr : member->get_ptr<const std::string*>();
}

// One entry of comm_group, added to `table`. Errors start with the member's name.
Status AddGroup(const Json& entry, GroupTable& table) {
  const std::string* name = StringMember(entry, "group_name");
  if (name == nullptr) return Error(Code::kCorrupt, "group_name: expected a string");
  const std::string* list = StringMember(entry, "group_rank_list");
  if (list == nullptr) {
    return Error(Code::kCorrupt, "group_rank_list of \"{}\": expected a string like \"[0, 1]\"",
                 *name);
  }
  const std::string what = fmt::format("group_rank_list of \"{}\"", *name);
  const std::string_view text = Trim(*list);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    return Error(Code::kCorrupt, "{}: expected \"[0, 1]\" or the like, seen \"{}\"", what,
                 list->substr(0, 80));
  }
  NPUMESH_ASSIGN_OR_RETURN(std::vector<int> ranks,
                           ParseRankList(text.substr(1, text.size() - 2), what));
  const auto [known, added] = table.emplace(*name, ranks);
  if (!added && known->second != ranks) {
    return Error(Code::kCorrupt, "{}: the group is listed twice, with different members", what);
  }
  return Status();
}

}  // namespace

Result<GroupTable> ReadGroupTable(const std::string& folder) {
  const std::string path = folder + "/model_relation_config.json";
  GroupTable table;
  if (::access(path.c_str(), F_OK) != 0) return table;
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const auto* text = reinterpret_cast<const char*>(file->data());
  const Json config = ParseForeignJson({text, file->size()});
  if (!config.is_object()) return Error(Code::kCorrupt, "{}: expected a JSON object", path);
  const Json* groups = Member(config, "comm_group");
  if (groups == nullptr) return table;
  if (!groups->is_array()) return Error(Code::kCorrupt, "{}: comm_group: expected a list", path);
  for (size_t i = 0; i < groups->size(); ++i) {
    NPUMESH_RETURN_IF_ERROR(
        AddGroup((*groups)[i], table).WithContext(fmt::format("{}: comm_group[{}]", path, i)));
  }
  return table;
}

}  // namespace npumesh
