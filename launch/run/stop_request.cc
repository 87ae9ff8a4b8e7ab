#include "launch/run/stop_request.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string_view>

#include "runtime/base/log.h"
#include "runtime/base/process/thread.h"

namespace npumesh {
namespace {

constexpr int kRunTime = 4;
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGUSR1};

// The last signal; a handler can reach nothing else.
std::atomic<int> asked{0};
static_assert(std::atomic<int>::is_always_lock_free);

void Ask(int signal) {
  asked.store(signal, std::memory_order_relaxed);
}

// What stood for each of kSignals before: MPICH hears SIGUSR1 itself, which its mpiexec sends to
// the ranks that are left when one has ended.
std::array<struct sigaction, kSignals.size()> replaced;

// Who has been told to ignore a signal, as what runs beside a script is, goes on ignoring it.
void Listen() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    if (sigaction(kSignals[i], nullptr, &replaced[i]) != 0) replaced[i] = {};
    if (replaced[i].sa_handler == SIG_IGN) continue;
    struct sigaction action = {};
    action.sa_handler = Ask;
    action.sa_flags = SA_RESTART | SA_RESETHAND;  // who insists is obeyed at once
    sigaction(kSignals[i], &action, nullptr);
  }
}

void StopListening() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &replaced[i], nullptr);
}

// SIGUSR1 stands for the signal that `npumesh launch` got.
int CodeOf(int signal) {
  return 128 + (signal == SIGUSR1 ? SIGINT : signal);
}

}  // namespace

StopRequest::StopRequest(World& world, std::chrono::seconds timeout)
    : world_(world), timeout_(timeout) {
  asked.store(0);
  Listen();
  if (timeout_.count() == 0) return;
  // Steps that end are stopped between each other all the same.
  static_cast<void>(StartThread("--timeout", &thread_, [this, rank = LogRank()] {
    SetLogRank(rank);
    Watch();
  }));
}

StopRequest::~StopRequest() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ends_.notify_one();
  if (thread_.joinable()) thread_.join();
  StopListening();
}

bool StopRequest::late() const {
  return timeout_.count() != 0 && std::chrono::steady_clock::now() - since_ >= timeout_;
}

std::string StopRequest::LateText() const {
  return fmt::format("the run was not done after {} s (--timeout)", timeout_.count());
}

Outcome StopRequest::Before(uint64_t step, uint64_t steps) const {
  const std::string where = fmt::format("stopped at step {} of {}", step, steps);
  if (const int signal = asked.load(std::memory_order_relaxed); signal != 0) {
    return {CodeOf(signal), where, false};
  }
  if (late()) return {kRunTime, fmt::format("{}: {}", LateText(), where), false};
  return {};
}

Outcome StopRequest::After(const Status& status) const {
  if (status.ok() || !late()) return Outcome::From(status);
  return {kRunTime, fmt::format("{}: {}", LateText(), Outcome::From(status).message), false};
}

void StopRequest::Watch() {
  std::unique_lock lock(mutex_);
  const auto over = [this] { return over_; };
  if (ends_.wait_until(lock, since_ + timeout_, over)) return;
  // A step between two looks ends by itself; one that waits for ranks needs to be told.
  constexpr auto kStep = std::chrono::seconds(1);
  if (ends_.wait_for(lock, kStep, over)) return;
  world_.board().PublishFailure(Error(Code::kTimeout, "{}", LateText()));
  if (ends_.wait_for(lock, kGrace, over)) return;
  WriteLog(LogLevel::kError, {__FILE__, __LINE__}, LateText() + "; this rank ends");
  _exit(kRunTime);
}

}  // namespace npumesh
