#include "graph/export/staged_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "graph/export/folder_exchange.h"
#include "graph/export/package_layout.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

namespace stdfs = std::filesystem;

// Absolute and without "." or a slash at its end; symbolic links are left as they are.
std::string Absolute(const std::string& path) {
  std::error_code error;
  stdfs::path absolute = stdfs::absolute(path, error);
  if (error) absolute = path;
  std::string text = absolute.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

// Type bits of what stands at `path` itself; nullopt: nothing does.
std::optional<mode_t> TypeAt(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_mode & S_IFMT;
}

Status CheckType(const std::string& path, mode_t wanted) {
  const std::optional<mode_t> type = TypeAt(path);
  if (!type || *type == wanted) return Status();
  if (*type == S_IFLNK) {
    return Error(Code::kInvalidArgument,
                 "target file path {} should not be a symbolic link; name its target instead",
                 path);
  }
  return Error(Code::kInvalidArgument, "{} exists and is no {}", path,
               wanted == S_IFDIR ? "folder" : "regular file");
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Files below `folder`, relative to it. Graphs come last: who sees a new graph sees its weights.
std::vector<std::string> FilesBelow(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (stdfs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_regular_file()) {
      names.push_back(it->path().lexically_relative(folder).string());
    }
  }
  std::sort(names.begin(), names.end());
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return !name.ends_with(".air"); });
  return names;
}

}  // namespace

StagedFolder::Place StagedFolder::PlaceFor(const std::string& target) {
  const std::string path = Absolute(target);
  struct stat own;
  struct stat above;
  if (lstat(path.c_str(), &own) != 0) return Place::kBeside;
  const std::string parent = FolderOf(path);
  const bool moves = stat(parent.c_str(), &above) == 0 && own.st_dev == above.st_dev &&
                     path != parent && access(parent.c_str(), W_OK | X_OK) == 0;
  return moves ? Place::kBeside : Place::kIn;
}

StagedFolder::StagedFolder(const std::string& target, Place place, const std::string& token,
                           FileSystem& fs)
    : fs_(fs),
      target_(Absolute(target)),
      work_(place == Place::kIn ? WorkFolder::In(target_, token)
                                : WorkFolder::Beside(target_, token)),
      existed_(TypeAt(target_).has_value()) {}

StagedFolder::~StagedFolder() {
  if (!owner_) return;
  work_.Remove(fs_);
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) {
    // A folder that another process uses by now is not empty, and stays.
    const Status ignored = fs_.Remove(*folder);
    if (!ignored.ok()) NPUMESH_INFO("{}", ignored.message());
  }
}

Status StagedFolder::CheckTarget(const std::string& name) const {
  NPUMESH_RETURN_IF_ERROR(CheckType(target_, S_IFDIR));
  const std::string path = JoinPath(target_, name);
  if (FolderOf(path) != target_) NPUMESH_RETURN_IF_ERROR(CheckType(FolderOf(path), S_IFDIR));
  return CheckType(path, S_IFREG);
}

Status StagedFolder::CheckTargets(const std::vector<std::string>& names) const {
  NPUMESH_RETURN_IF_ERROR(CheckType(target_, S_IFDIR));
  for (const std::string& name : names) NPUMESH_RETURN_IF_ERROR(CheckTarget(name));
  return Status();
}

// Creates `path` and its missing parents, and remembers them.
Status StagedFolder::EnsureFolder(const std::string& path) {
  std::vector<std::string> missing;
  for (std::string at = path; !TypeAt(at) && at != FolderOf(at); at = FolderOf(at)) {
    missing.push_back(at);
  }
  for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder) {
    NPUMESH_RETURN_IF_ERROR(fs_.MakeFolder(*folder, FolderMode(FileKind::kData)));
    made_.push_back(*folder);
  }
  return Status();
}

Status StagedFolder::Open() {
  NPUMESH_RETURN_IF_ERROR(ClearLeftovers(target_, fs_));
  owner_ = true;
  NPUMESH_RETURN_IF_ERROR(EnsureFolder(FolderOf(work_.path)));
  NPUMESH_RETURN_IF_ERROR(fs_.MakeFolder(work_.path, FolderMode(FileKind::kTemporary)));
  const bool locked = lock_.Take(work_.path);
  auto file = fs_.Create(work_.owner_mark(), FileMode(FileKind::kTemporary));
  if (file.ok()) {
    if (!locked) NPUMESH_INFO("{} cannot be locked", work_.path);
    return (*file)->Close();
  }
  // A rank of another host, whose folder this one did not see yet, was first.
  if (!TypeAt(work_.owner_mark())) return file.status();
  owner_ = false;
  return Status();
}

bool StagedFolder::Visible() const {
  return TypeAt(work_.path) == S_IFDIR;
}

std::string StagedFolder::PathOf(const std::string& name) const {
  return JoinPath(work_.fresh(), name);
}

Result<std::unique_ptr<SecureFile>> StagedFolder::Start(const std::string& name) {
  const std::string path = PathOf(name);
  NPUMESH_RETURN_IF_ERROR(MakeFolders(FolderOf(path), FileKind::kData, fs_));
  return SecureFile::Create(path, FileKind::kData, fs_);
}

Status StagedFolder::Write(const std::string& name, std::string_view content) {
  NPUMESH_ASSIGN_OR_RETURN(const auto file, Start(name));
  NPUMESH_RETURN_IF_ERROR(file->Append(content));
  return file->Commit();
}

Status StagedFolder::Protect(const std::string& name) {
  std::error_code error;
  stdfs::permissions(PathOf(name), stdfs::perms::owner_read, error);
  if (!error) return Status();
  return Error(Code::kIo, "{}: permission 0400: {}", name, error.message());
}

Status StagedFolder::PublishFile(const std::string& name) {
  const std::string path = JoinPath(target_, name);
  NPUMESH_RETURN_IF_ERROR(EnsureFolder(FolderOf(path)));
  if (TypeAt(path)) {
    const std::string kept = JoinPath(work_.old(), name);
    NPUMESH_RETURN_IF_ERROR(MakeFolders(FolderOf(kept), FileKind::kTemporary, fs_));
    NPUMESH_RETURN_IF_ERROR(fs_.Rename(path, kept));
  }
  return fs_.Rename(JoinPath(work_.fresh(), name), path);
}

Status StagedFolder::PublishFileByFile(const std::vector<std::string>& names) {
  std::string journal;
  for (const std::string& name : names) journal += name + "\n";
  NPUMESH_RETURN_IF_ERROR(WriteFile(work_.journal(), journal, FileKind::kTemporary, fs_));
  published_ = Published::kReplaced;
  std::vector<std::string> folders = {target_};
  for (const std::string& name : names) {
    NPUMESH_RETURN_IF_ERROR(PublishFile(name));
    const std::string folder = FolderOf(JoinPath(target_, name));
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) {
      folders.push_back(folder);
    }
  }
  for (const std::string& folder : folders) NPUMESH_RETURN_IF_ERROR(fs_.SyncFolder(folder));
  return Status();
}

Result<bool> StagedFolder::PublishByExchange() {
  if (FolderOf(work_.path) == target_ || !CanTakePlaceOf(target_)) return false;
  Status status = CarryOver(target_, work_.fresh(), fs_);
  if (status.ok()) NPUMESH_RETURN_IF_ERROR(fs_.SyncFolder(work_.fresh()));
  if (status.ok()) status = Exchange(work_.fresh(), target_);
  if (!status.ok()) {
    NPUMESH_INFO("files are replaced one by one: {}", status.message());
    return false;
  }
  published_ = Published::kExchanged;
  NPUMESH_RETURN_IF_ERROR(fs_.SyncFolder(FolderOf(target_)));
  return true;
}

Status StagedFolder::PublishFolder() {
  NPUMESH_RETURN_IF_ERROR(CheckType(target_, S_IFDIR));
  NPUMESH_RETURN_IF_ERROR(fs_.Rename(work_.fresh(), target_));
  published_ = Published::kRenamed;
  return fs_.SyncFolder(FolderOf(target_));
}

Status StagedFolder::CheckPublished(const std::vector<std::string>& names) const {
  for (const std::string& name : names) NPUMESH_RETURN_IF_ERROR(CheckTarget(name));
  return Status();
}

Status StagedFolder::Publish() {
  Status status;
  if (!existed_) {
    status = PublishFolder();
  } else {
    const std::vector<std::string> names = FilesBelow(work_.fresh());
    status = CheckPublished(names);
    const Result<bool> exchanged = status.ok() ? PublishByExchange() : Result<bool>(status);
    status = exchanged.status();
    if (status.ok() && !*exchanged) status = PublishFileByFile(names);
  }
  if (!status.ok()) TakeBack();
  return status;
}

void StagedFolder::TakeBack() {
  Status back;
  if (published_ == Published::kRenamed) back = fs_.Rename(target_, work_.fresh());
  if (published_ == Published::kExchanged) back = Exchange(work_.fresh(), target_);
  if (published_ == Published::kReplaced) back = work_.TakeBack(fs_);
  published_ = Published::kNothing;
  if (back.ok()) return;
  NPUMESH_ERROR("{} could not be put back as it was: {}; the rest is in {}", target_,
                back.message(), work_.path);
  owner_ = false;  // what it was is still there for a person to look at
}

void StagedFolder::Keep() {
  if (published_ == Published::kExchanged) RescueLatecomers(work_.fresh(), target_, fs_);
  published_ = Published::kNothing;
  made_.clear();
}

}  // namespace npumesh
