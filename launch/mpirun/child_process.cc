#include "launch/mpirun/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/base/files/system_call.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/files/unique_fd.h"
#include "runtime/base/process/process_state.h"
#include "runtime/base/text/program_words.h"

namespace npumesh {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;

  Status Open() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError("make", "a pipe", errno);
    read = UniqueFd(ends[0]);
    write = UniqueFd(ends[1]);
    return Status();
  }
};

// While it lives, the forwarded signals arrive at a descriptor instead of interrupting.
class SignalInbox {
 public:
  Status Open() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
      sigaddset(&wanted, signal);
    }
    // A signal that is ignored comes when it is blocked.
    struct sigaction pipe {};
    if (sigaction(SIGPIPE, nullptr, &pipe) == 0 && pipe.sa_handler != SIG_IGN) {
      sigaddset(&wanted, SIGPIPE);
    }
    if (sigprocmask(SIG_BLOCK, &wanted, &before_) != 0)
      return SystemError("block", "signals", errno);
    blocked_ = true;
    fd_ = UniqueFd(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    return fd_ ? Status() : SystemError("make", "a descriptor of signals", errno);
  }
  ~SignalInbox() { Restore(); }
  void Restore() const {
    if (blocked_) sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  int fd() const { return fd_.get(); }

  struct Letter {
    int signal = 0;
    bool of_terminal = false;  // which tells its whole process group
  };
  // The next signal that has come.
  std::optional<Letter> Take() const {
    signalfd_siginfo info;
    if (read(fd_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) {
      return std::nullopt;
    }
    return Letter{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
  }

 private:
  UniqueFd fd_;
  sigset_t before_{};
  bool blocked_ = false;
};

// Who asks a child to end, and how urgently.
class Guard {
 public:
  explicit Guard(const ChildCare& care) : care_(care) {}

  void Watch(pid_t child) { child_ = child; }
  bool polite() const { return care_.polite_signal != 0; }

  // Passes signals on. Those of the terminal reach a child of our process group by themselves.
  void Hear(const SignalInbox& signals) {
    while (const auto letter = signals.Take()) {
      if (letter->signal == SIGPIPE) {  // one for each write
        if (end_.signal == 0) end_.signal = SIGPIPE;
        if (asked_ == 0) AskToEnd();
        continue;
      }
      const bool ends = letter->signal != SIGUSR1 && letter->signal != SIGUSR2;
      if (ends && end_.signal == 0) end_.signal = letter->signal;
      if (ends && polite()) {
        AskToEnd();
      } else if (!letter->of_terminal || polite()) {
        kill(child_, letter->signal);
      }
    }
  }

  // Milliseconds until Look has something to do; -1: never.
  int NextLook() const {
    const Clock::time_point next = std::min(at_, look_at_children_);
    if (next == kNever) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
  }
  // The child or one of its children has said something: what a run says last it says before it
  // ends.
  void Heard() {
    if (!care_.ends_with_its_children) return;
    between_looks_ = kFirstLook;
    look_at_children_ = std::min(Clock::now() + kFirstLook, last_look_ + kBetweenLooks);
  }
  void Look() {
    if (Clock::now() >= look_at_children_) LookAtChildren();
    if (Clock::now() < at_) return;
    if (asked_ == 0) end_.late = true;
    AskToEnd();
  }

  ChildEnd End(int code) const { return {code, end_.signal, end_.late, end_.bereft}; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kNever = Clock::time_point::max();
  // A look reads the state of every process of the machine.
  static constexpr auto kFirstLook = std::chrono::milliseconds(250);
  static constexpr auto kBetweenLooks = std::chrono::milliseconds(1000);
  static constexpr auto kAfterReminder = std::chrono::milliseconds(50);

  // mpirun has been seen to hear no signal at all after a rank had died in MPI_Init.
  void AskToEnd() {
    const int first = polite() ? care_.polite_signal : SIGTERM;
    kill(child_, asked_ == 0 ? first : asked_ == 1 ? SIGTERM : SIGKILL);
    ++asked_;
    at_ = Clock::now() + care_.patience;
  }

  // Nor does it then collect the ranks that have ended. And when one ends with another code than 0,
  // Open MPI sleeps a second for each of two signals that it sends to the others, even if they
  // have ended, too: SIGCHLD, which says what is true, wakes it up.
  void LookAtChildren() {
    const Clock::time_point now = Clock::now();
    last_look_ = now;
    if (!HasOnlyEndedChildren(child_)) {
      bereft_since_ = kNever;
      look_at_children_ = now + between_looks_;
      between_looks_ = std::min(2 * between_looks_, kBetweenLooks);
      return;
    }
    look_at_children_ = now + kAfterReminder;
    if (bereft_since_ == kNever) bereft_since_ = now;
    if (now - bereft_since_ >= care_.patience) {
      end_.bereft = true;
      kill(child_, SIGKILL);
    } else {
      kill(child_, SIGCHLD);
    }
  }

  const ChildCare care_;
  pid_t child_ = 0;
  int asked_ = 0;  // how often
  Clock::time_point at_ = care_.timeout ? Clock::now() + *care_.timeout : kNever;
  Clock::time_point last_look_ = Clock::now();
  std::chrono::milliseconds between_looks_ = kFirstLook;
  Clock::time_point look_at_children_ =
      care_.ends_with_its_children ? last_look_ + kFirstLook : kNever;
  Clock::time_point bereft_since_ = kNever;
  ChildEnd end_;
};

// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void Become(char* const* argv, char* const* environment, int output, int errors,
                         int report, const SignalInbox& signals, bool apart) {
  signals.Restore();
  if (apart) {
    setpgid(0, 0);
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execve(argv[0], argv, environment);
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = write(report, &reason, sizeof(reason));
  _exit(127);
}

// Reads what is there; false at the end of the stream.
bool Drain(const UniqueFd& from, const ByteSink& sink) {
  std::array<char, 65536> buffer;
  const ssize_t count = read(from.get(), buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) {
    sink({});
    return false;
  }
  sink({buffer.data(), static_cast<size_t>(count)});
  return true;
}

void Pump(UniqueFd& output, const ByteSink& to_output, UniqueFd& errors, const ByteSink& to_errors,
          const SignalInbox& signals, Guard& guard) {
  while (output || errors) {
    std::array<pollfd, 3> waits = {
        {{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}}};
    if (poll(waits.data(), waits.size(), guard.NextLook()) < 0 && errno != EINTR) return;
    if (waits[2].revents != 0) guard.Hear(signals);
    if (waits[0].revents != 0 || waits[1].revents != 0) guard.Heard();
    guard.Look();
    if (waits[0].revents != 0 && !Drain(output, to_output)) output.Reset();
    if (waits[1].revents != 0 && !Drain(errors, to_errors)) errors.Reset();
  }
}

Result<int> Await(pid_t child) {
  int state = 0;
  while (waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return SystemError("wait for", "a child", errno);
  }
  return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

}  // namespace

Result<int> RunChild(const std::vector<std::string>& words, const ByteSink& output,
                     const ByteSink& errors) {
  const Result<ChildEnd> end = RunChild(words, output, errors, {});
  return end.ok() ? Result<int>(end->code) : end.status();
}

Result<ChildEnd> RunChild(const std::vector<std::string>& words, const ByteSink& output,
                          const ByteSink& errors, const ChildCare& care) {
  const std::vector<char*> argv = PointersTo(words);
  const std::vector<std::string> variables = WithEnvironment(care.environment);
  const std::vector<char*> envp = PointersTo(variables);

  Pipe out;
  Pipe err;
  Pipe report;  // carries errno when exec fails
  SignalInbox signals;
  NPUMESH_RETURN_IF_ERROR(out.Open());
  NPUMESH_RETURN_IF_ERROR(err.Open());
  NPUMESH_RETURN_IF_ERROR(report.Open());
  NPUMESH_RETURN_IF_ERROR(signals.Open());

  Guard guard(care);
  const pid_t child = fork();
  if (child < 0) return SystemError("fork", words[0], errno);
  if (child == 0) {
    Become(argv.data(), envp.data(), out.write.get(), err.write.get(), report.write.get(), signals,
           guard.polite());
  }
  guard.Watch(child);
  out.write.Reset();
  err.write.Reset();
  report.write.Reset();
  int reason = 0;
  const ssize_t told =
      Uninterrupted([&] { return read(report.read.get(), &reason, sizeof(reason)); });
  if (told == static_cast<ssize_t>(sizeof(reason))) {
    NPUMESH_RETURN_IF_ERROR(Await(child).status());
    return Error(Code::kIo, "cannot start {}: {}", words[0], std::strerror(reason));
  }
  Pump(out.read, output, err.read, errors, signals, guard);
  guard.Hear(signals);
  NPUMESH_ASSIGN_OR_RETURN(const int code, Await(child));
  return guard.End(code);
}

}  // namespace npumesh
