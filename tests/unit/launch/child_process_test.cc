#include "launch/mpirun/child_process.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

namespace npumesh {
namespace {

struct Outputs {
  std::string out, err;
  Result<int> code;
};

Outputs RunShell(const std::string& script) {
  Outputs seen{"", "", 0};
  seen.code = RunChild(
      {"/bin/sh", "-c", script}, [&](std::string_view bytes) { seen.out += bytes; },
      [&](std::string_view bytes) { seen.err += bytes; });
  return seen;
}

TEST(RunChild, ReturnsOutputErrorsAndExitCode) {
  const Outputs seen = RunShell("echo out; echo err >&2; exit 7");
  EXPECT_EQ(seen.out, "out\n");
  EXPECT_EQ(seen.err, "err\n");
  EXPECT_EQ(*seen.code, 7);
}

TEST(RunChild, ASignalIsACodeAbove128) {
  EXPECT_EQ(*RunShell("kill -9 $$").code, 128 + SIGKILL);
}

TEST(RunChild, PassesSignalsOn) {
  const std::string me = std::to_string(getpid());
  const Outputs seen =
      RunShell("trap 'echo caught; exit 3' USR1; kill -USR1 " + me +
               "; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 0.1; done");
  EXPECT_EQ(seen.out, "caught\n");
  EXPECT_EQ(*seen.code, 3);
}

ChildEnd RunWithCare(const std::string& script, const ChildCare& care, std::string* out) {
  const ByteSink ignore = [](std::string_view) {};
  return *RunChild(
      {"/bin/sh", "-c", script}, [&](std::string_view bytes) { *out += bytes; }, ignore, care);
}

constexpr const char* kSleepLong =
    "i=0; while [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done; echo slept";

TEST(RunChild, ALateChildIsAskedPolitelyFirst) {
  std::string out;
  ChildCare care;
  care.polite_signal = SIGUSR1;
  care.timeout = std::chrono::seconds(1);
  const ChildEnd end =
      RunWithCare(std::string("trap 'echo polite; exit 7' USR1; ") + kSleepLong, care, &out);
  EXPECT_EQ(out, "polite\n");
  EXPECT_EQ(end.code, 7);
  EXPECT_TRUE(end.late);
  EXPECT_EQ(end.signal, 0);
}

TEST(RunChild, AChildThatDoesNotListenGetsSigterm) {
  std::string out;
  ChildCare care;
  care.polite_signal = SIGUSR1;
  care.patience = std::chrono::seconds(1);
  care.timeout = std::chrono::seconds(1);
  const ChildEnd end = RunWithCare(std::string("trap '' USR1; ") + kSleepLong, care, &out);
  EXPECT_EQ(out, "");
  EXPECT_EQ(end.code, 128 + SIGTERM);
  EXPECT_TRUE(end.late);
}

// As mpirun after a rank died in MPI_Init.
TEST(RunChild, AChildThatHearsNothingIsKilled) {
  std::string out;
  ChildCare care;
  care.polite_signal = SIGUSR1;
  care.patience = std::chrono::seconds(1);
  care.timeout = std::chrono::seconds(1);
  const ChildEnd end = RunWithCare(std::string("trap '' USR1 TERM; ") + kSleepLong, care, &out);
  EXPECT_EQ(out, "");
  EXPECT_EQ(end.code, 128 + SIGKILL);
  EXPECT_TRUE(end.late);
}

// As mpirun, too: the shell's place is taken by a program that waits for no child.
TEST(RunChild, AChildThatMissesTheEndOfItsChildrenIsKilled) {
  std::string out;
  ChildCare care;
  care.ends_with_its_children = true;
  care.patience = std::chrono::seconds(1);
  const ChildEnd end = RunWithCare("echo started; sleep 0.1 & exec sleep 30", care, &out);
  EXPECT_EQ(out, "started\n");
  EXPECT_EQ(end.code, 128 + SIGKILL);
  EXPECT_TRUE(end.bereft);
  EXPECT_FALSE(end.late);
}

// As mpirun after a rank failed: asleep, while a child that has ended waits to be noticed.
TEST(RunChild, AChildWhoseChildrenHaveEndedIsReminded) {
  std::string out;
  ChildCare care;
  care.ends_with_its_children = true;
  const ChildEnd end = RunWithCare(
      "exec python3 -c 'import os, signal, time\n"
      "woken = []\n"
      "if os.fork() == 0: time.sleep(0.2); os._exit(0)\n"
      "time.sleep(0.6)\n"
      "signal.signal(signal.SIGCHLD, lambda *_: woken.append(1))\n"
      "while not woken: time.sleep(0.01)\n"
      "os.wait()'",
      care, &out);
  EXPECT_EQ(end.code, 0) << out;
  EXPECT_FALSE(end.bereft);
}

TEST(RunChild, AChildWithOneLivingChildGoesOn) {
  std::string out;
  ChildCare care;
  care.ends_with_its_children = true;
  care.patience = std::chrono::seconds(1);
  const ChildEnd end = RunWithCare("sleep 0.1 & sleep 4 & exec sleep 3.5", care, &out);
  EXPECT_EQ(end.code, 0);
  EXPECT_FALSE(end.bereft);
}

TEST(RunChild, TellsWhichSignalAskedForTheEnd) {
  std::string out;
  ChildCare care;
  care.polite_signal = SIGUSR1;
  const std::string me = std::to_string(getpid());
  const ChildEnd end = RunWithCare(
      "trap 'echo polite; exit 9' USR1; kill -INT " + me + "; " + kSleepLong, care, &out);
  EXPECT_EQ(out, "polite\n");
  EXPECT_EQ(end.signal, SIGINT);
  EXPECT_FALSE(end.late);
}

TEST(RunChild, GivesTheChildMoreEnvironment) {
  setenv("NPUMESH_TEST_KEPT", "kept", 1);
  setenv("NPUMESH_TEST_REPLACED", "old", 1);
  std::string out;
  ChildCare care;
  care.environment = {"NPUMESH_TEST_REPLACED=new"};
  const ChildEnd end = RunWithCare("echo $NPUMESH_TEST_KEPT $NPUMESH_TEST_REPLACED", care, &out);
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(out, "kept new\n");
}

TEST(RunChild, AProgramThatIsNotThereIsAnError) {
  const ByteSink ignore = [](std::string_view) {};
  const Result<int> code = RunChild({"/no/such/program"}, ignore, ignore);
  EXPECT_EQ(code.status().code(), Code::kIo);
  EXPECT_THAT(std::string(code.status().message()),
              testing::HasSubstr("cannot start /no/such/program"));
}

}  // namespace
}  // namespace npumesh
