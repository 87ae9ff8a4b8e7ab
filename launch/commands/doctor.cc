// `npumesh doctor`: what is wrong with the machines, and the command that mends it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "launch/commands/build_facts.h"
#include "launch/commands/command.h"
#include "launch/commands/fail_together.h"
#include "launch/commands/versions.h"
#include "launch/doctor/doctor.h"
#include "launch/doctor/machine_facts.h"
#include "launch/view/option_page.h"
#include "runtime/world/mpi_transport.h"

namespace npumesh {
namespace {

// The first line: some MPI libraries tell their whole configuration.
std::string RunningMpi() {
  const std::string text = MpiLibraryVersion();
  return text.substr(0, text.find('\n'));
}

BuildFacts ThisBuild() {
  std::string versions = VersionsAsText();
  for (size_t at = 0; (at = versions.find('\n', at)) != std::string::npos;) {
    versions.replace(at, 1, at + 1 == versions.size() ? "" : ", ");
  }
  versions.erase(std::unique(versions.begin(), versions.end(),
                             [](char a, char b) { return a == ' ' && b == ' '; }),
                 versions.end());
  return {NPUMESH_MPI_VERSION, versions};
}

void PrintReports(const std::vector<HostReport>& reports) {
  const std::string text = ToText(reports);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// The ranks could not meet: what this machine alone can say, and why they could not.
int ExamineAlone(const Status& start) {
  HostReport report{"this host", Judge(LookAtMachine(1, NPUMESH_MPI_VERSION, RunningMpi()))};
  report.findings.push_back({"start", Health::kWrong, std::string(start.message()),
                             "unset or correct the variable that is named, or see "
                             "docs/architecture.md"});
  PrintReports({report});
  return 1;
}

// Collective over all MPI ranks.
Result<int> ExamineTogether(World& world) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<RankCircle> circle, RankCircle::Create(world));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<HostReport> reports,
                           ExamineHosts(world, *circle, ThisBuild(), RunningMpi()));
  if (world.rank() == 0) PrintReports(reports);
  return AnyWrong(reports) ? 1 : 0;
}

// Collective over all MPI ranks.
int Examine() {
  const Result<Env> env = Env::FromProcess();
  if (!env.ok()) return ExamineAlone(env.status());
  const Result<std::unique_ptr<World>> world = World::Start(*env);
  if (!world.ok()) return ExamineAlone(world.status());
  const Result<int> code = ExamineTogether(**world);
  if (!code.ok()) return Fail("doctor", code.status());
  const Status end = (*world)->Shutdown();
  return end.ok() ? *code : Fail("doctor", end);
}

}  // namespace

void AddDoctor(CLI::App& app, Action& action) {
  auto env = std::make_shared<bool>(false);
  CLI::App* doctor =
      app.add_subcommand("doctor", "Say what is wrong with this machine, or with all of a job");
  doctor->footer(
      "Exit codes: 0 nothing is wrong, 1 something is.\n"
      "Examples:\n  npumesh doctor\n  npumesh launch -n 4 --hosts a,b -- doctor");
  doctor->add_flag("--env", *env, "Show the variables npumesh reads, as `npumesh env`");
  doctor->callback([env, &action] {
    action = [env] {
      if (!*env) return Examine();
      const std::string text =
          EnvAsText([](const char* name) -> const char* { return std::getenv(name); });
      std::fwrite(text.data(), 1, text.size(), stdout);
      return 0;
    };
  });
}

}  // namespace npumesh
