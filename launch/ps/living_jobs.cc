#include "launch/ps/living_jobs.h"

#include <fmt/ranges.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <set>

#include "launch/record/record_file.h"
#include "runtime/base/files/folder_reader.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/process/process_state.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

constexpr int kMostAncestors = 64;

std::vector<int> Processes() {
  std::vector<int> processes;
  FolderReader folder("/proc");
  while (const char* const name = folder.Next()) {
    const auto process = ParseInt(name, 1, std::numeric_limits<int>::max(), "process");
    if (process.ok()) processes.push_back(static_cast<int>(*process));
  }
  std::sort(processes.begin(), processes.end());
  return processes;
}

// Empty when the process has ended.
std::vector<std::string> WordsOf(int process) {
  constexpr uint64_t kMostBytes = 1 << 20;
  const Result<std::string> line = ReadFile(fmt::format("/proc/{}/cmdline", process), kMostBytes);
  std::vector<std::string> words;
  if (!line.ok()) return words;
  for (const std::string_view word : Split(*line, std::string_view("\0", 1))) {
    words.emplace_back(word);
  }
  if (!words.empty() && words.back().empty()) words.pop_back();
  if (!words.empty()) words[0] = std::filesystem::path(words[0]).filename().string();
  return words;
}

// The process itself first.
std::vector<int> AncestorsOf(int process) {
  std::vector<int> ancestors;
  for (int each = process; each > 1 && ancestors.size() < kMostAncestors;
       each = ProcessParent(each)) {
    ancestors.push_back(each);
  }
  return ancestors;
}

// Those that all ranks have in common, the nearest first.
std::vector<int> CommonAncestors(const std::vector<RankWindow>& ranks) {
  std::vector<int> common = AncestorsOf(ranks.front().process());
  for (const RankWindow& rank : ranks) {
    const std::vector<int> others = AncestorsOf(rank.process());
    std::erase_if(common, [&](int process) {
      return std::find(others.begin(), others.end(), process) == others.end();
    });
  }
  return common;
}

bool IsLaunch(int process) {
  const std::vector<std::string> words = WordsOf(process);
  return words.size() > 1 && words[0] == "npumesh" && words[1] == "launch";
}

int NumberOf(const std::vector<RankWindow>& ranks) {
  const std::vector<int> common = CommonAncestors(ranks);
  const auto launch = std::find_if(common.begin(), common.end(), IsLaunch);
  if (launch != common.end()) return *launch;
  return common.empty() ? ranks.front().process() : common.front();
}

double SecondsSinceStart(int process) {
  const uint64_t start = ProcessStart(process);
  timespec now{};
  if (start == 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double begun = static_cast<double>(start) / static_cast<double>(sysconf(_SC_CLK_TCK));
  const double seconds = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  return std::max(0.0, seconds - begun);
}

// By rank. A process that was forked off a rank has the rank's board open, too: of several
// processes with one rank that which began first is the rank.
void KeepRanks(std::vector<RankWindow>& ranks) {
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankWindow& a, const RankWindow& b) {
    return std::pair(a.rank(), ProcessStart(a.process())) <
           std::pair(b.rank(), ProcessStart(b.process()));
  });
  const auto same = [](const RankWindow& a, const RankWindow& b) { return a.rank() == b.rank(); };
  ranks.erase(std::unique(ranks.begin(), ranks.end(), same), ranks.end());
}

LivingJob JobOf(std::vector<RankWindow> ranks) {
  KeepRanks(ranks);
  LivingJob job;
  job.world_size = ranks.front().world_size();
  job.number = NumberOf(ranks);
  job.seconds = SecondsSinceStart(job.number);
  job.command = fmt::format("{}", fmt::join(WordsOf(ranks.front().process()), " "));
  job.ranks = std::move(ranks);
  return job;
}

bool MeansJob(const LivingJob& job, int process) {
  if (job.number == process) return true;
  const std::vector<int> common = CommonAncestors(job.ranks);
  return std::find(common.begin(), common.end(), process) != common.end() ||
         std::any_of(job.ranks.begin(), job.ranks.end(),
                     [process](const RankWindow& rank) { return rank.process() == process; });
}

// Windows of ranks that share a board, together.
std::vector<std::vector<RankWindow>> Together(std::vector<RankWindow> windows) {
  std::vector<std::vector<RankWindow>> jobs;
  std::vector<std::set<uint64_t>> boards;  // of each job
  for (RankWindow& window : windows) {
    size_t job = 0;
    const auto shares = [&](uint64_t board) { return boards[job].contains(board); };
    while (job < jobs.size() &&
           std::none_of(window.boards().begin(), window.boards().end(), shares)) {
      ++job;
    }
    if (job == jobs.size()) {
      jobs.emplace_back();
      boards.emplace_back();
    }
    boards[job].insert(window.boards().begin(), window.boards().end());
    jobs[job].push_back(std::move(window));
  }
  return jobs;
}

// The number of a living process in the records of a folder; kNotFound: none lives.
Result<int> ProcessOfRecords(const std::string& folder) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<RankRecord> records, ReadRecords(folder));
  for (const RankRecord& record : records) {
    if (record.fate == ProcessFate::kRunning || record.fate == ProcessFate::kStopped) {
      return record.process;
    }
  }
  return Error(Code::kNotFound, "the job of {} has ended on this host; npumesh record {} says how",
               folder, folder);
}

}  // namespace

std::vector<LivingJob> LivingJobs() {
  std::vector<RankWindow> windows;
  for (const int process : Processes()) {
    for (RankWindow& window : RankWindow::Open(process)) windows.push_back(std::move(window));
  }
  std::vector<LivingJob> jobs;
  for (std::vector<RankWindow>& ranks : Together(std::move(windows))) {
    jobs.push_back(JobOf(std::move(ranks)));
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const LivingJob& a, const LivingJob& b) { return a.number < b.number; });
  return jobs;
}

Result<LivingJob> FindLivingJob(const std::string& name) {
  std::error_code failed;
  int number = 0;
  if (std::filesystem::is_directory(name, failed)) {
    NPUMESH_ASSIGN_OR_RETURN(number, ProcessOfRecords(name));
  } else {
    NPUMESH_ASSIGN_OR_RETURN(const int64_t given, ParseInt(name, 1, std::numeric_limits<int>::max(),
                                                           "a job's number, or a folder"));
    number = static_cast<int>(given);
  }
  std::vector<LivingJob> meant;
  for (LivingJob& job : LivingJobs()) {
    if (job.number == number) return std::move(job);
    if (MeansJob(job, number)) meant.push_back(std::move(job));
  }
  if (meant.size() == 1) return std::move(meant[0]);
  if (meant.empty()) {
    return Error(Code::kNotFound,
                 "no job {} runs on this host: it has ended, or was none of this user; npumesh ps "
                 "lists those that run",
                 number);
  }
  return Error(Code::kInvalidArgument, "process {} has started {} jobs; npumesh ps lists them",
               number, meant.size());
}

JobGlance LookAt(const LivingJob& job) {
  JobGlance glance;
  WaitScene& scene = glance.scene;
  scene.rank = -1;
  for (const RankWindow& rank : job.ranks) {
    RankGlance now = rank.Look();
    scene.sights[rank.rank()] = now.sight;
    scene.loops[rank.rank()] = now.loops;
    glance.ranks[rank.rank()] = std::move(now);
  }
  scene.now_ns = std::chrono::nanoseconds(SteadyClock::now().time_since_epoch()).count();
  glance.waits = WaitsIn(scene);
  const Position* longest = nullptr;
  int waiter = -1;
  for (const Wait& wait : glance.waits) {
    for (const Position& position : scene.sights[wait.rank].positions) {
      if (position.group != wait.group || !position.active()) continue;
      if (longest != nullptr && position.since_ns >= longest->since_ns) continue;
      longest = &position;
      waiter = wait.rank;
    }
  }
  if (longest == nullptr) return glance;
  glance.waited = static_cast<double>(scene.now_ns - longest->since_ns) / 1e9;
  if (glance.waited < kLastingSeconds) return glance;
  // As the rank itself would say it.
  WaitScene seen = scene;
  seen.rank = waiter;
  seen.group = longest->group_name;
  seen.what = longest->group_name;
  seen.waited = std::chrono::seconds(static_cast<int64_t>(glance.waited));
  for (const Wait& wait : glance.waits) {
    if (wait.rank == waiter && wait.group == longest->group) seen.missing.push_back(wait.for_rank);
  }
  std::sort(seen.missing.begin(), seen.missing.end());
  const WaitNotice notice = NoticeOf(seen, false);
  glance.verdict = notice.text;
  glance.look_first_at = notice.ranks;
  return glance;
}

}  // namespace npumesh
