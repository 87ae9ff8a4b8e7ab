#include "graph/export/work_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "graph/export/folder_exchange.h"
#include "graph/export/package_layout.h"
#include "runtime/base/files/path_lock.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

namespace stdfs = std::filesystem;

constexpr std::string_view kPrefix = ".npumesh-export.";
constexpr size_t kLongestStem = 120;  // leaves room in the 255 bytes of a file name
constexpr uint64_t kLongestJournal = uint64_t{256} << 20;

std::string StemOf(const std::string& target) {
  const std::string name = stdfs::path(target).filename().string();
  return fmt::format("{}{}.", kPrefix, name.substr(0, kLongestStem));
}

std::string ParentOf(const std::string& path) {
  return stdfs::path(path).parent_path().string();
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// A name of a journal stays in the target, whatever wrote the journal.
Status CheckJournalled(const std::string& name, const std::string& journal) {
  const stdfs::path path(name);
  const bool up = std::find(path.begin(), path.end(), "..") != path.end();
  if (!name.empty() && path.is_relative() && !up) return Status();
  return Error(Code::kCorrupt, "{}: \"{}\" is no file of the package", journal, name);
}

// Each step leaves a state from which the same steps lead to the same end.
Status TakeBackFile(const WorkFolder& folder, const std::string& name, FileSystem& fs) {
  const std::string at = JoinPath(folder.target, name);
  const std::string fresh = JoinPath(folder.fresh(), name);
  const std::string old = JoinPath(folder.old(), name);
  if (!Exists(fresh) && Exists(at)) NPUMESH_RETURN_IF_ERROR(fs.Rename(at, fresh));
  return Exists(old) ? fs.Rename(old, at) : Status();
}

// The work folders in `place` whose names begin with `stem`.
void AddLeftovers(const std::string& place, std::string_view stem, const std::string& target,
                  std::vector<Leftover>& leftovers) {
  std::error_code error;
  for (stdfs::directory_iterator it(place, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const std::string path = it->path().string();
    const bool folder = it->symlink_status(ignored).type() == stdfs::file_type::directory;
    if (!folder || !it->path().filename().string().starts_with(stem)) continue;
    Leftover& leftover = leftovers.emplace_back(Leftover{{path, target}});
    leftover.running = !PathLock().Take(path);
    leftover.interrupted = !leftover.running && Exists(leftover.folder.journal());
  }
}

}  // namespace

WorkFolder WorkFolder::Beside(const std::string& target, const std::string& token) {
  return {JoinPath(ParentOf(target), StemOf(target) + token), target};
}

WorkFolder WorkFolder::In(const std::string& target, const std::string& token) {
  return {JoinPath(target, StemOf(target) + token), target};
}

Status WorkFolder::TakeBack(FileSystem& fs) const {
  if (!Exists(journal())) return Status();
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, ReadFile(journal(), kLongestJournal));
  const std::vector<std::string> names = LinesOf(text);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    NPUMESH_RETURN_IF_ERROR(CheckJournalled(*name, journal()));
    NPUMESH_RETURN_IF_ERROR(TakeBackFile(*this, *name, fs));
  }
  return fs.Remove(journal());
}

// The journal first: without it no export takes back what the rest is needed for.
void WorkFolder::Remove(FileSystem& fs) const {
  if (const Status status = fs.Remove(journal()); !status.ok()) {
    NPUMESH_WARNING("{} stays behind: {}", path, status.message());
    return;
  }
  std::vector<std::string> found = {path};
  std::error_code error;
  for (stdfs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    found.push_back(it->path().string());
  }
  for (auto each = found.rbegin(); each != found.rend(); ++each) {
    const Status removed = fs.Remove(*each);
    if (!removed.ok()) NPUMESH_WARNING("{} stays behind: {}", *each, removed.message());
  }
}

std::vector<Leftover> LeftoversOf(const std::string& target) {
  std::vector<Leftover> leftovers;
  for (const std::string& place : {ParentOf(target), target}) {
    AddLeftovers(place, StemOf(target), target, leftovers);
  }
  return leftovers;
}

std::vector<Leftover> WorkFoldersIn(const std::string& place) {
  std::vector<Leftover> leftovers;
  AddLeftovers(place, kPrefix, "", leftovers);
  return leftovers;
}

Status ClearLeftovers(const std::string& target, FileSystem& fs) {
  for (const Leftover& leftover : LeftoversOf(target)) {
    if (leftover.running) continue;
    const WorkFolder& folder = leftover.folder;
    if (leftover.interrupted) {
      NPUMESH_RETURN_IF_ERROR(
          folder.TakeBack(fs).WithContext("taking back an export that was killed"));
      NPUMESH_WARNING("{}: an export that was killed in the middle is taken back", target);
    }
    folder.Remove(fs);
    NPUMESH_INFO("{} of an export that was killed is removed", folder.path);
  }
  return Status();
}

}  // namespace npumesh
