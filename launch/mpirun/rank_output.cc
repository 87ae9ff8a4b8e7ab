#include "launch/mpirun/rank_output.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "launch/screen/progress_line.h"
#include "runtime/base/parse.h"

namespace npumesh {
namespace {

bool IsRule(std::string_view line) {
  return line.size() >= 40 && line.find_first_not_of('-') == std::string_view::npos;
}

std::optional<int> RankIn(std::string_view text) {
  const Result<int64_t> rank = ParseInt(text, 0, std::numeric_limits<int>::max(), "rank");
  return rank.ok() ? std::optional(static_cast<int>(*rank)) : std::nullopt;
}

// "[12] text": the tag that MPICH is told to write.
std::optional<RankLine> CutShortTag(std::string_view line) {
  const size_t close = line.find("] ");
  if (!line.starts_with('[') || close == std::string_view::npos) return std::nullopt;
  const std::optional<int> rank = RankIn(line.substr(1, close - 1));
  if (!rank) return std::nullopt;
  return RankLine{*rank, std::string(line.substr(close + 2))};
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

// mpirun tags every piece that it reads, and a line that was written in pieces, as the trace of a
// crash is, has the tag before each.
std::string Without(std::string_view tag, std::string_view text) {
  std::string rest(text);
  for (size_t at = 0; (at = rest.find(tag, at)) != std::string::npos;) rest.erase(at, tag.size());
  return rest;
}

bool TellsOfDeath(std::string_view notice) {
  return notice.find("exited on signal") != std::string_view::npos;
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

std::optional<RankLine> CutTag(std::string_view line, MpiLauncher launcher) {
  if (launcher == MpiLauncher::kMpich) return CutShortTag(line);
  if (!line.starts_with('[')) return std::nullopt;
  const size_t comma = line.find(',');
  const size_t close = line.find(']');
  if (comma == std::string_view::npos || close == std::string_view::npos || comma > close) {
    return std::nullopt;
  }
  const std::string_view rank = line.substr(comma + 1, close - comma - 1);
  const std::string_view rest = line.substr(close + 1);
  const std::optional<int> number = RankIn(rank);
  if (!number) return std::nullopt;
  for (const std::string_view stream : {"<stdout>:", "<stderr>:"}) {
    if (!rest.starts_with(stream)) continue;
    const std::string_view text = rest.substr(stream.size());
    const bool blank = launcher == MpiLauncher::kOpenMpi5 && text.starts_with(' ');
    const std::string_view tag = line.substr(0, close + 1 + stream.size() + (blank ? 1 : 0));
    return RankLine{*number, Without(tag, line.substr(tag.size()))};
  }
  return std::nullopt;
}

std::string RankOutput::Add(std::string_view bytes) {
  std::string text;
  for (std::string& line : lines_.Add(bytes)) text += Take(std::move(line));
  return text;
}

std::string RankOutput::Finish() {
  std::string text;
  if (auto line = lines_.Finish()) text += Take(*std::move(line));
  return text + CloseNotice();
}

// Hydra writes an empty line before its frame.
std::string RankOutput::TakeHydras(const std::string& line) {
  if (line.empty() || IsHydrasFrame(line)) return {};
  if (const int signal = SignalOf(line); signal != 0) {
    death_signal_ = signal;
    return fmt::format("a rank was ended by signal {}\n", signal);
  }
  mpirun_spoke_ = true;
  return line + "\n";
}

std::string RankOutput::TakeRanks(const RankLine& line) {
  if (line.text.starts_with(kProgressMark)) {
    progress_ = line.text.substr(1);
    return {};
  }
  rank_spoke_ = true;
  const bool bare = prefix_ == RankPrefix::kOthers && line.rank == 0;
  return bare ? line.text + "\n" : fmt::format("[{}] {}\n", line.rank, line.text);
}

std::string RankOutput::Take(std::string line) {
  if (const std::optional<RankLine> tagged = CutTag(line, launcher_)) return TakeRanks(*tagged);
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
  return line + "\n";
}

std::string RankOutput::CloseNotice() {
  const std::vector<std::string> notice = std::exchange(notice_, {});
  in_notice_ = false;
  // mpirun breaks its sentences where a line is full.
  const std::string sentences = fmt::format("{}", fmt::join(notice, " "));
  if (IsEcho(sentences)) return {};
  std::string text;
  for (const std::string& line : notice) text += line + "\n";
  mpirun_spoke_ = mpirun_spoke_ || (!notice.empty() && !TellsOfDeath(sentences));
  return text;
}

}  // namespace npumesh
