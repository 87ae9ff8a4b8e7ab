#include "launch/record/record_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "launch/record/timeline.h"
#include "launch/report/command_report.h"
#include "runtime/base/text/json.h"

namespace npumesh {

std::string RecordPage(const std::vector<RankRecord>& records, const Joined& joined,
                       const PageOrigin& origin) {
  // What a browser opens within a second; --timeline has all.
  constexpr uint64_t kMostCalls = 20'000;
  const uint64_t most = std::max<uint64_t>(kMostCalls / records.size(), 1);
  uint64_t left_out = 0;
  for (const RankRecord& record : records) {
    left_out += record.calls.size() - std::min<uint64_t>(record.calls.size(), most);
  }
  const nlohmann::json facts = {
      {"command", origin.command}, {"version", origin.version},
      {"written", origin.written}, {"problems", joined.problems},
      {"left_out", left_out},      {"report", RecordReport(records, joined).details}};
  std::string data = facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  data.pop_back();
  // The trace is a text already, and may be large.
  data += fmt::format(",\"trace\":{}}}", TimelineJson(records, joined, most));
  return HtmlPage({.title = fmt::format("npumesh record: {} of {} ranks", records.size(),
                                        records[0].world_size),
                   .texts = RecordTexts(),
                   .data = data});
}

}  // namespace npumesh
