#include "runtime/world/blocked_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "runtime/base/files/folder_reader.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"
#include "runtime/base/process/process_state.h"
#include "runtime/base/process/thread.h"
#include "runtime/base/process/thread_census.h"
#include "runtime/base/process/wait.h"
#include "runtime/base/text/parse.h"
#include "runtime/world/notice_times.h"

namespace npumesh {
namespace {

// Each rank looks at all others, so the time between two looks grows with their number: looks of 64
// ranks four times a second are a sixth of two processors. So does the time that they take to
// start.
constexpr auto kBetweenChecks = std::chrono::milliseconds(250);
constexpr size_t kRanksOfACheck = 16;
// The launcher starts the processes of a host before it does anything else.
constexpr auto kAllAreThere = std::chrono::seconds(6);
constexpr int kExitCode = 5;  // as ExitCode of a lost peer

// The value of `name` in the environment with which a process was started.
std::optional<std::string> Variable(int process, std::string_view name) {
  const auto all = ReadFile(fmt::format("/proc/{}/environ", process), uint64_t{1} << 20);
  if (!all.ok()) return std::nullopt;
  std::string_view rest = *all;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
      return std::string(entry.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

std::string ProgramOf(std::string_view process) {
  std::error_code error;
  const auto link = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process), error);
  return error ? std::string() : link.string();
}

// A number of ranks; 0 unless the launcher has told.
size_t RanksToldBy(const char* variable) {
  constexpr int64_t kMany = 1 << 20;
  const char* text = std::getenv(variable);
  const auto size = ParseInt(text == nullptr ? "" : text, 1, kMany, "ranks");
  return static_cast<size_t>(size.ok() ? *size : 0);
}

// The processes of this host that were started for the same job with the same program.
class Siblings {
 public:
  bool known() const { return job_.has_value() && !program_.empty(); }

  // False when the launcher has told of more ranks than have been seen, though some have: where
  // each rank has a view of processes to itself, nothing is known.
  bool complete() const { return ranks_.empty() || ranks_.size() + 1 >= expected_; }

  std::chrono::milliseconds between_checks() const { return kBetweenChecks * crowd(); }
  std::chrono::seconds all_there_after() const { return kAllAreThere * crowd(); }

  // The first rank that has not been seen, where all ranks are on this host.
  std::string Missing() const {
    for (size_t rank = 0; expected_ == RanksToldBy("OMPI_COMM_WORLD_SIZE") && rank < expected_;
         ++rank) {
      const std::string name = fmt::format("{}", rank);
      if (name != own_rank_ && !ranks_.contains(name)) return "rank " + name;
    }
    return "a rank of this host";
  }

  // Finds those that have come since.
  void Find() {
    if (expected_ != 0 && RanksInProgram() + 1 >= expected_) return;
    FolderReader processes("/proc");
    while (const char* const name = processes.Next()) {
      const auto number = ParseInt(name, 1, std::numeric_limits<int>::max(), "process");
      if (!number.ok() || *number == getpid()) continue;
      const int process = static_cast<int>(*number);
      if (Variable(process, "PMIX_NAMESPACE") != job_) continue;
      const auto rank = Variable(process, "PMIX_RANK");
      if (rank && *rank != own_rank_) ranks_[*rank].Note(process, ProgramOf(name) == program_);
    }
  }

  // "rank 2, whose process 77 is stopped", or empty; and all that have ended.
  struct Found {
    std::string stopped;
    std::string ended;
  };
  Found Look() const {
    Found found;
    for (const auto& [rank, processes] : ranks_) {
      const int process = processes.Telling();
      const char state = ProcessState(process);
      const std::string who = fmt::format("rank {}, whose process {}", rank, process);
      if (state == 'T' || state == 't') found.stopped = who + " is stopped";
      if (!HasEnded(state)) continue;
      found.ended += (found.ended.empty() ? "" : ", and for ") + who + " has ended";
    }
    return found;
  }

 private:
  static bool HasEnded(char state) { return state == 0 || state == 'Z' || state == 'X'; }

  // The processes of a rank: it may start in scripts, which last as long as its program or become
  // it.
  class Rank {
   public:
    void Note(int process, bool in_program) {
      if (!in_program) {
        scripts_.insert(process);
      } else if (program_ == 0) {  // what comes later, the program has started
        program_ = process;
      }
    }
    bool in_program() const { return program_ != 0; }

    // The one whose end is the end of the rank.
    int Telling() const {
      if (in_program()) return program_;
      const auto lives = [](int process) { return !HasEnded(ProcessState(process)); };
      const auto living = std::find_if(scripts_.begin(), scripts_.end(), lives);
      return living == scripts_.end() ? *scripts_.begin() : *living;
    }

   private:
    std::set<int> scripts_;
    int program_ = 0;
  };

  size_t RanksInProgram() const {
    return static_cast<size_t>(std::count_if(
        ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank.second.in_program(); }));
  }

  int crowd() const { return static_cast<int>(std::max<size_t>(1, expected_ / kRanksOfACheck)); }

  const std::optional<std::string> job_ = Variable(getpid(), "PMIX_NAMESPACE");
  const std::string program_ = ProgramOf("self");
  const std::string own_rank_ = Variable(getpid(), "PMIX_RANK").value_or("");
  const size_t expected_ = RanksToldBy("OMPI_COMM_WORLD_LOCAL_SIZE");
  std::map<std::string, Rank> ranks_;  // those that have been seen
};

std::string ThisRank() {
  const char* rank = std::getenv("PMIX_RANK");
  return rank == nullptr ? "this rank" : fmt::format("rank {}", rank);
}

// Written whatever the level is: this process is about to end, or hangs.
void Say(LogLevel level, const std::string& text) {
  WriteLog(level, {__FILE__, __LINE__}, text);
}

}  // namespace

BlockedWatch::BlockedWatch(std::string_view what, const Limits& limits) : what_(what) {
  // Without a thread, or memory for it, no one looks after the rank, which goes on.
  static_cast<void>(StartThread("the watch of a start", &thread_, [this, limits] {
    try {
      const HelperThread helper;
      Watch(limits);
    } catch (const std::bad_alloc&) {
    }
  }));
}

BlockedWatch::~BlockedWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ends_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void BlockedWatch::Watch(const Limits& limits) {
  Siblings siblings;
  NoticeTimes notices(limits.soft);
  const auto since = SteadyClock::now();
  auto stopped_since = since;
  std::optional<SteadyClock::time_point> lost_since;
  std::string lost;  // who was lost first; others may end because of that
  const auto end = [this](const std::string& why) {
    Say(LogLevel::kError, fmt::format("{} ends in {}: {}", ThisRank(), what_, why));
    _exit(kExitCode);
  };
  if (siblings.known()) siblings.Find();
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, siblings.between_checks(), [this] { return over_; })) {
    const auto now = SteadyClock::now();
    if (limits.hard != kNoTimeout && now - since >= limits.hard) {
      end(fmt::format("it was not over within {} s (HCCL_CONNECT_TIMEOUT)", limits.hard.count()));
    }
    if (!siblings.known()) continue;
    siblings.Find();
    const auto [stopped, ended] = siblings.Look();
    if (!lost_since) lost = ended;
    if (!lost.empty() && !lost_since) lost_since = now;
    if (lost_since && now - *lost_since >= limits.patience) end("it waits for " + lost);
    if (!siblings.complete() && now - since >= siblings.all_there_after()) {
      end(fmt::format("it waits for {}, which was not there within {} s", siblings.Missing(),
                      siblings.all_there_after().count()));
    }
    if (stopped.empty()) {
      notices = NoticeTimes(limits.soft);
      stopped_since = now;
      continue;
    }
    if (!notices.Due(now - stopped_since)) continue;
    Say(LogLevel::kWarning,
        fmt::format("{} has waited {} s in {} for {}", ThisRank(),
                    std::chrono::floor<std::chrono::seconds>(now - stopped_since).count(), what_,
                    stopped));
  }
}

}  // namespace npumesh
