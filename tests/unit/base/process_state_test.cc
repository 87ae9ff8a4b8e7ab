#include "runtime/base/process/process_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>

namespace npumesh {
namespace {

// A child that sleeps until it is killed.
class Sleeper {
 public:
  Sleeper() : process_(fork()) {
    if (process_ == 0) {
      pause();
      _exit(0);
    }
  }
  ~Sleeper() {
    End();
    waitpid(process_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  int process() const { return process_; }
  // Ends it and leaves it uncollected.
  void End() {
    kill(process_, SIGKILL);
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOWAIT);
  }

 private:
  pid_t process_;
};

TEST(ProcessState, TellsALivingAnEndedAndNoProcess) {
  Sleeper sleeper;
  EXPECT_EQ(ProcessState(getpid()), 'R');
  EXPECT_NE(ProcessState(sleeper.process()), 'Z');
  sleeper.End();
  EXPECT_EQ(ProcessState(sleeper.process()), 'Z');
  EXPECT_EQ(ProcessState(std::numeric_limits<int>::max()), 0);
}

TEST(ProcessStart, TellsTwoProcessesOfOneNumberApart) {
  Sleeper sleeper;
  EXPECT_NE(ProcessStart(getpid()), 0u);
  EXPECT_EQ(ProcessStart(getpid()), ProcessStart(getpid()));
  EXPECT_GE(ProcessStart(sleeper.process()), ProcessStart(getpid()));
  EXPECT_EQ(ProcessStart(std::numeric_limits<int>::max()), 0u);
  EXPECT_NE(ProcessSpace(), 0u);
}

TEST(ProcessState, OnlyEndedChildrenWantsOneAndAll) {
  EXPECT_FALSE(HasOnlyEndedChildren(getpid()));
  Sleeper first;
  Sleeper second;
  EXPECT_FALSE(HasOnlyEndedChildren(getpid()));
  first.End();
  EXPECT_FALSE(HasOnlyEndedChildren(getpid()));
  second.End();
  EXPECT_TRUE(HasOnlyEndedChildren(getpid()));
}

}  // namespace
}  // namespace npumesh
