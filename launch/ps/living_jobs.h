// Jobs that run now: found among the processes of this host, and observed without their taking
// notice (runtime/world/rank_window.h).
//
// Thread-safety: pure functions of what the system shows. None waits for a rank.
#ifndef NPUMESH_LAUNCH_PS_LIVING_JOBS_H_
#define NPUMESH_LAUNCH_PS_LIVING_JOBS_H_

#include <map>
#include <string>
#include <vector>

#include "collectives/contract/hang_verdict.h"
#include "runtime/base/status.h"
#include "runtime/world/rank_window.h"

namespace npumesh {

// The ranks on this host of one job.
struct LivingJob {
  // The process that started all of them: `npumesh launch` where there is one, else mpirun or
  // torchrun; of a rank that a shell has started, the rank.
  int number = 0;
  std::string command;  // of the lowest rank, blanks between its words
  double seconds = 0;   // since that process began
  int world_size = 1;
  std::vector<RankWindow> ranks;  // by rank, at least one
};

// Of this user; of all users for root. By number.
std::vector<LivingJob> LivingJobs();

// The job that `name` means: the number of a job, of a process of one of its ranks, or of one that
// started its ranks and those of no other job; or the folder of its flight records. kNotFound: no
// such job runs (any more); kInvalidArgument: several do.
Result<LivingJob> FindLivingJob(const std::string& name);

// A job at one moment.
struct JobGlance {
  std::map<int, RankGlance> ranks;
  WaitScene scene;  // of no rank
  std::vector<Wait> waits;
  double waited = 0;    // seconds of the longest wait for another rank of this host; 0: none
  std::string verdict;  // about it, as the rank itself says it; empty: no wait lasts
  std::vector<int> look_first_at;  // the ranks that explain it
};

// A wait that is shorter is the daily business of ranks.
inline constexpr double kLastingSeconds = 1;

JobGlance LookAt(const LivingJob& job);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PS_LIVING_JOBS_H_
