#include "launch/run/crash_line.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include "runtime/base/process/running_step.h"

namespace npumesh {
namespace {

struct Crash {
  int signal;
  std::string_view name;
};
constexpr std::array<Crash, 5> kCrashes = {{{SIGSEGV, "SIGSEGV"},
                                            {SIGBUS, "SIGBUS"},
                                            {SIGFPE, "SIGFPE"},
                                            {SIGILL, "SIGILL"},
                                            {SIGABRT, "SIGABRT"}}};

// What the handler needs, set before there is one.
int rank_here = 0;
int ranks_here = 0;
std::array<struct sigaction, kCrashes.size()> before;

// A line in place: a handler may not allocate. What is too long is cut.
class Line {
 public:
  void Add(std::string_view text) {
    for (const char c : text) {
      if (size_ + 1 == text_.size()) return;
      text_[size_++] = c >= 0 && c < ' ' ? '?' : c;
    }
  }
  void Add(size_t number) {
    std::array<char, 20> digits;
    size_t from = digits.size();
    do {
      digits[--from] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    Add({digits.data() + from, digits.size() - from});
  }
  void Write() {
    text_[size_++] = '\n';
    static_cast<void>(!::write(STDERR_FILENO, text_.data(), size_));
  }

 private:
  std::array<char, 1024> text_;
  size_t size_ = 0;
};

void Tell(std::string_view signal, const RunningStep& step) {
  Line line;
  line.Add("npumesh run: rank ");
  line.Add(static_cast<size_t>(rank_here));
  line.Add(" of ");
  line.Add(static_cast<size_t>(ranks_here));
  line.Add(": ");
  line.Add(signal);
  line.Add(" in operator ");
  line.Add(step.type);
  line.Add(", node \"");
  line.Add(step.name);
  line.Add("\", step ");
  line.Add(step.index);
  line.Add(" of ");
  line.Add(step.steps);
  line.Add(" of the graph");
  line.Write();
}

// Only calls that signal-safety(7) allows.
void Handle(int signal, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const auto* const crash =
      std::find_if(kCrashes.begin(), kCrashes.end(),
                   [signal](const Crash& known) { return known.signal == signal; });
  if (running_step.name != nullptr) Tell(crash->name, running_step);
  sigaction(signal, &before[static_cast<size_t>(crash - kCrashes.begin())], nullptr);
  // A fault happens again once this returns; what was sent has to be sent again.
  if (info->si_code <= 0) raise(signal);
  errno = error;
}

}  // namespace

CrashLine::CrashLine(int rank, int ranks) {
  rank_here = rank;
  ranks_here = ranks;
  struct sigaction action = {};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (size_t i = 0; i < kCrashes.size(); ++i) {
    sigaction(kCrashes[i].signal, nullptr, &before[i]);
  }
  for (const Crash& crash : kCrashes) sigaction(crash.signal, &action, nullptr);
}

CrashLine::~CrashLine() {
  for (size_t i = 0; i < kCrashes.size(); ++i) {
    sigaction(kCrashes[i].signal, &before[i], nullptr);
  }
}

}  // namespace npumesh
