// What programs have found beside a card, as the file of NPUMESH_CARD_REPORT keeps it: a JSON
// object on each line, by each process of a job.
#ifndef NPUMESH_LAUNCH_CARD_PROGRAM_REPORT_H_
#define NPUMESH_LAUNCH_CARD_PROGRAM_REPORT_H_

#include <string>
#include <string_view>

#include "launch/report/command_report.h"
#include "runtime/base/status.h"

namespace npumesh {

// The findings in the order of the file, each once; verdict "taken", "refused" or "wrong" as
// CheckCalls has it. Error (kCorrupt): a line is no finding.
Result<CommandReport> ProgramReport(std::string_view text);
std::string ProgramReportText(const CommandReport& report);
// A failed case for each finding, or one that has passed. `name` is that of the suite.
std::string ProgramReportJunit(const CommandReport& report, const std::string& name);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_CARD_PROGRAM_REPORT_H_
