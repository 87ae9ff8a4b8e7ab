#include "launch/record/record_page.h"

#include <fmt/format.h>

#include "launch/record/timeline.h"
#include "launch/report/command_report.h"
#include "runtime/base/text/json.h"

namespace npumesh {

std::string RecordPage(const std::vector<RankRecord>& records, const Joined& joined,
                       const PageOrigin& origin) {
  const nlohmann::json facts = {{"command", origin.command},
                                {"version", origin.version},
                                {"written", origin.written},
                                {"problems", joined.problems},
                                {"report", RecordReport(records, joined).details}};
  std::string data = facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  data.pop_back();
  // The trace is a text already, and may be large.
  data += fmt::format(",\"trace\":{}}}", TimelineJson(records, joined));
  return HtmlPage({.title = fmt::format("npumesh record: {} of {} ranks", records.size(),
                                        records[0].world_size),
                   .texts = RecordTexts(),
                   .data = data});
}

}  // namespace npumesh
