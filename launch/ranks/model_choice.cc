#include "launch/ranks/model_choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>

#include "runtime/base/files/named_path.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

// "nothing", or up to eight names and how many more there are.
std::string Listing(std::vector<std::string> names) {
  constexpr size_t kMost = 8;
  if (names.empty()) return "nothing";
  std::sort(names.begin(), names.end());
  const size_t shown = std::min(names.size(), kMost);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

Result<std::vector<std::string>> FilesOf(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) names.push_back(it->path().filename().string());
  }
  if (error) return Error(Code::kIo, "cannot list {}: {}", folder.string(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

// The highest number among the files that differ from `chosen` in their number only; -1: none.
int HighestNumber(const NumberedName& chosen, const std::vector<std::string>& names) {
  int highest = -1;
  for (const std::string& name : names) {
    const NumberedName other = SplitNumber(name);
    if (other.prefix != chosen.prefix || other.extension != chosen.extension) continue;
    highest = std::max(highest, other.number.value_or(-1));
  }
  return highest;
}

// An export made for more ranks than there are would wait for ranks that never come.
Status CheckEnoughRanks(const NumberedName& chosen, const std::vector<std::string>& names,
                        int size) {
  const int highest = HighestNumber(chosen, names);
  if (highest < size) return Status();
  return Error(Code::kInvalidArgument,
               "the export has {}{}{}, so it is for {} ranks, but {} were started; start {} ranks: "
               "npumesh launch -n {} --",
               chosen.prefix, highest, chosen.extension, highest + 1, size, highest + 1,
               highest + 1);
}

}  // namespace

NumberedName SplitNumber(const std::string& file_name) {
  const fs::path path(file_name);
  const std::string stem = path.stem().string();
  NumberedName parts{stem, std::nullopt, path.extension().string()};
  const size_t last_other = stem.find_last_not_of("0123456789");
  const size_t digits = last_other == std::string::npos ? 0 : last_other + 1;
  const Result<int64_t> number =
      ParseInt(std::string_view(stem).substr(digits), 0, std::numeric_limits<int>::max(), "rank");
  if (digits == stem.size() || !number.ok()) return parts;
  parts.prefix = stem.substr(0, digits);
  parts.number = static_cast<int>(*number);
  return parts;
}

Result<std::string> ChooseFromFolder(const std::vector<std::string>& names, int rank, int size) {
  std::vector<std::string> models;
  std::vector<std::string> mine;
  // A folder of offline models is one without graphs.
  const bool graphs = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return SplitNumber(name).extension == ".air";
  });
  for (const std::string& name : names) {
    const NumberedName parts = SplitNumber(name);
    if (parts.extension != (graphs ? ".air" : ".om")) continue;
    models.push_back(name);
    if (parts.number == rank) mine.push_back(name);
  }
  if (size == 1 && models.size() == 1) return models[0];
  if (mine.empty()) {
    return Error(Code::kNotFound,
                 "no .air whose name ends in {}; found {}, expected one file for each of {} ranks "
                 "(a name ending in the rank), or name one file to run it on every rank",
                 rank, Listing(models), size);
  }
  if (mine.size() > 1) {
    return Error(Code::kInvalidArgument, "{} files for rank {}: {}; name one of them", mine.size(),
                 rank, Listing(mine));
  }
  NPUMESH_RETURN_IF_ERROR(CheckEnoughRanks(SplitNumber(mine[0]), models, size));
  return mine[0];
}

Result<std::string> ChooseSibling(const std::string& name, const std::vector<std::string>& names,
                                  int rank, int size) {
  const NumberedName named = SplitNumber(name);
  if (size == 1 || !named.number) return name;
  for (const std::string& candidate : names) {
    const NumberedName parts = SplitNumber(candidate);
    const bool sibling = parts.prefix == named.prefix && parts.extension == named.extension;
    if (!sibling || parts.number != rank) continue;
    NPUMESH_RETURN_IF_ERROR(CheckEnoughRanks(named, names, size));
    return candidate;
  }
  return Error(Code::kNotFound,
               "no file for rank {}: {} ends in a rank, so rank {} of {} needs {}{}{} beside it, "
               "which is not there",
               rank, name, rank, size, named.prefix, rank, named.extension);
}

Result<std::string> ChooseModelFile(const std::string& path, int rank, int size) {
  std::error_code error;
  const fs::path given(path);
  const fs::file_status status = fs::status(given, error);
  NPUMESH_RETURN_IF_ERROR(NeedAnything(path));
  const bool is_folder = fs::is_directory(status);
  const fs::path folder = is_folder ? path : FolderOf(path);
  Result<std::vector<std::string>> names = FilesOf(folder);
  if (!names.ok()) return names.status();
  const Result<std::string> chosen =
      is_folder ? ChooseFromFolder(*names, rank, size)
                : ChooseSibling(given.filename().string(), *names, rank, size);
  if (!chosen.ok()) return chosen.status().WithContext(path);
  return is_folder || *chosen != given.filename().string() ? (folder / *chosen).string() : path;
}

std::string FolderOf(const std::string& file) {
  const std::string folder = fs::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

int RanksOfExport(const std::string& file) {
  const NumberedName named = SplitNumber(fs::path(file).filename().string());
  const Result<std::vector<std::string>> names = FilesOf(FolderOf(file));
  return named.number && names.ok() ? HighestNumber(named, *names) + 1 : 1;
}

}  // namespace npumesh
