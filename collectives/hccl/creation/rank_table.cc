#include "collectives/hccl/creation/rank_table.h"

#include <algorithm>
#include <thread>

#include "collectives/hccl/creation/rank_table_forms.h"
#include "runtime/base/files/mapped_file.h"
#include "runtime/base/process/wait.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json_error.h"

namespace npumesh {
namespace {

// 32 Ki ranks need about 6 MB.
constexpr uint64_t kLargestFile = uint64_t{64} << 20;

Verdict ReadStatus(const JsonPlace& top, RankTable* table) {
  std::string status;
  NPUMESH_RETURN_IF_REFUSED(ReadString(top, "status", &status));
  if (status != "completed" && status != "initializing") {
    return Refuse(HCCL_E_PARA,
                  "EI0014: \"status\" of the rank table is \"{}\"; expected completed or "
                  "initializing",
                  status);
  }
  table->completed = status == "completed";
  return {};
}

// Ascending, 0 to N-1, each once.
Verdict OrderRanks(RankTable* table) {
  std::sort(table->ranks.begin(), table->ranks.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  for (size_t i = 0; i < table->ranks.size(); ++i) {
    if (table->ranks[i].rank == i) continue;
    return Refuse(HCCL_E_UNAVAIL,
                  "EI0014: the rank table lists {} ranks, whose ids must be 0 to {}, each once; {} "
                  "{}",
                  table->ranks.size(), table->ranks.size() - 1,
                  table->ranks[i].rank < i ? i - 1 : i,
                  table->ranks[i].rank < i ? "comes twice" : "is missing");
  }
  return {};
}

Verdict ReadForm(const JsonPlace& top, RankTable* table) {
  if (table->version.empty() && !top.object.contains("group_list")) {
    return Refuse(HCCL_E_PARA,
                  "EI0014: the rank table has neither \"version\" (1.0, 1.1, 1.2 or 2.0) nor the "
                  "\"group_list\" of the old template");
  }
  if (table->version.empty()) return ReadOldTemplate(top, table);
  if (table->version == "1.0" || table->version == "1.1" || table->version == "1.2") {
    return ReadServerTable(top, table);
  }
  if (table->version == "2.0") return ReadLevelTable(top, table);
  return Refuse(HCCL_E_PARA,
                "EI0014: \"version\" of the rank table is \"{}\"; expected 1.0, 1.1, 1.2 or 2.0",
                table->version);
}

Verdict ReadFile(const std::string& path, std::string* text) {
  const Result<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) {
    return Refuse(HCCL_E_PARA, "EI0004: rank table {}: {}", path, file.status().message());
  }
  if ((*file)->size() > kLargestFile) {
    return Refuse(HCCL_E_PARA, "EI0004: rank table {} has {} bytes; expected at most {}", path,
                  (*file)->size(), kLargestFile);
  }
  text->assign(reinterpret_cast<const char*>((*file)->data()), (*file)->size());
  return {};
}

}  // namespace

Verdict ParseRankTable(std::string_view text, RankTable* table) {
  const Json json = ParseForeignJson(text);
  if (!json.is_object()) {
    return Refuse(HCCL_E_PARA, "EI0004: the rank table is not a JSON object: {}",
                  json.is_discarded() ? JsonErrorIn(std::string(text))
                                      : fmt::format("it is an {}", json.type_name()));
  }
  *table = RankTable();
  const JsonPlace top{json, ""};
  NPUMESH_RETURN_IF_REFUSED(ReadOptionalString(top, "version", &table->version));
  NPUMESH_RETURN_IF_REFUSED(ReadStatus(top, table));
  if (!table->completed) return {};
  NPUMESH_RETURN_IF_REFUSED(ReadForm(top, table));
  return OrderRanks(table);
}

Verdict LoadRankTable(const std::string& path, std::chrono::seconds patience, RankTable* table) {
  if (!path.ends_with(".json")) {
    return Refuse(HCCL_E_PARA, "EI0004: rank table {}: expected a file named *.json", path);
  }
  const Deadline deadline = Deadline::After(patience);
  for (;;) {
    std::string text;
    NPUMESH_RETURN_IF_REFUSED(ReadFile(path, &text));
    Verdict parsed = ParseRankTable(text, table);
    if (!parsed.ok()) return {parsed.result, parsed.why + " (" + path + ")"};
    if (table->completed) return {};
    if (deadline.expired()) {
      return Refuse(HCCL_E_TIMEOUT,
                    "EI0004: rank table {}: \"status\" is still \"initializing\" after {} s "
                    "(HCCL_CONNECT_TIMEOUT)",
                    path, patience.count());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace npumesh
