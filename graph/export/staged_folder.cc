#include "graph/export/staged_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "graph/export/package_layout.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

namespace stdfs = std::filesystem;

constexpr std::string_view kAside = ".npumesh-export";
constexpr const char* kOwnerMark = ".owner";

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

StagedFolder::StagedFolder(const std::string& target, const std::string& token, FileSystem& fs)
    : fs_(fs), target_(Absolute(target)), existed_(TypeAt(target_).has_value()) {
  const std::string name = fmt::format("{}.{}", kAside, token);
  aside_ = existed_ ? JoinPath(target_, name) : JoinPath(FolderOf(target_), name);
  old_ = aside_ + ".old";
}

StagedFolder::~StagedFolder() {
  if (!owner_) return;
  RemoveTree(aside_);
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) {
    // A folder that somebody else uses by now is not empty, and stays.
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
  owner_ = true;
  NPUMESH_RETURN_IF_ERROR(EnsureFolder(FolderOf(aside_)));
  NPUMESH_RETURN_IF_ERROR(fs_.MakeFolder(aside_, FolderMode(FileKind::kTemporary)));
  const std::string mark = JoinPath(aside_, kOwnerMark);
  auto file = fs_.Create(mark, FileMode(FileKind::kTemporary));
  if (file.ok()) return (*file)->Close();
  // A rank of another host, whose folder this one did not see yet, was first.
  if (!TypeAt(mark)) return file.status();
  owner_ = false;
  return Status();
}

bool StagedFolder::Visible() const {
  return TypeAt(aside_) == S_IFDIR;
}

Result<std::unique_ptr<SecureFile>> StagedFolder::Start(const std::string& name) {
  const std::string path = JoinPath(aside_, name);
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
  stdfs::permissions(JoinPath(aside_, name), stdfs::perms::owner_read, error);
  if (!error) return Status();
  return Error(Code::kIo, "{}: permission 0400: {}", name, error.message());
}

Status StagedFolder::MoveFile(const std::string& from, const std::string& to) {
  NPUMESH_RETURN_IF_ERROR(fs_.Rename(from, to));
  moves_.push_back({from, to});
  return Status();
}

Status StagedFolder::PublishFile(const std::string& name) {
  NPUMESH_RETURN_IF_ERROR(CheckTarget(name));
  const std::string path = JoinPath(target_, name);
  NPUMESH_RETURN_IF_ERROR(EnsureFolder(FolderOf(path)));
  if (TypeAt(path)) {
    const std::string kept = JoinPath(old_, name);
    NPUMESH_RETURN_IF_ERROR(MakeFolders(FolderOf(kept), FileKind::kTemporary, fs_));
    NPUMESH_RETURN_IF_ERROR(MoveFile(path, kept));
  }
  return MoveFile(JoinPath(aside_, name), path);
}

Status StagedFolder::PublishInto(const std::vector<std::string>& names) {
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

Status StagedFolder::Publish() {
  Status status = fs_.Remove(JoinPath(aside_, kOwnerMark));
  if (status.ok() && existed_) status = PublishInto(FilesBelow(aside_));
  if (status.ok() && !existed_) {
    status = CheckType(target_, S_IFDIR);
    if (status.ok()) status = MoveFile(aside_, target_);
    if (status.ok()) status = fs_.SyncFolder(FolderOf(target_));
  }
  if (!status.ok()) TakeBack();
  return status;
}

void StagedFolder::TakeBack() {
  for (auto move = moves_.rbegin(); move != moves_.rend(); ++move) {
    const Status back = fs_.Rename(move->to, move->from);
    if (!back.ok()) {
      NPUMESH_ERROR("{} could not be put back to {}: {}", move->to, move->from, back.message());
    }
  }
  moves_.clear();
}

void StagedFolder::Keep() {
  moves_.clear();
  made_.clear();
}

// Leftovers are not worth failing for.
void StagedFolder::RemoveTree(const std::string& path) {
  for (const std::string& root : {path, path + ".old"}) {
    std::vector<std::string> found = {root};
    std::error_code error;
    for (stdfs::recursive_directory_iterator it(root, error), end; !error && it != end;
         it.increment(error)) {
      found.push_back(it->path().string());
    }
    for (auto each = found.rbegin(); each != found.rend(); ++each) {
      const Status removed = fs_.Remove(*each);
      if (!removed.ok()) NPUMESH_WARNING("{} stays behind: {}", *each, removed.message());
    }
  }
}

}  // namespace npumesh
