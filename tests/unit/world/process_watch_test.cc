#include "runtime/world/process_watch.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>

namespace npumesh {
namespace {

// From here on pidfd_open fails in this process with `error`, as under a container's filter.
bool ForbidPidfd(int error) {
  std::array<sock_filter, 4> program = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// A process that lives until it is killed.
pid_t Sleeper() {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  return child;
}

// What is wrong with a watch of a process that lives, is a zombie, is gone; 0: nothing.
int FaultOfWatch() {
  const pid_t child = Sleeper();
  const ProcessWatch watch(child);
  if (watch.gone()) return 1;
  kill(child, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  if (!watch.gone()) return 2;
  waitpid(child, nullptr, 0);
  return watch.gone() && ProcessWatch(child).gone() ? 0 : 3;
}

TEST(ProcessWatch, SeesTheEndOfAProcess) {
  EXPECT_EQ(FaultOfWatch(), 0);
}

TEST(ProcessWatch, SeesItWithoutPidfd) {
  for (const int error : {ENOSYS, EPERM}) {
    const pid_t child = fork();
    ASSERT_NE(child, -1);
    if (child == 0) _exit(ForbidPidfd(error) ? FaultOfWatch() : 9);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 9) GTEST_SKIP() << "the system allows no filter of system calls";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "error " << error;
  }
}

}  // namespace
}  // namespace npumesh
