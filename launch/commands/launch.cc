// `npumesh launch`: starts N ranks of an npumesh sub-command, or of any program, by mpirun.
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "launch/commands/command.h"
#include "launch/mpirun/child_process.h"
#include "launch/mpirun/mpirun_plan.h"
#include "launch/mpirun/rank_output.h"
#include "runtime/base/secure_file.h"
#include "runtime/world/topology.h"

namespace npumesh {
namespace {

Result<std::vector<Host>> HostsOf(const LaunchOptions& options) {
  if (!options.hosts.empty()) return ParseHosts(options.hosts);
  if (options.host_file.empty()) return std::vector<Host>();
  NPUMESH_ASSIGN_OR_RETURN(const std::string content, ReadFile(options.host_file, 1 << 20));
  return ParseHostFile(content, options.host_file);
}

Result<LaunchPlace> FindPlace(std::vector<std::string> sub_commands) {
  LaunchPlace place;
  const char* folders = secure_getenv("PATH");
  NPUMESH_ASSIGN_OR_RETURN(place.mpirun,
                           FindProgram("mpirun", folders == nullptr ? "" : folders, "openmpi-bin"));
  std::error_code error;
  place.self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return Error(Code::kIo, "/proc/self/exe: {}", error.message());
  NPUMESH_ASSIGN_OR_RETURN(const Topology topology, Topology::Detect());
  place.cores = topology.core_count();
  place.root = geteuid() == 0;
  place.sub_commands = std::move(sub_commands);
  return place;
}

// Passes a stream of mpirun on to one of ours.
ByteSink PassOn(RankOutput& lines, std::FILE* to) {
  return [&lines, to](std::string_view bytes) {
    const std::string text = bytes.empty() ? lines.Finish() : lines.Add(bytes);
    std::fwrite(text.data(), 1, text.size(), to);
    std::fflush(to);
  };
}

Result<int> Launch(const LaunchOptions& options, std::vector<std::string> sub_commands) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Host> hosts, HostsOf(options));
  NPUMESH_ASSIGN_OR_RETURN(const LaunchPlace place, FindPlace(std::move(sub_commands)));
  NPUMESH_ASSIGN_OR_RETURN(const Spread spread, SpreadRanks(hosts, options.ranks, place.cores));
  RankOutput output;
  RankOutput errors;
  return RunChild(MpirunWords(options, place, spread), PassOn(output, stdout),
                  PassOn(errors, stderr));
}

}  // namespace

void AddLaunch(CLI::App& app, Action& action) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* launch = app.add_subcommand("launch", "Start N ranks by Open MPI's mpirun");
  launch->footer(
      "Examples:\n"
      "  npumesh launch -n 4 -- run mp/ --steps 10\n"
      "  npumesh launch -n 4 --hosts node1:2,node2:2 -- ./my_hccl_program --size 1M");
  launch->add_option("-n,--ranks", options->ranks, "Number of ranks")
      ->required()
      ->check(CLI::Range(1, 1 << 20));
  CLI::Option* hosts =
      launch->add_option("--hosts", options->hosts, "Hosts and their ranks: h1:2,h2:2");
  launch->add_option("--hostfile", options->host_file, "File of lines \"host slots=N\"")
      ->excludes(hosts);
  launch
      ->add_option("--bind", options->bind,
                   "Cores of a rank: core, numa or none; npumesh binds by hwloc, other programs "
                   "are bound by mpirun")
      ->check(CLI::IsMember({"core", "numa", "none"}));
  launch->add_option("--mpi-arg", options->mpi_args, "One more word for mpirun; may be repeated")
      ->allow_extra_args(false);
  launch
      ->add_option("command", options->command,
                   "After --: a sub-command of npumesh, or a program, and its words")
      ->required();
  launch->callback([options, &app, &action] {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
      names.push_back(command->get_name());
    }
    action = [options, names] {
      const Result<int> code = Launch(*options, names);
      return code.ok() ? *code : Fail("launch", code.status());
    };
  });
}

}  // namespace npumesh
