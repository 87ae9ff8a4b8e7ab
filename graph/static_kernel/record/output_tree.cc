#include "graph/static_kernel/record/output_tree.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

using std::chrono::microseconds;
using std::chrono::sys_time;

Status BuildDirRefused(const std::string& build_dir, std::string_view why) {
  return Error(Code::kInvalidArgument,
               "static kernels: build folder \"{}\" {}; name an existing folder that you may read "
               "and write, or none for the working folder",
               Quotable(build_dir), why);
}

Result<std::string> AbsoluteBuildDir(const std::string& build_dir) {
  if (build_dir.find('\0') != std::string::npos) {
    return BuildDirRefused(build_dir, "contains a NUL byte");
  }
  if (std::ranges::count(Split(build_dir, "/"), "..") > 0) {
    return BuildDirRefused(build_dir, "contains \"..\"");
  }
  if (build_dir.starts_with('/')) return build_dir;
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  if (error) return SystemError("find", "the working folder", error.value());
  return build_dir.empty() ? here : here + "/" + build_dir;
}

// Checks each component of an absolute path.
Status CheckBuildDir(const std::string& path) {
  std::string reached;
  for (const std::string_view name : Split(path, "/")) {
    if (name.empty()) continue;
    reached += fmt::format("/{}", name);
    struct stat info;
    if (lstat(reached.c_str(), &info) != 0) {
      return BuildDirRefused(
          path, fmt::format("cannot be found: {} of {}", std::generic_category().message(errno),
                            Quotable(reached)));
    }
    if (S_ISLNK(info.st_mode)) {
      return BuildDirRefused(path,
                             fmt::format("leads through the symbolic link {}", Quotable(reached)));
    }
    if (!S_ISDIR(info.st_mode)) {
      return BuildDirRefused(path,
                             fmt::format("needs a folder where {} is a file", Quotable(reached)));
    }
  }
  if (access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    return BuildDirRefused(path, "may not be read and written by this user");
  }
  return Status();
}

// "YYYYmmddHHMMSS", local time.
std::string LocalSeconds(std::time_t time) {
  std::tm local{};
  localtime_r(&time, &local);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%Y%m%d%H%M%S", &local));
}

// "YYYYmmddHHMMSSffffff", local time.
std::string LocalMicroseconds(sys_time<microseconds> time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{}{:06}", LocalSeconds(std::chrono::system_clock::to_time_t(seconds)),
                     (time - seconds).count());
}

// Makes "<timestamp>_<pid>_outputs" in `parent`, which must be new: FileSystem::MakeFolder would
// share one that is there.
Result<std::string> MakeNewOutputs(const std::string& parent, const OutputTree::Clock& now) {
  constexpr int kMostTries = 1000;
  sys_time<microseconds> time{};
  for (int n = 0; n < kMostTries; ++n) {
    time = std::max(std::chrono::floor<microseconds>(now()), time + microseconds(1));
    const std::string folder =
        fmt::format("{}/{}_{}_outputs", parent, LocalMicroseconds(time), getpid());
    if (mkdir(folder.c_str(), FolderMode(FileKind::kData)) == 0) return folder;
    if (errno != EEXIST) return SystemError("create folder", folder, errno);
  }
  return Error(Code::kIo, "cannot create a new folder in {}: {} names in a row are taken", parent,
               kMostTries);
}

}  // namespace

OutputTree::OutputTree(std::string folder, FileSystem& fs, Clock now)
    : folder_(std::move(folder)),
      fs_(&fs),
      now_(std::move(now)),
      chosen_{fmt::format("{}/{}", folder_, getpid())},
      debug_{fmt::format("{}/{}_debug", folder_, getpid())} {}

Status OutputTree::Check(const std::string& build_dir) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string root, AbsoluteBuildDir(build_dir));
  return CheckBuildDir(root);
}

Result<OutputTree> OutputTree::Create(const std::string& build_dir, FileSystem& fs, Clock now) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string root, AbsoluteBuildDir(build_dir));
  NPUMESH_RETURN_IF_ERROR(CheckBuildDir(root));
  const std::string outputs = fmt::format("{}/{}", root, kStaticKernelOutputs);
  NPUMESH_RETURN_IF_ERROR(MakeFolders(outputs, FileKind::kData, fs));
  NPUMESH_ASSIGN_OR_RETURN(std::string folder, MakeNewOutputs(outputs, now));
  OutputTree tree(std::move(folder), fs, std::move(now));
  NPUMESH_RETURN_IF_ERROR(tree.MakeKindFolders());
  return tree;
}

Status OutputTree::MakeKindFolders() {
  for (const Kind* kind : {&chosen_, &debug_}) {
    NPUMESH_RETURN_IF_ERROR(fs_->MakeFolder(kind->folder, FolderMode(FileKind::kData)));
  }
  return Status();
}

Status OutputTree::Add(const OpRecord& record, bool chosen) {
  if (chosen) NPUMESH_RETURN_IF_ERROR(AddTo(chosen_, record));
  return AddTo(debug_, record);
}

Status OutputTree::AddTo(Kind& kind, const OpRecord& record) {
  if (kind.written.contains(record.json)) return Status();
  const std::string path =
      fmt::format("{}/{}_{}.json", kind.folder, record.stem, kind.written.size());
  // Not synced: there is a file for each operator, and a run writes them again.
  NPUMESH_ASSIGN_OR_RETURN(const auto file, SecureFile::Create(path, FileKind::kData, *fs_));
  NPUMESH_RETURN_IF_ERROR(file->Append(record.json));
  NPUMESH_RETURN_IF_ERROR(file->CommitUnsynced());
  kind.written.insert(record.json);
  return Status();
}

std::string OutputTree::PackagePath() {
  const auto now = std::chrono::floor<std::chrono::seconds>(now_());
  last_package_ = std::max(now, last_package_ + std::chrono::seconds(1));
  return fmt::format("{}/static_kernel_{}.run", folder_,
                     LocalSeconds(std::chrono::system_clock::to_time_t(last_package_)));
}

}  // namespace npumesh
