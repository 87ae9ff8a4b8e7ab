// What the flight records of a job say, for programs: `npumesh record --json` (docs/json.md).
#ifndef NPUMESH_LAUNCH_RECORD_JOINED_JSON_H_
#define NPUMESH_LAUNCH_RECORD_JOINED_JSON_H_

#include <vector>

#include "launch/record/record_join.h"
#include "launch/report/command_report.h"

namespace npumesh {

// Verdict "good" or "wrong".
CommandReport RecordReport(const std::vector<RankRecord>& records, const Joined& joined);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_JOINED_JSON_H_
