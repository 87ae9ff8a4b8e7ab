// `npumesh launch` on one host: what it opens to others, and what it leaves behind.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "launch/mpirun/child_process.h"
#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::Not;

// The folder that a rank of LISTENERS named in `out`; empty: none yet.
std::string MemoryIn(const std::string& out) {
  const size_t begin = out.find("memory in ");
  const size_t end = out.find(".\n", begin);
  if (begin == out.npos || end == out.npos) return "";
  return out.substr(begin + 10, end - begin - 10);
}

// What a job keeps in the folder that npumesh launch makes for Open MPI's shared memory.
class CliSegments : public testing::Test {
  void SetUp() override {
    if (kOfMpich) GTEST_SKIP() << "MPICH's ranks keep no files in a folder of the job";
  }
};

TEST_F(CliSegments, ListensAtLoopbackOnlyAndLeavesNothing) {
  const CommandRun run = RunAlone({"launch", "-n", "2", "--", LISTENERS});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("[0] 0 wide listeners"));
  EXPECT_THAT(run.out, HasSubstr("[1] 0 wide listeners"));
  EXPECT_THAT(run.out, Not(HasSubstr("listens at")));
  const std::string memory = MemoryIn(run.out);
  EXPECT_THAT(memory, HasSubstr("/npumesh-job."));
  EXPECT_FALSE(std::filesystem::exists(memory));
}

// In a container without "localhost" in /etc/hosts each look-up waited for a silent name server.
TEST(CliLaunch, AsksNoNameServerForAJobOnOneHost) {
#if defined(NPUMESH_SANITIZED)
  GTEST_SKIP() << "a sanitizer has to be the first library that is loaded";
#endif
  const TestFolder folder;
  const std::string names = folder / "names";
  CommandRun run;
  const Result<int> code = RunChild(
      {"/usr/bin/env", "LD_PRELOAD=" NAME_LOOKUPS, "NAME_LOOKUPS=" + names, NPUMESH_COMMAND,
       "launch", "-n", "2", "--", LISTENERS},
      [&](std::string_view bytes) { run.out += bytes; },
      [&](std::string_view bytes) { run.err += bytes; });
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, 0) << run.err;
  std::ifstream file(names);
  const std::string seen{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(seen, HasSubstr("watches listeners\n"));
  EXPECT_THAT(seen, Not(HasSubstr("asks for")));
}

// `npumesh launch` of 8 ranks below a limit of open files, as a shell sets it.
CommandRun LaunchBelow(const std::string& ulimit) {
  CommandRun run;
  const std::string script = ulimit + "; exec " + NPUMESH_COMMAND + " launch -n 8 -- /bin/true";
  const Result<int> code = RunChild(
      {"/bin/sh", "-c", script}, [&](std::string_view bytes) { run.out += bytes; },
      [&](std::string_view bytes) { run.err += bytes; });
  EXPECT_TRUE(code.ok());
  if (code.ok()) run.code = *code;
  return run;
}

// With 52 of them mpirun hung.
TEST(CliLaunch, RaisesALimitOfOpenFilesThatIsTooLow) {
  const CommandRun run = LaunchBelow("ulimit -S -n 40");
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST(CliLaunch, SaysWhichLimitOfOpenFilesItWants) {
  const CommandRun run = LaunchBelow("ulimit -n 40");
  EXPECT_EQ(run.code, 4);
  EXPECT_EQ(run.err,
            "npumesh launch: 8 ranks on this host want 128 open files, but only 40 are allowed; "
            "raise the limit with ulimit -n 128, in a container with docker run --ulimit "
            "nofile=128\n");
}

TEST_F(CliSegments, TransportsThatTheUserChoosesStay) {
  const CommandRun run = RunAlone({"launch", "-n", "2", "--mpi-arg", "--mca", "--mpi-arg", "btl",
                                   "--mpi-arg", "self,vader,tcp", "--", LISTENERS});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(MemoryIn(run.out), "?");
}

// What CI does to jobs that hang: four of them filled the 64 MiB that a container has.
TEST_F(CliSegments, AHungJobThatIsTerminatedLeavesNothing) {
  const TestFolder folder;
  const std::string script =
      std::string(NPUMESH_COMMAND) + " launch -n 2 -- " + LISTENERS + " hang > " +
      (folder / "out") + " & job=$!; for i in $(seq 300); do grep -q '\\[1\\] .*memory' " +
      (folder / "out") + " && break; sleep 0.1; done; kill -TERM $job; wait $job";
  const ByteSink ignore = [](std::string_view) {};
  const Result<int> code = RunChild({"/bin/sh", "-c", script}, ignore, ignore);
  ASSERT_TRUE(code.ok());
  EXPECT_NE(*code, 0);
  std::ifstream file(folder / "out");
  const std::string out((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string memory = MemoryIn(out);
  EXPECT_THAT(memory, HasSubstr("/npumesh-job.")) << out;
  EXPECT_FALSE(std::filesystem::exists(memory));
}

// The command itself is killed: the next one removes what it could not.
TEST_F(CliSegments, TheNextJobRemovesWhatAKilledOneLeft) {
  const TestFolder folder;
  const std::string script =
      std::string(NPUMESH_COMMAND) + " launch -n 2 -- " + LISTENERS + " hang > " +
      (folder / "out") + " & job=$!; for i in $(seq 300); do grep -q '\\[1\\] .*memory' " +
      (folder / "out") + " && break; sleep 0.1; done; kill -KILL $job; wait $job";
  const ByteSink ignore = [](std::string_view) {};
  ASSERT_TRUE(RunChild({"/bin/sh", "-c", script}, ignore, ignore).ok());
  std::ifstream file(folder / "out");
  const std::string out((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::string memory = MemoryIn(out);
  ASSERT_THAT(memory, HasSubstr("/npumesh-job.")) << out;
  // mpirun is asked to end when its parent dies, and holds the folder until it has.
  for (int i = 0; i < 100 && std::filesystem::exists(memory); ++i) {
    RunAlone({"doctor", "--clean", folder.path()});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_FALSE(std::filesystem::exists(memory));
}

TEST(CliDoctor, CleansFoldersAndSaysWhatItRemoved) {
  const TestFolder folder;
  std::ofstream(folder / ".out.npy.123.0.tmp") << "half";
  std::ofstream(folder / "precious") << "whole";
  std::filesystem::create_directories(folder / ".npumesh-export.mp.1234/new");
  const CommandRun run = RunAlone({"doctor", "--clean", folder.path()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("removed " + (folder / ".out.npy.123.0.tmp") + "\n"));
  EXPECT_THAT(run.out, HasSubstr("removed " + (folder / ".npumesh-export.mp.1234") + "\n"));
  EXPECT_TRUE(std::filesystem::exists(folder / "precious"));
  EXPECT_FALSE(std::filesystem::exists(folder / ".out.npy.123.0.tmp"));
  EXPECT_FALSE(std::filesystem::exists(folder / ".npumesh-export.mp.1234"));
  EXPECT_EQ(RunAlone({"doctor", "--clean", folder / "absent"}).code, 2);
  EXPECT_EQ(RunAlone({"doctor", folder.path()}).code, 2) << "a folder without --clean";
}

}  // namespace
}  // namespace npumesh
