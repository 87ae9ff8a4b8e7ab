#include "launch/mpirun/rank_output.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "launch/screen/progress_line.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

bool IsRule(std::string_view line) {
  return line.size() >= 40 && line.find_first_not_of('-') == std::string_view::npos;
}

std::optional<int> RankIn(std::string_view text) {
  const Result<int64_t> rank = ParseInt(text, 0, std::numeric_limits<int>::max(), "rank");
  return rank.ok() ? std::optional(static_cast<int>(*rank)) : std::nullopt;
}

// The rank that a tag names, and how many characters the tag has.
struct Tag {
  int rank = 0;
  size_t size = 0;
};

// kHydraPattern with a rank.
std::optional<Tag> HydraTagOf(std::string_view line) {
  constexpr size_t kNumber = kHydraPattern.find('%');
  const size_t close = line.find("] ");
  if (!line.starts_with(kHydraPattern.substr(0, kNumber)) || close == line.npos) {
    return std::nullopt;
  }
  const std::optional<int> rank = RankIn(line.substr(kNumber, close - kNumber));
  if (!rank) return std::nullopt;
  return Tag{*rank, close + 2};
}

// "[1,12]<stdout>:text": the tag of Open MPI, whose first number is that of the job.
std::optional<Tag> OpenMpiTagOf(std::string_view line, MpiLauncher launcher) {
  constexpr std::string_view kDigits = "0123456789";
  if (!line.starts_with('[')) return std::nullopt;
  const size_t comma = std::min(line.find_first_not_of(kDigits, 1), line.size());
  const size_t close = std::min(line.find_first_not_of(kDigits, comma + 1), line.size());
  if (!line.substr(comma).starts_with(',') || !line.substr(close).starts_with(']')) {
    return std::nullopt;
  }
  const std::optional<int> rank = RankIn(line.substr(comma + 1, close - comma - 1));
  if (!rank) return std::nullopt;
  const std::string_view rest = line.substr(close + 1);
  for (const std::string_view stream : {"<stdout>:", "<stderr>:"}) {
    if (!rest.starts_with(stream)) continue;
    const bool blank =
        launcher == MpiLauncher::kOpenMpi5 && rest.substr(stream.size()).starts_with(' ');
    return Tag{*rank, close + 1 + stream.size() + (blank ? 1 : 0)};
  }
  return std::nullopt;
}

std::optional<Tag> TagOf(std::string_view line, MpiLauncher launcher) {
  return launcher == MpiLauncher::kMpich ? HydraTagOf(line) : OpenMpiTagOf(line, launcher);
}

// MPICH's words around the one that says how a rank has ended.
bool IsHydrasFrame(std::string_view line) {
  constexpr std::array<std::string_view, 3> kFrame = {
      "=", "This typically refers to a problem with", "Please see the FAQ page for debugging"};
  return std::any_of(kFrame.begin(), kFrame.end(),
                     [&](std::string_view begin) { return line.starts_with(begin); });
}

// 9 of "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"; 0 of other lines.
int SignalOf(std::string_view line) {
  constexpr std::string_view kBefore = " (signal ";
  const size_t at = line.find(kBefore);
  if (!line.starts_with("YOUR APPLICATION TERMINATED") || !line.ends_with(')') ||
      at == std::string_view::npos) {
    return 0;
  }
  const std::string_view number = line.substr(at + kBefore.size());
  const Result<int64_t> signal = ParseInt(number.substr(0, number.size() - 1), 1, 64, "signal");
  return signal.ok() ? static_cast<int>(*signal) : 0;
}

// Notices that only repeat that some rank returned an error.
bool IsEcho(std::string_view notice) {
  constexpr std::array<std::string_view, 2> kEchoes = {"a non-zero exit code",
                                                       "exited with non-zero status"};
  return std::any_of(kEchoes.begin(), kEchoes.end(), [&](std::string_view echo) {
    return notice.find(echo) != std::string_view::npos;
  });
}

bool TellsOfDeath(std::string_view notice) {
  return notice.find("exited on signal") != std::string_view::npos;
}

// A message of our log, "[ERROR] NPUMESH(77,a) rank 1:2026-11-27-... [place]77 text", without
// what stands before its text; other lines whole.
std::string_view TextOf(std::string_view line) {
  constexpr std::string_view kName = "] NPUMESH(";
  if (!line.starts_with('[') || line.find(kName) == line.npos) return line;
  const size_t place = line.find(" [", line.find(kName));
  const size_t end = place == line.npos ? place : line.find(']', place);
  const size_t text = end == line.npos ? end : line.find(' ', end);
  return text == line.npos ? line : line.substr(text + 1);
}

// The number that follows `word` in a notice, or -1.
int NumberAfter(std::string_view notice, std::string_view word) {
  const size_t at = notice.find(word);
  if (at == std::string_view::npos) return -1;
  const std::string_view rest = notice.substr(at + word.size());
  const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const Result<int64_t> number =
      ParseInt(rest.substr(0, digits), 0, std::numeric_limits<int>::max(), "number");
  return number.ok() ? static_cast<int>(*number) : -1;
}

// "mpirun noticed that process rank 1 with PID 77 on node a exited on signal 9 (Killed)."
std::optional<std::pair<int, int>> DeathIn(std::string_view notice) {
  const int signal = NumberAfter(notice, "exited on signal ");
  if (signal <= 0) return std::nullopt;
  return std::pair(NumberAfter(notice, "process rank "), signal);
}

// The rank of "mpirun has exited due to process rank 1 with PID 77 on node a exiting improperly.";
// -1 for other notices.
int VanishedIn(std::string_view notice) {
  const bool vanished = notice.find("exiting improperly") != std::string_view::npos;
  return vanished ? NumberAfter(notice, "process rank ") : -1;
}

// Twenty lines that guess at the reason.
bool TellsOfAHostWithoutDaemon(std::string_view notice) {
  return notice.find("unable to reliably start one or more daemons") != std::string_view::npos;
}

// Ctrl-C, which mpirun passes on to the ranks.
bool TellsOfASignalPassedOn(std::string_view line) {
  return line.starts_with("mpirun: Forwarding signal ");
}

bool TellsOfALostHost(std::string_view notice) {
  return notice.find("lost communication with a remote daemon") != std::string_view::npos;
}

}  // namespace

std::vector<std::string> LineCutter::Add(std::string_view bytes) {
  std::vector<std::string> lines;
  rest_ += bytes;
  size_t start = 0;
  for (size_t end; (end = rest_.find('\n', start)) != std::string::npos; start = end + 1) {
    lines.push_back(rest_.substr(start, end - start));
  }
  rest_.erase(0, start);
  return lines;
}

std::optional<std::string> LineCutter::Finish() {
  if (rest_.empty()) return std::nullopt;
  return std::exchange(rest_, std::string());
}

std::vector<RankPiece> CutTags(std::string_view line, MpiLauncher launcher) {
  const char begin = launcher == MpiLauncher::kMpich ? kHydraPattern.front() : '[';
  std::vector<RankPiece> pieces;
  for (size_t at = 0; at < line.size();) {
    if (const std::optional<Tag> tag = TagOf(line.substr(at), launcher)) {
      pieces.push_back({tag->rank, {}});
      at += tag->size;
      continue;
    }
    if (pieces.empty()) return {};
    const size_t next = std::min(line.find(begin, at + 1), line.size());
    pieces.back().text += line.substr(at, next - at);
    at = next;
  }
  return pieces;
}

bool EqualLines::Repeats(int rank, const std::string& line) {
  // What programs print on purpose from every rank is short.
  constexpr size_t kShort = 40;
  constexpr size_t kMostKept = 16;
  const std::string text(TextOf(line));
  if (text.size() < kShort) return false;
  const auto found =
      std::find_if(said_.begin(), said_.end(), [&](const Said& said) { return said.text == text; });
  if (found != said_.end() && found->first != rank && !found->told &&
      std::find(found->others.begin(), found->others.end(), rank) == found->others.end()) {
    found->others.push_back(rank);
    return true;
  }
  if (found != said_.end()) {
    // It is said again: another round begins.
    *found = {text, rank, {}, false};
    return false;
  }
  if (said_.size() == kMostKept) said_.erase(said_.begin());
  said_.push_back({text, rank, {}, false});
  return false;
}

std::string EqualLines::TakeFolded() {
  constexpr size_t kMostShown = 60;
  std::string lines;
  for (Said& said : said_) {
    if (said.others.empty()) continue;
    std::sort(said.others.begin(), said.others.end());
    const bool cut = said.text.size() > kMostShown;
    lines += fmt::format("[{}] the same as rank {}: {}{}\n", RangeText(said.others), said.first,
                         said.text.substr(0, kMostShown), cut ? "..." : "");
    said.others.clear();
    said.told = true;
  }
  return lines;
}

std::string RankOutput::Add(std::string_view bytes) {
  std::string text;
  for (std::string& line : lines_.Add(bytes)) text += Take(std::move(line));
  return text;
}

std::string RankOutput::Finish() {
  std::string text;
  if (auto line = lines_.Finish()) text += Take(*std::move(line));
  for (const auto& [rank, line] : std::exchange(begun_, {})) text += TakeRanks(rank, line);
  return text + equal_.TakeFolded() + CloseNotice();
}

// Hydra writes an empty line before its frame.
std::string RankOutput::TakeHydras(const std::string& line) {
  if (line.empty() || IsHydrasFrame(line)) return {};
  if (const int signal = SignalOf(line); signal != 0) {
    death_signal_ = signal;
    deaths_.emplace_back(-1, signal);
    return fmt::format("a rank was ended by signal {}\n", signal);
  }
  mpirun_spoke_ = true;
  return line + "\n";
}

// All pieces but the last go on in a later line.
std::string RankOutput::TakePieces(const std::vector<RankPiece>& pieces) {
  for (const RankPiece& piece : pieces) begun_[piece.rank] += piece.text;
  const int ended = pieces.back().rank;
  return TakeRanks(ended, begun_.extract(ended).mapped());
}

std::string RankOutput::TakeRanks(int rank, const std::string& line) {
  if (line == kVerdictMark) {
    told_verdict_ = true;
    return {};
  }
  if (line.starts_with(kProgressMark)) {
    progress_ = line.substr(1);
    return {};
  }
  rank_spoke_ = true;
  if (folds_ && equal_.Repeats(rank, line)) return {};
  const bool bare = prefix_ == RankPrefix::kOthers && rank == 0;
  return equal_.TakeFolded() + (bare ? line + "\n" : fmt::format("[{}] {}\n", rank, line));
}

std::string RankOutput::Take(std::string line) {
  if (const auto pieces = CutTags(line, launcher_); !pieces.empty()) return TakePieces(pieces);
  if (launcher_ == MpiLauncher::kMpich) return TakeHydras(line);
  if (IsRule(line)) {
    if (in_notice_) return CloseNotice();
    in_notice_ = true;
    return {};
  }
  if (in_notice_) {
    notice_.push_back(std::move(line));
    return {};
  }
  if (TellsOfASignalPassedOn(line)) return {};
  return line + "\n";
}

std::string RankOutput::CloseNotice() {
  const std::vector<std::string> notice = std::exchange(notice_, {});
  in_notice_ = false;
  // mpirun breaks its sentences where a line is full.
  const std::string sentences = fmt::format("{}", fmt::join(notice, " "));
  if (IsEcho(sentences)) return {};
  // Twenty lines that guess at the reason.
  if (const int rank = VanishedIn(sentences); rank >= 0) {
    vanished_ = rank;
    return fmt::format("rank {} has ended before the job, without an error\n", rank);
  }
  if (TellsOfAHostWithoutDaemon(sentences)) {
    mpirun_spoke_ = true;
    return "mpirun could not start its daemon on a host\n";
  }
  std::string text;
  for (const std::string& line : notice) text += line + "\n";
  mpirun_spoke_ = mpirun_spoke_ || (!notice.empty() && !TellsOfDeath(sentences));
  lost_host_ = lost_host_ || TellsOfALostHost(sentences);
  if (const auto death = DeathIn(sentences)) deaths_.push_back(*death);
  return text;
}

}  // namespace npumesh
