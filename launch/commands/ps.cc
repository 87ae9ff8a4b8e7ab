// `npumesh ps` and `npumesh attach`: what jobs of this host do now.
#include "launch/commands/answer.h"
#include "launch/ps/job_report.h"
#include "launch/ps/living_jobs.h"
#include "launch/ps/stack.h"

namespace npumesh {
namespace {

struct AttachOptions {
  std::string job;
  int stack = -1;  // the rank whose stack is asked for
  bool as_json = false;
};

Result<Answer> ListJobs() {
  const std::vector<LivingJob> jobs = LivingJobs();
  std::vector<JobGlance> glances;
  for (const LivingJob& job : jobs) glances.push_back(LookAt(job));
  Answer answer{0, JobsText(jobs, glances), JobsReport(jobs, glances)};
  if (!jobs.empty()) {
    answer.next = fmt::format("npumesh attach {}: what each of its ranks does", jobs[0].number);
  }
  return answer;
}

Result<Answer> Attach(const AttachOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const LivingJob job, FindLivingJob(options.job));
  const JobGlance glance = LookAt(job);
  Answer answer{glance.verdict.empty() ? 0 : 1, JobText(job, glance), JobReport(job, glance)};
  if (options.stack < 0) {
    if (glance.look_first_at.size() == 1) {
      answer.next = fmt::format("npumesh attach {} --stack {}: where its threads are", job.number,
                                glance.look_first_at[0]);
    }
    return answer;
  }
  for (const RankWindow& rank : job.ranks) {
    if (rank.rank() != options.stack) continue;
    NPUMESH_ASSIGN_OR_RETURN(const std::string stack, StackOf(rank.process()));
    answer.text += fmt::format("threads of rank {}:\n{}", rank.rank(), stack);
    answer.report.details["stack"] = {{"rank", rank.rank()}, {"text", stack}};
    return answer;
  }
  return Error(Code::kInvalidArgument, "--stack {}: no such rank of job {} runs on this host",
               options.stack, job.number);
}

}  // namespace

void AddPs(CLI::App& app, Action& action) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* ps = app.add_subcommand("ps", "List the jobs that run on this host");
  AddFooter(*ps, "", {"npumesh ps", "npumesh ps --json"});
  AddJsonFlag(*ps, *as_json);
  ps->callback(
      [as_json, &action] { action = [as_json] { return Tell("ps", *as_json, ListJobs()); }; });
}

void AddAttach(CLI::App& app, Action& action) {
  auto options = std::make_shared<AttachOptions>();
  CLI::App* attach = app.add_subcommand("attach", "Say what each rank of a job that runs does now");
  AddFooter(*attach, "a rank has waited for another one for a second",
            {"npumesh attach 4711", "npumesh attach records/", "npumesh attach 4711 --stack 2"},
            "Ends with 3 when the job has ended. The job takes no notice; only --stack stops one "
            "rank, while a debugger reads it.\n");
  attach
      ->add_option("job", options->job,
                   "Its number (npumesh ps), a process of it, or the folder of NPUMESH_RECORD")
      ->type_name("JOB")
      ->required();
  attach
      ->add_option("--stack", options->stack,
                   "Also the stack of the threads of this rank, by py-spy, eu-stack or gdb")
      ->type_name("RANK")
      ->check(CLI::Range(0, 1 << 20));
  AddJsonFlag(*attach, options->as_json);
  attach->callback([options, &action] {
    action = [options] { return Tell("attach", options->as_json, Attach(*options)); };
  });
}

}  // namespace npumesh
