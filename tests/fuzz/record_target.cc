#include <nlohmann/json.hpp>

#include "launch/record/timeline.h"
#include "tests/fuzz/targets.h"
#include "tests/unit/record/records.h"

namespace npumesh::fuzz {

std::string CheckRecord(std::string_view bytes) {
  const Result<RankRecord> record = ParseRecord(bytes, "fuzz.npr");
  if (!record.ok()) return FlawOf(record.status());
  std::vector<RankRecord> records = {*record};
  if (record->rank != 0) {
    records.insert(records.begin(), testing::RecordOf(0, record->world_size));
    testing::AddGroup(records[0], testing::kTp, "tp", "0-1");
    testing::AddCall(records[0], testing::kTp, 1, 5000);
  }
  const Result<Joined> joined = Join(records);
  if (!joined.ok()) return FlawOf(joined.status());
  if (JoinedText(records, *joined).empty()) return "no text";
  return nlohmann::json::accept(TimelineJson(records, *joined)) ? "" : "a timeline that is no JSON";
}

}  // namespace npumesh::fuzz
