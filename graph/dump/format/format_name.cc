#include "graph/dump/format/format_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>
#include <vector>

#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

constexpr std::string_view kCsv = ".csv";
constexpr std::string_view kTo = "_To_";

std::vector<std::string_view> SplitAtDots(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t dot = text.find('.');
    parts.push_back(text.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    text.remove_prefix(dot + 1);
  }
}

std::optional<uint64_t> Digits(std::string_view text, int64_t max) {
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return std::nullopt;
  const Result<int64_t> value = ParseInt(text, 0, max, "number");
  if (!value.ok()) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

// All of `parts` as numbers; nullopt when one is not a number.
std::optional<std::vector<uint64_t>> Numbers(std::span<const std::string_view> parts) {
  std::vector<uint64_t> numbers;
  for (const std::string_view part : parts) {
    const auto number = Digits(part, std::numeric_limits<int64_t>::max());
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

bool FitsId(uint64_t number) {
  return number <= std::numeric_limits<uint32_t>::max();
}

}  // namespace

std::string SanitizedName(std::string_view name) {
  if (name.empty()) return "_";
  std::string result(name);
  for (char& c : result) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (control || c == ' ' || c == '.' || c == '/' || c == '\\') c = '_';
  }
  return result;
}

std::string DumpFileName::ToString() const {
  std::string text = fmt::format("{}.{}.{}", SanitizedName(op_type), SanitizedName(op_name), task);
  if (stream) text += fmt::format(".{}", *stream);
  text += fmt::format(".{}", time);
  if (subtask) text += fmt::format(".{}", fmt::join(*subtask, "."));
  if (stats) text += kCsv;
  return text;
}

std::optional<DumpFileName> ParseDumpFileName(std::string_view name) {
  DumpFileName result;
  if (name.ends_with(kCsv)) {
    result.stats = true;
    name.remove_suffix(kCsv.size());
  }
  const std::vector<std::string_view> parts = SplitAtDots(name);
  constexpr size_t kIds[] = {2, 3, 7};  // task time | task stream time | ... and a sub-task
  const bool known =
      parts.size() >= 2 && std::count(std::begin(kIds), std::end(kIds), parts.size() - 2) > 0;
  if (!known || parts[0].empty() || parts[1].empty()) return std::nullopt;
  const auto numbers = Numbers(std::span(parts).subspan(2));
  if (!numbers) return std::nullopt;
  const size_t time = numbers->size() == 2 ? 1 : 2;
  for (size_t i = 0; i < numbers->size(); ++i) {
    if (i != time && !FitsId((*numbers)[i])) return std::nullopt;
  }
  result.op_type = parts[0];
  result.op_name = parts[1];
  result.task = static_cast<uint32_t>((*numbers)[0]);
  if (time == 2) result.stream = static_cast<uint32_t>((*numbers)[1]);
  result.time = (*numbers)[time];
  if (numbers->size() == 7) {
    result.subtask.emplace();
    for (size_t i = 0; i < 4; ++i) (*result.subtask)[i] = static_cast<uint32_t>((*numbers)[3 + i]);
  }
  return result;
}

std::string JoinWatchedName(std::string_view layer, std::string_view watched) {
  return fmt::format("{}{}{}", layer, kTo, watched);
}

std::optional<WatchedName> ParseWatchedName(std::string_view op_name) {
  const size_t to = op_name.find(kTo);
  if (to == std::string_view::npos) return std::nullopt;
  return WatchedName{std::string(op_name.substr(0, to)),
                     std::string(op_name.substr(to + kTo.size()))};
}

std::string RankFolderName(int world_size, int rank) {
  return fmt::format("worldsize{}_global_rank{}", world_size, rank);
}

std::optional<RankFolder> ParseRankFolderName(std::string_view name) {
  constexpr std::string_view kWorld = "worldsize";
  constexpr std::string_view kRank = "_global_rank";
  const size_t middle = name.find(kRank);
  if (!name.starts_with(kWorld) || middle == std::string_view::npos) return std::nullopt;
  constexpr int64_t kMax = std::numeric_limits<int>::max();
  const auto size = Digits(name.substr(kWorld.size(), middle - kWorld.size()), kMax);
  const auto rank = Digits(name.substr(middle + kRank.size()), kMax);
  if (!size || !rank || *rank >= *size) return std::nullopt;
  return RankFolder{static_cast<int>(*size), static_cast<int>(*rank)};
}

std::string TimeFolderName(std::time_t time) {
  std::tm local{};
  localtime_r(&time, &local);
  return fmt::format("{:04}{:02}{:02}{:02}{:02}{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

std::string UtcTimestamp() {
  using std::chrono::microseconds;
  const auto now = std::chrono::system_clock::now();
  const auto since = std::chrono::duration_cast<microseconds>(now.time_since_epoch());
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}{:02}{:02}{:02}{:02}{:02}{:06}", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, since.count() % 1000000);
}

}  // namespace npumesh
