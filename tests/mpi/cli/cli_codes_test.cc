// Exit codes are a contract: the table of the README, alone and under `npumesh launch`.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "launch/mpirun/child_process.h"
#include "runtime/base/process/process_state.h"
#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// `$N` in the script is the npumesh command.
CommandRun RunScript(const std::string& script) {
  CommandRun run;
  const Result<int> code = RunChild(
      {"/bin/sh", "-c", "N=" NPUMESH_COMMAND "; " + script},
      [&](std::string_view bytes) { run.out += bytes; },
      [&](std::string_view bytes) { run.err += bytes; });
  run.code = code.ok() ? *code : -1;
  return run;
}

TEST(CliCodes, OutputThatCannotBeWrittenIsAnErrorOfEveryCommand) {
  const TestFolder folder;
  folder.PutModels(1);
  const std::string model = folder / "m0.air";
  for (const std::string& words :
       {std::string("ops"), std::string("env"), std::string("version"), std::string("--help"),
        std::string("run --help"), std::string("doctor"), std::string("config"), "graph " + model,
        "run " + model}) {
    const CommandRun full = RunScript("$N " + words + " > /dev/full");
    EXPECT_EQ(full.code, 4) << words << full.err;
    EXPECT_THAT(full.err, HasSubstr("standard output cannot be written")) << words;
    const CommandRun closed = RunScript("$N " + words + " >&-");
    EXPECT_EQ(closed.code, 4) << words << closed.err;
  }
}

TEST(CliCodes, OutputThatCannotBeWrittenIsAnErrorOfALaunch) {
  const TestFolder folder;
  folder.PutModels(2);
  const CommandRun run = RunScript("$N launch -n 2 -- run " + folder.path() + " > /dev/full");
  EXPECT_EQ(run.code, 4) << run.err;
}

// A pipe whose reader has gone is how `| head` works, and stays silent.
TEST(CliCodes, AReaderThatHasSeenEnoughIsNoError) {
  const CommandRun run = RunScript("$N ops | head -n 1");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
}

// Ends when the process has, at the latest with the test's time.
void AwaitEnd(int process) {
  while (!std::set<char>{0, 'Z', 'X'}.contains(ProcessState(process))) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// The command with a standard output whose reader has gone. `first` is done by the shell before.
CommandRun RunWithoutReader(const std::string& folder, const std::string& first,
                            const std::string& words) {
  const std::string pipe = folder + "/pipe";
  return RunScript("rm -f " + pipe + "; mkfifo " + pipe + "; exec 3<>" + pipe + " 4>" + pipe +
                   " 3<&-; " + first + " $N " + words + " >&4");
}

std::vector<std::string> CommandsThatPrint(const TestFolder& folder) {
  const std::string model = folder / "m0.air";
  return {
      "ops",        "env",        "version",           "--help",       "run --help",
      "doctor",     "config",     "man run",           "samples",      "completion bash",
      "kernels ls", "topo",       "graph " + model,    "run " + model, "validate " + (folder / "p"),
      "ops --json", "help bench", "launch -n 2 -- ops"};
}

TEST(CliCodes, ACommandWhoseReaderHasGoneEndsSilentlyAsOthersDo) {
  const TestFolder folder;
  folder.PutModels(1);
  folder.PutPackage("p", "p/w", 2);
  for (const std::string& words : CommandsThatPrint(folder)) {
    const CommandRun run = RunWithoutReader(folder.path(), "exec env --default-signal=PIPE", words);
    EXPECT_EQ(run.code, 128 + SIGPIPE) << words << run.err;
    EXPECT_EQ(run.err, "") << words;
  }
}

TEST(CliCodes, WhereThatSignalIsIgnoredOneLineSaysSo) {
  const TestFolder folder;
  folder.PutModels(1);
  folder.PutPackage("p", "p/w", 2);
  for (const std::string& words : CommandsThatPrint(folder)) {
    const CommandRun run = RunWithoutReader(folder.path(), "trap '' PIPE;", words);
    EXPECT_EQ(run.code, 4) << words << run.err;
    EXPECT_THAT(run.err, ContainsRegex("^npumesh.*: standard output cannot be written: Broken "
                                       "pipe\n$"))
        << words;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << words;
  }
}

TEST(CliCodes, ALaunchWhoseReaderHasGoneLeavesNoRank) {
  const TestFolder folder;
  const std::string numbers = folder / "numbers";
  const CommandRun run = RunWithoutReader(
      folder.path(), "env --default-signal=PIPE",
      "launch -n 2 -- sh -c 'echo $$ >> " + numbers + "; echo said; exec sleep 1000'");
  EXPECT_EQ(run.code, 128 + SIGPIPE) << run.err;
  std::ifstream file(numbers);
  int number = 0;
  int ranks = 0;
  for (; file >> number; ++ranks) AwaitEnd(number);
  EXPECT_GT(ranks, 0);
}

TEST(CliCodes, AFileThatGrowsTooLargeIsAnError) {
  const TestFolder folder;
  folder.PutModels(1);
  const CommandRun run =
      RunScript("ulimit -f 0; $N run " + (folder / "m0.air") + " --outputs " + (folder / "out"));
  EXPECT_EQ(run.code, 4) << run.err;
  EXPECT_THAT(run.err, HasSubstr("File too large"));
}

TEST(CliCodes, LaunchPassesCodesThrough) {
  const TestFolder folder;
  folder.PutModels(2);
  const std::string launch = "$N launch -n 2 -- run ";
  EXPECT_EQ(RunScript(launch + folder.path()).code, 0);
  EXPECT_EQ(RunScript(launch + folder.path() + " --stps 3").code, 2);
  EXPECT_EQ(RunScript(launch + "absent").code, 3);
  // The other rank has lost a peer.
  EXPECT_THAT(RunScript(launch + folder.path() + " --steps 3 --inject exit:rank=1,code=4").code,
              AnyOf(4, kOfMpich ? 4 | 5 : 4));
  EXPECT_EQ(RunScript(launch + folder.path() + " --steps 3 --inject kill:rank=1").code, 5);
}

// Regression: mpirun's own 1, for a rank that had vanished, passed as a comparison that differs.
TEST(CliCodes, OneOfALaunchIsAComparison) {
  const TestFolder folder;
  folder.PutModels(2);
  const std::string launch = "$N launch -n 2 -- run " + folder.path();
  for (const int rank : {0, 1}) folder.PutTensor("golden", rank, 1000);
  const CommandRun differs = RunScript(launch + " --check " + (folder / "golden"));
  EXPECT_EQ(differs.code, 1) << differs.err;
  EXPECT_THAT(differs.out, HasSubstr("next: the same with --golden WHOLE"));
  const CommandRun vanished = RunScript(launch + " --steps 3 --inject exit:rank=1,code=0");
  EXPECT_EQ(vanished.code, 5) << vanished.err;
  EXPECT_THAT(vanished.err, testing::Not(HasSubstr("There are three reasons")));
}

TEST(CliCodes, LaunchKeepsTheCodesOfOtherPrograms) {
  EXPECT_EQ(RunScript("$N launch -n 2 -- /bin/sh -c 'exit 42'").code, 42);
  // MPICH's mpiexec fails one of its assertions now and then when ranks die so soon.
  EXPECT_THAT(RunScript("$N launch -n 2 -- /bin/sh -c 'kill -9 $$'").code,
              AnyOf(5, kOfMpich ? 4 : 5));
  const CommandRun missing = RunScript("$N launch -n 2 -- runn model.air");
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("runn is neither a command of npumesh nor a program in PATH; "
                                     "did you mean run"));
}

std::string TextIfThere(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// The command gets SIGINT amid its steps: after some seconds, more of them where a busy machine has
// not begun by then. It runs in front, because a shell lets what runs beside it ignore the signal.
CommandRun RunInterrupted(const TestFolder& folder, const std::string& words) {
  const std::string pid = folder / "pid";
  CommandRun run;
  for (const char* const seconds : {"3", "15", "75"}) {
    run = RunScript("(sleep " + std::string(seconds) + "; kill -INT $(cat " + pid +
                    ")) & exec sh -c 'echo $$ > " + pid + "; exec " NPUMESH_COMMAND " " + words +
                    "'");
    if (run.err.find("stopped at step") != std::string::npos) break;
  }
  return run;
}

TEST(CliCodes, CtrlCStopsAllRanksBetweenTwoSteps) {
  const TestFolder folder;
  folder.PutModels(2);
  const CommandRun run =
      RunInterrupted(folder, "launch -n 2 -- run " + folder.path() +
                                 " --steps 100000000 --report " + (folder / "r.json"));
  EXPECT_EQ(run.code, 130) << run.err;
  EXPECT_THAT(run.err, ContainsRegex("stopped at step [0-9]+ of 100000000"));
  const std::string report = TextIfThere(folder / "r.json");
  EXPECT_THAT(report, HasSubstr("\"verdict\": \"stopped\""));
  EXPECT_THAT(report, HasSubstr("\"exit_code\": 130"));
  EXPECT_THAT(report, ContainsRegex("\"error\": \"stopped at step [0-9]+ of 100000000"));
}

TEST(CliCodes, CtrlCStopsASingleRank) {
  const TestFolder folder;
  folder.PutModels(1);
  const CommandRun run =
      RunInterrupted(folder, "run " + (folder / "m0.air") + " --steps 100000000");
  EXPECT_EQ(run.code, 130) << run.err;
  EXPECT_THAT(run.err, ContainsRegex("npumesh run: stopped at step [0-9]+ of 100000000"));
}

TEST(CliCodes, ATimeEndsARunOnAllRanks) {
  const TestFolder folder;
  folder.PutModels(2);
  const CommandRun run =
      RunScript("$N launch -n 2 -- run " + folder.path() +
                " --steps 100000000 --timeout 2 --report " + (folder / "r.json"));
  EXPECT_EQ(run.code, 4) << run.err;
  EXPECT_THAT(TextIfThere(folder / "r.json"), HasSubstr("\"exit_code\": 4"));
  EXPECT_THAT(run.err, ContainsRegex("the run was not done after 2 s \\(--timeout\\): stopped at "
                                     "step [0-9]+ of 100000000"));
}

// A rank that is delayed for long holds the other one up inside of a step.
TEST(CliCodes, ATimeEndsARunInsideOfAStep) {
  const TestFolder folder;
  folder.PutModels(2);
  const CommandRun run =
      RunScript("$N launch -n 2 -- run " + folder.path() +
                " --timeout 2 --inject delay:rank=1,op=HcomAllReduce,ms=6000 2>&1");
  EXPECT_EQ(run.code, 4) << run.out;
  EXPECT_THAT(run.out, HasSubstr("the run was not done after 2 s (--timeout)"));
}

TEST(CliCodes, ATimeEndsALaunch) {
  const CommandRun run = RunScript("$N launch -n 2 --timeout 2 -- sleep 60");
  EXPECT_EQ(run.code, 4) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr("the job was not done after 2 s (--timeout); its ranks are ended"));
}

TEST(CliCodes, WhatTheUserTypedInVainIsSaidAtEveryLevel) {
  const TestFolder folder;
  folder.PutModels(1);
  std::filesystem::create_directory(folder / "dump");
  const CommandRun layer =
      RunScript("TNG_LOG_LEVEL=3 $N run " + (folder / "m0.air") +
                " --dump all --dump-layer Nobody --dump-path " + (folder / "dump"));
  EXPECT_EQ(layer.code, 0) << layer.err;
  EXPECT_THAT(layer.err, HasSubstr("npumesh run: warning: dump layer \"Nobody\" is not dumped"));
  const CommandRun option = RunScript("TNG_LOG_LEVEL=4 $N run " + (folder / "m0.air") +
                                      " -o dump_config.quant_dumpable=true");
  EXPECT_EQ(option.code, 0) << option.err;
  EXPECT_THAT(option.err, ContainsRegex("npumesh run: warning: .*quant_dumpable.* has no effect"));
}

TEST(CliCodes, InfoTellsFilesGroupsPlansAndSteps) {
  const TestFolder folder;
  folder.PutModels(2);
  const CommandRun run =
      RunScript("TNG_LOG_LEVEL=1 $N launch -n 2 -- run " + folder.path() + " --steps 2 2>&1");
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, ContainsRegex("m1.air is loaded: graph "));
  EXPECT_THAT(run.out, ContainsRegex("group \".*\" of ranks 0-1 is made"));
  EXPECT_THAT(run.out, ContainsRegex("plan 1 of graph \".*\" is compiled: [0-9]+ steps"));
  EXPECT_THAT(run.out, HasSubstr("step 1 of 2 is done"));
}

}  // namespace
}  // namespace npumesh
