#include "launch/commands/command.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "launch/commands/fail_together.h"

namespace npumesh {
namespace {

// The sub-command that was being parsed; empty before one was recognised.
std::string ParsedCommand(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? std::string() : parsed.front()->get_name();
}

int UsageFailure(const CLI::App& app, const CLI::ParseError& error) {
  const std::string command = ParsedCommand(app);
  const std::string full = command.empty() ? "npumesh" : "npumesh " + command;
  const Outcome usage = Outcome::Usage(fmt::format("{}; see {} --help", error.what(), full));
  // Every rank was started with the same words: they say so together, once.
  constexpr std::string_view kOfManyRanks[] = {"run", "bench", "export", "topo", "doctor"};
  const auto end = std::end(kOfManyRanks);
  if (std::find(kOfManyRanks, end, command) != end) return FailTogether(command, usage);
  PrintFailure(command, usage.message);
  return usage.exit_code;
}

}  // namespace

void AddCommands(CLI::App& app, Action& action) {
  AddRun(app, action);
  AddLaunch(app, action);
  AddExport(app, action);
  AddValidate(app, action);
  AddTopo(app, action);
  AddGraph(app, action);
  AddDump(app, action);
  AddReplay(app, action);
  AddRecord(app, action);
  AddOps(app, action);
  AddBench(app, action);
  AddConfig(app, action);
  AddEnv(app, action);
  AddDoctor(app, action);
  AddVersion(app, action);
}

int NpumeshMain(int argc, const char* const* argv) {
  CLI::App app("Ascend graphs and HCCL programs, with true numbers, on any MPI cluster", "npumesh");
  app.require_subcommand(1);
  app.footer("Example:\n  npumesh launch -n 4 -- run mp/ --steps 10");
  Action action;
  AddCommands(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return UsageFailure(app, error);
    return app.exit(error);  // --help
  }
  return action();
}

void PrintFailure(std::string_view command, std::string_view message) {
  // One write, so that the lines of several ranks never interleave.
  const std::string line = command.empty() ? fmt::format("npumesh: {}\n", message)
                                           : fmt::format("npumesh {}: {}\n", command, message);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

int Fail(std::string_view command, const Status& status) {
  const Outcome outcome = Outcome::From(status);
  PrintFailure(command, outcome.message);
  return outcome.exit_code;
}

}  // namespace npumesh
