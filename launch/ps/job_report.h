// What `npumesh ps` and `npumesh attach` say of living jobs, as text and as JSON (docs/json.md).
#ifndef NPUMESH_LAUNCH_PS_JOB_REPORT_H_
#define NPUMESH_LAUNCH_PS_JOB_REPORT_H_

#include <string>
#include <vector>

#include "launch/ps/living_jobs.h"
#include "launch/report/command_report.h"

namespace npumesh {

// A line for each job: number, ranks, since when, whether a rank waits, command.
std::string JobsText(const std::vector<LivingJob>& jobs, const std::vector<JobGlance>& glances);
// Verdict "ok".
CommandReport JobsReport(const std::vector<LivingJob>& jobs, const std::vector<JobGlance>& glances);

// What each rank does; ranks that do the same have one line. Then the verdict on a wait that lasts.
std::string JobText(const LivingJob& job, const JobGlance& glance);
// Verdict "waits" when a wait lasts, else "runs".
CommandReport JobReport(const LivingJob& job, const JobGlance& glance);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PS_JOB_REPORT_H_
