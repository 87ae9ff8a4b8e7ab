#include "graph/dump/options/settings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

constexpr size_t kMaxStepRanges = 100;

Result<uint64_t> ParseStep(std::string_view text, std::string_view key) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t step,
                           ParseInt(text, 0, std::numeric_limits<int64_t>::max(), key));
  return static_cast<uint64_t>(step);
}

}  // namespace

std::vector<Statistic> DefaultStatistics() {
  return {Statistic::kMax, Statistic::kMin,         Statistic::kAvg,
          Statistic::kNan, Statistic::kNegativeInf, Statistic::kPositiveInf};
}

Result<StepSet> StepSet::Parse(std::string_view text, bool equal_ends, std::string_view key) {
  StepSet steps;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t bar = rest.find('|');
    const std::string_view part = rest.substr(0, bar);
    rest.remove_prefix(bar == std::string_view::npos ? rest.size() : bar + 1);
    const size_t dash = part.find('-');
    NPUMESH_ASSIGN_OR_RETURN(const uint64_t first, ParseStep(part.substr(0, dash), key));
    uint64_t last = first;
    if (dash != std::string_view::npos) {
      NPUMESH_ASSIGN_OR_RETURN(last, ParseStep(part.substr(dash + 1), key));
      if (last < first || (last == first && !equal_ends)) {
        return Error(Code::kInvalidArgument,
                     "{} is \"{}\": the range \"{}\" does not rise; write for example \"0|3-5|10\"",
                     key, text, part);
      }
    }
    steps.ranges_.emplace_back(first, last);
  }
  if (steps.ranges_.size() > kMaxStepRanges) {
    return Error(Code::kInvalidArgument, "{} has {} numbers and ranges, at most {} are possible",
                 key, steps.ranges_.size(), kMaxStepRanges);
  }
  return steps;
}

bool StepSet::Contains(uint64_t step) const {
  return ranges_.empty() || std::any_of(ranges_.begin(), ranges_.end(), [step](const auto& range) {
           return range.first <= step && step <= range.second;
         });
}

Status CheckDumpFolder(const std::string& path, std::string_view key) {
  struct stat info;
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (lstat(folder.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    return Error(Code::kInvalidArgument, "{} is \"{}\", a symbolic link; name its target instead",
                 key, path);
  }
  if (stat(path.c_str(), &info) != 0) {
    return Error(Code::kInvalidArgument, "{} is \"{}\": {}; create the folder first", key, path,
                 std::strerror(errno));
  }
  if (!S_ISDIR(info.st_mode)) {
    return Error(Code::kInvalidArgument, "{} is \"{}\", which is not a folder", key, path);
  }
  if (access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    return Error(Code::kInvalidArgument, "{} is \"{}\", which this user cannot read and write: {}",
                 key, path, std::strerror(errno));
  }
  return Status();
}

}  // namespace npumesh
