#include "launch/validate/package_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "graph/export/package_layout.h"
#include "graph/export/work_folder.h"
#include "launch/ranks/model_choice.h"
#include "runtime/base/files/named_path.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

// No package has more ranks; a file name with a larger number is something else.
constexpr int kMostRanks = 65536;

// The files of a folder and, one level deep, of its folders.
Result<std::set<std::string>> NamesIn(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().lexically_relative(folder).string();
    std::error_code ignored;
    if (it->is_directory(ignored) && it.depth() > 0) it.disable_recursion_pending();
    if (name.starts_with(".npumesh-export") && it.depth() == 0 && it->is_directory(ignored)) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file(ignored)) {
      names.insert(name);
    }
  }
  if (error) return Error(Code::kIo, "cannot list {}: {}", folder, error.message());
  return names;
}

// What exports into the folder that were killed have left in it or beside it.
void ReportLeftovers(const std::string& folder, Findings* findings) {
  std::error_code error;
  std::string target = fs::absolute(folder, error).lexically_normal().string();
  if (error) return;
  if (target.size() > 1 && target.back() == '/') target.pop_back();
  for (const Leftover& leftover : LeftoversOf(target)) {
    const std::string path = fs::path(leftover.folder.path).lexically_relative(target).string();
    if (leftover.interrupted) {
      findings->Error(path,
                      "an export was killed while it replaced files of the package one by one, so "
                      "old and new ones stand side by side; export again, which first takes that "
                      "back");
    } else if (leftover.running) {
      findings->Warning(path, "an export into this folder is at work");
    } else {
      findings->Warning(path,
                        "left behind by an export that was killed; the package is whole, and the "
                        "next export into it removes this folder");
    }
  }
}

// The numbered files that share a name, by number.
using Series = std::map<int, std::string>;

// ".air", or ".om" in a folder of offline models, which has no graphs.
std::string_view EndOfModels(const std::set<std::string>& names) {
  const auto ends = [&names](std::string_view end) {
    return std::any_of(names.begin(), names.end(), [end](const std::string& name) {
      return name.ends_with(end) && name.find('/') == name.npos;
    });
  };
  return !ends(".air") && ends(".om") ? ".om" : ".air";
}

// Series of files of models, and those without a number.
std::map<std::string, Series> SeriesOf(const std::set<std::string>& names,
                                       std::vector<std::string>* single) {
  const std::string_view end = EndOfModels(names);
  std::map<std::string, Series> series;
  for (const std::string& name : names) {
    if (!name.ends_with(end) || name.find('/') != name.npos) continue;
    const NumberedName parts = SplitNumber(name);
    if (parts.number && *parts.number < kMostRanks) {
      series[parts.prefix][*parts.number] = name;
    } else {
      single->push_back(name);
    }
  }
  return series;
}

bool HasRankFolder(const std::set<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.starts_with("rank_"); });
}

void TakeSeries(const Series& series, const std::string& prefix, PackageFiles* files,
                Findings* findings) {
  files->distributed = true;
  files->airs.resize(static_cast<size_t>(series.rbegin()->first) + 1);
  for (const auto& [number, name] : series) files->airs[static_cast<size_t>(number)] = name;
  for (size_t rank = 0; rank < files->airs.size(); ++rank) {
    if (!files->airs[rank].empty()) continue;
    const std::string end = SplitNumber(series.rbegin()->second).extension;
    findings->Error(fmt::format("{}{}{}", prefix, rank, end),
                    fmt::format("missing: the package has {}, so it is for {} ranks",
                                series.rbegin()->second, files->airs.size()));
  }
}

}  // namespace

std::string PackageFiles::TextOf(int rank) const {
  return (distributed ? fmt::format("rank_{}/", rank) : "").append(kPbtxtName);
}

Result<PackageFiles> ListPackage(const std::string& folder, Findings* findings) {
  NPUMESH_RETURN_IF_ERROR(NeedFolder(folder, "name the folder of a package"));
  PackageFiles files;
  files.folder = folder;
  while (files.folder.size() > 1 && files.folder.back() == '/') files.folder.pop_back();
  NPUMESH_ASSIGN_OR_RETURN(files.names, NamesIn(folder));
  ReportLeftovers(files.folder, findings);
  std::vector<std::string> single;
  const std::map<std::string, Series> series = SeriesOf(files.names, &single);
  // A lone file may end in a digit that is no rank.
  const bool lone = series.size() == 1 && series.begin()->second.size() == 1 &&
                    !HasRankFolder(files.names) && !files.Has(std::string(kRelationConfigName));
  if (lone && single.empty()) {
    files.airs = {series.begin()->second.begin()->second};
  } else if (!series.empty()) {
    TakeSeries(series.begin()->second, series.begin()->first, &files, findings);
    for (auto it = std::next(series.begin()); it != series.end(); ++it) {
      findings->Warning(it->second.begin()->second,
                        fmt::format("belongs to another export than {}; it is not checked",
                                    series.begin()->second.begin()->second));
    }
  } else if (!single.empty()) {
    files.airs = {single.front()};
    single.erase(single.begin());
  }
  for (const std::string& name : single) {
    findings->Warning(
        name, fmt::format("is one graph more beside {}; it is not checked", files.airs.front()));
  }
  if (!files.airs.empty()) return files;
  return Error(Code::kInvalidArgument, "{}: no .air or .om file; a package has one for each rank",
               folder);
}

}  // namespace npumesh
