#include "graph/static_kernel/store/program_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "runtime/base/files/system_call.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/files/unique_fd.h"
#include "runtime/base/process/wait.h"
#include "runtime/base/text/program_words.h"

namespace npumesh {
namespace {

// What the child is started with; frees what posix_spawn wants freed.
class SpawnSettings {
 public:
  // The child writes to `output`, reads nothing, leads a process group and hears all signals.
  explicit SpawnSettings(int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// A started program. Ends, with its whole process group, when this object does.
class RunningProgram {
 public:
  RunningProgram(pid_t process, UniqueFd output) : process_(process), output_(std::move(output)) {}
  ~RunningProgram() { KillGroup(); }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  void LimitProcessor(std::chrono::milliseconds limit) const {
    const auto seconds = static_cast<rlim_t>(limit.count() / 1000 + 2);
    const rlimit bound{seconds, seconds};
    prlimit(process_, RLIMIT_CPU, &bound, nullptr);
  }

  ProgramEnd AwaitEnd(Deadline deadline) {
    while (!HasEnded()) {
      if (deadline.expired()) {
        end_.late = true;
        break;
      }
      Listen(kNap);
    }
    KillGroup();
    // What was said before the end. A process that has left the group may go on for any time.
    for (int k = 0; k < kMostLastReads && Listen(std::chrono::milliseconds(0)); ++k) {
    }
    return std::move(end_);
  }

 private:
  static constexpr std::chrono::milliseconds kNap{5};
  static constexpr size_t kMostKept = 65536;
  static constexpr int kMostLastReads = 64;

  // Only looks, so that the number of the group stays taken. Where the system collects children by
  // itself (SIGCHLD is ignored) there is no child to wait for.
  bool HasEnded() const {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      return errno == ECHILD;
    }
    return info.si_pid != 0;
  }

  // Hears what the program says within `nap`; false when that is nothing.
  bool Listen(std::chrono::milliseconds nap) {
    pollfd wait{output_.get(), POLLIN, 0};  // a closed one (-1) only naps
    if (poll(&wait, 1, static_cast<int>(nap.count())) <= 0) return false;
    std::array<char, 4096> buffer;
    const ssize_t count =
        Uninterrupted([&] { return read(output_.get(), buffer.data(), buffer.size()); });
    if (count <= 0) {
      output_.Reset();
      return false;
    }
    const size_t room = kMostKept - std::min(kMostKept, end_.said.size());
    end_.said.append(buffer.data(), std::min(room, static_cast<size_t>(count)));
    return true;
  }

  // Kills what is left of the group and takes notice of the program's end. An exit code that the
  // system does not tell counts as 0.
  void KillGroup() {
    if (std::exchange(killed_, true)) return;
    kill(-process_, SIGKILL);
    int state = 0;
    pid_t seen = 0;
    do {
      seen = waitpid(process_, &state, 0);
    } while (seen < 0 && errno == EINTR);
    if (seen < 0 || end_.late) return;
    if (WIFSIGNALED(state)) end_.signal = WTERMSIG(state);
    if (WIFEXITED(state)) end_.code = WEXITSTATUS(state);
  }

  const pid_t process_;
  UniqueFd output_;
  ProgramEnd end_;
  bool killed_ = false;
};

}  // namespace

Result<ProgramEnd> RunProgram(const std::vector<std::string>& words, const std::string& temporary,
                              std::chrono::milliseconds limit) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError("make", "a pipe", errno);
  UniqueFd output(ends[0]);
  UniqueFd input(ends[1]);
  const SpawnSettings settings(input.get());
  std::vector<std::string> more = {"LC_ALL=C"};
  if (!temporary.empty()) more.push_back("TMPDIR=" + temporary);
  const std::vector<std::string> variables = WithEnvironment(more);
  const std::vector<char*> argv = PointersTo(words);
  const std::vector<char*> envp = PointersTo(variables);
  pid_t process = 0;
  const int reason = posix_spawn(&process, words[0].c_str(), settings.actions(),
                                 settings.attributes(), argv.data(), envp.data());
  if (reason != 0) return SystemError("start", words[0], reason);
  input.Reset();
  RunningProgram program(process, std::move(output));
  program.LimitProcessor(limit);
  return program.AwaitEnd(Deadline::After(limit));
}

}  // namespace npumesh
