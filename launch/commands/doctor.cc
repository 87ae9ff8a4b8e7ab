// `npumesh doctor`: what is wrong with the machines, and the command that mends it.
#include <algorithm>
#include <cstdlib>

#include "launch/catalog/environment.h"
#include "launch/catalog/option_page.h"
#include "launch/catalog/tables_json.h"
#include "launch/commands/answer.h"
#include "launch/commands/build_facts.h"
#include "launch/commands/fail_together.h"
#include "launch/commands/versions.h"
#include "launch/doctor/cleaning.h"
#include "launch/doctor/doctor.h"
#include "launch/doctor/machine_facts.h"
#include "runtime/base/files/leftovers.h"
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

struct DoctorOptions {
  bool env = false;
  bool as_json = false;
  bool clean = false;
  bool torch = false;
  std::vector<std::string> folders;  // for clean
};

int TellReports(const std::vector<HostReport>& reports, bool as_json) {
  const int code = AnyWrong(reports) ? 1 : 0;
  return Tell("doctor", as_json, Answer{code, ToText(reports), ToReport(reports)});
}

// The ranks could not meet: what this machine alone can say, and why they could not.
int ExamineAlone(const Status& start, bool as_json) {
  HostReport report{"this host", Judge(LookAtMachine(1, NPUMESH_MPI_VERSION, RunningMpi()))};
  report.findings.push_back({"start", Severity::kError, std::string(start.message()),
                             "unset or correct the variable that is named, or see "
                             "docs/architecture.md"});
  return TellReports({report}, as_json);
}

// Collective over all MPI ranks.
Result<int> ExamineTogether(World& world, bool as_json) {
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<RankCircle> circle, RankCircle::Create(world));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<HostReport> reports,
                           ExamineHosts(world, *circle, ThisBuild(), RunningMpi()));
  if (world.rank() == 0) return TellReports(reports, as_json);
  return AnyWrong(reports) ? 1 : 0;
}

// Collective over all MPI ranks.
int Examine(bool as_json) {
  const Result<Env> env = ReadEnvironment();
  if (!env.ok()) return ExamineAlone(env.status(), as_json);
  const Result<std::unique_ptr<World>> world = World::Start(*env);
  if (!world.ok()) return ExamineAlone(world.status(), as_json);
  const Result<int> code = ExamineTogether(**world, as_json);
  if (!code.ok()) return Fail("doctor", code.status());
  const Status end = (*world)->Shutdown();
  return end.ok() ? *code : Fail("doctor", end);
}

int Clean(const std::vector<std::string>& folders) {
  std::vector<CleanedFolder> places;
  for (const std::string& folder : folders) places.push_back({folder, LeftoverDepth::kTree});
  if (places.empty()) places.push_back({".", LeftoverDepth::kFolder});
  return Tell("doctor", false, Answer{0, ToText(CleanUp(places)), {}});
}

}  // namespace

void AddDoctor(CLI::App& app, Action& action) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* doctor =
      app.add_subcommand("doctor", "Say what is wrong with this machine, or with all of a job");
  AddFooter(*doctor, "something is wrong",
            {"npumesh doctor", "npumesh launch -n 4 --hosts a,b -- doctor",
             "npumesh doctor --clean dump/", "npumesh doctor --torch"});
  CLI::Option* env =
      doctor->add_flag("--env", options->env, "Show the variables npumesh reads, as `npumesh env`");
  CLI::Option* json = AddJsonFlag(*doctor, options->as_json);
  CLI::Option* clean =
      doctor
          ->add_flag("--clean", options->clean,
                     "Remove what killed processes of yours left on this host: shared memory, "
                     "half-written files, work folders; list it")
          ->excludes(env)
          ->excludes(json);
  doctor
      ->add_flag(
          "--torch", options->torch,
          "Say which torch and which wheel of torch_npu python3 has, and which of the wheel's "
          "functions npumesh lacks; NPUMESH_PYTHON names another Python")
      ->excludes(env)
      ->excludes(json)
      ->excludes(clean);
  doctor
      ->add_option("folder", options->folders,
                   "With --clean: look through these and all below them; default: the working "
                   "folder alone")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory)
      ->needs(clean);
  doctor->callback([options, &action] {
    action = [options] {
      if (options->torch) return Fail("doctor", RunPythonModule("npumesh.torch_facts"));
      if (options->clean) return Clean(options->folders);
      if (!options->env) return Examine(options->as_json);
      const auto get = [](const char* name) -> const char* { return std::getenv(name); };
      return Tell("env", options->as_json, Answer{0, EnvAsText(get), EnvReport(get)});
    };
  });
}

}  // namespace npumesh
