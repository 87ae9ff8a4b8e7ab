#include "launch/mpirun/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace npumesh {
namespace {

Status SystemError(std::string_view what) {
  return Error(Code::kIo, "{}: {}", what, std::strerror(errno));
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void Reset(int fd) {
    Close();
    fd_ = fd;
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read;
  Descriptor write;

  Status Open() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError("pipe");
    read.Reset(ends[0]);
    write.Reset(ends[1]);
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
    if (sigprocmask(SIG_BLOCK, &wanted, &before_) != 0) return SystemError("sigprocmask");
    blocked_ = true;
    fd_.Reset(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    return fd_.open() ? Status() : SystemError("signalfd");
  }
  ~SignalInbox() { Restore(); }
  void Restore() const {
    if (blocked_) sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  int fd() const { return fd_.get(); }

  // Passes on what other processes sent; the terminal has told the whole process group already.
  void Forward(pid_t child) const {
    signalfd_siginfo info;
    while (read(fd_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      if (info.ssi_code != SI_KERNEL) kill(child, static_cast<int>(info.ssi_signo));
    }
  }

 private:
  Descriptor fd_;
  sigset_t before_{};
  bool blocked_ = false;
};

// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void Become(char* const* argv, int output, int errors, int report,
                         const SignalInbox& signals) {
  signals.Restore();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execv(argv[0], argv);
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = write(report, &reason, sizeof(reason));
  _exit(127);
}

// Reads what is there; false at the end of the stream.
bool Drain(const Descriptor& from, const ByteSink& sink) {
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

void Pump(Descriptor& output, const ByteSink& to_output, Descriptor& errors,
          const ByteSink& to_errors, const SignalInbox& signals, pid_t child) {
  while (output.open() || errors.open()) {
    std::array<pollfd, 3> waits = {
        {{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}}};
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if (waits[2].revents != 0) signals.Forward(child);
    if (waits[0].revents != 0 && !Drain(output, to_output)) output.Close();
    if (waits[1].revents != 0 && !Drain(errors, to_errors)) errors.Close();
  }
}

Result<int> Await(pid_t child) {
  int state = 0;
  while (waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return SystemError("waitpid");
  }
  return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

}  // namespace

Result<int> RunChild(const std::vector<std::string>& words, const ByteSink& output,
                     const ByteSink& errors) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);

  Pipe out;
  Pipe err;
  Pipe report;  // carries errno when exec fails
  SignalInbox signals;
  NPUMESH_RETURN_IF_ERROR(out.Open());
  NPUMESH_RETURN_IF_ERROR(err.Open());
  NPUMESH_RETURN_IF_ERROR(report.Open());
  NPUMESH_RETURN_IF_ERROR(signals.Open());

  const pid_t child = fork();
  if (child < 0) return SystemError("fork");
  if (child == 0) {
    Become(argv.data(), out.write.get(), err.write.get(), report.write.get(), signals);
  }
  out.write.Close();
  err.write.Close();
  report.write.Close();
  int reason = 0;
  if (read(report.read.get(), &reason, sizeof(reason)) == static_cast<ssize_t>(sizeof(reason))) {
    NPUMESH_RETURN_IF_ERROR(Await(child).status());
    return Error(Code::kIo, "cannot start {}: {}", words[0], std::strerror(reason));
  }
  Pump(out.read, output, err.read, errors, signals, child);
  return Await(child);
}

}  // namespace npumesh
