#include "runtime/base/files/secure_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "runtime/base/files/system_call.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// The maxima of the table in docs/security.md; dumped graphs and data are 600, program
// files 550.
constexpr std::array kPermissions = {
    Permission{FileKind::kConfig, "model_relation_config.json, numa_config.json", 0640, 0640, 0750},
    Permission{FileKind::kLog, "finished logs", 0640, 0440, 0750},
    Permission{FileKind::kDebug, "flight records, summaries", 0640, 0640, 0750},
    Permission{FileKind::kGraphDump, "dumped graphs", 0600, 0600, 0750},
    Permission{FileKind::kDataDump, "dumped tensors and their statistics", 0600, 0600, 0750},
    Permission{FileKind::kData,
               "exported graphs and weights, outputs, run reports, pictures, tuning records", 0640,
               0640, 0750},
    Permission{FileKind::kProgram, "packages of static kernels", 0550, 0550, 0750},
    Permission{FileKind::kKernel, "static kernels, their sources and records", 0600, 0600, 0700},
    Permission{FileKind::kTemporary, "intermediate files", 0640, 0640, 0750},
};

const Permission& PermissionOf(FileKind kind) {
  return *std::find_if(kPermissions.begin(), kPermissions.end(),
                       [kind](const Permission& row) { return row.kind == kind; });
}

// The folder part of `path`: "." for a bare name, "/" for a file of the root.
std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string NameOf(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Type bits of what stands at `path` itself, links not followed; nullopt: nothing is there.
std::optional<mode_t> TypeAt(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_mode & S_IFMT;
}

Status LinkRefused(const std::string& path, std::string_view what) {
  return Error(Code::kInvalidArgument,
               "refusing to write through {} {}: it is a symbolic link; name its target instead",
               what, path);
}

Status RefuseLink(const std::string& path, std::string_view what) {
  return TypeAt(path) == S_IFLNK ? LinkRefused(path, what) : Status();
}

Status CheckTarget(const std::string& path) {
  if (NameOf(path).empty()) {
    return Error(Code::kInvalidArgument, "cannot write \"{}\": it names no file", path);
  }
  NPUMESH_RETURN_IF_ERROR(RefuseLink(FolderOf(path), "folder"));
  const auto type = TypeAt(path);
  if (type == S_IFLNK) return LinkRefused(path, "file");
  if (type && *type != S_IFREG) {
    return Error(Code::kInvalidArgument, "cannot write {}: it exists and is not a regular file",
                 path);
  }
  return Status();
}

// A name beside `path` that nothing has. Thread ids are unique, so no other thread picks it; what a
// killed process left behind is stepped over.
std::string AsideOf(const std::string& path) {
  constexpr size_t kLongestStem = 200;  // leaves room in the 255 bytes of a file name
  const std::string stem = NameOf(path).substr(0, kLongestStem);
  const auto thread = static_cast<long>(syscall(SYS_gettid));
  for (int n = 0;; ++n) {
    std::string aside = fmt::format("{}/.{}.{}.{}.tmp", FolderOf(path), stem, thread, n);
    if (!TypeAt(aside)) return aside;
  }
}

// `path` and those of its parents that do not exist, outermost first.
std::vector<std::string> MissingFolders(std::string path) {
  std::vector<std::string> missing;
  struct stat info;
  while (stat(path.c_str(), &info) != 0) {
    missing.push_back(path);
    if (path == FolderOf(path)) break;  // the working folder itself is gone
    path = FolderOf(path);
  }
  std::reverse(missing.begin(), missing.end());
  return missing;
}

// Reads `fd` to its end, at most `max_bytes`.
Result<std::string> ReadAll(int fd, const std::string& path, uint64_t max_bytes) {
  struct stat info;
  if (fstat(fd, &info) != 0) return SystemError("inspect", path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Error(Code::kIo, "cannot read {}: it is not a regular file", path);
  }
  std::string content;
  // Files of /proc state no size, so the end is where read says it is.
  size_t chunk = std::clamp<size_t>(static_cast<size_t>(info.st_size) + 1, 4096, size_t{1} << 26);
  for (;;) {
    const size_t size = content.size();
    content.resize(size + chunk);
    const ssize_t got = read(fd, content.data() + size, chunk);
    const int reason = errno;
    content.resize(size + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && reason != EINTR) return SystemError("read", path, reason);
    if (got == 0) return content;
    if (content.size() > max_bytes) {
      return Error(Code::kCorrupt, "{} is longer than the {} bytes that are read at most", path,
                   max_bytes);
    }
  }
}

}  // namespace

std::span<const Permission> PermissionTable() {
  return kPermissions;
}

mode_t FileMode(FileKind kind) {
  return PermissionOf(kind).file;
}

mode_t FolderMode(FileKind kind) {
  return PermissionOf(kind).folder;
}

Status MakeFolders(const std::string& path, FileKind kind, FileSystem& fs) {
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (folder.empty()) return Error(Code::kInvalidArgument, "cannot create a folder without a name");
  NPUMESH_RETURN_IF_ERROR(RefuseLink(folder, "folder"));
  const std::vector<std::string> missing = MissingFolders(folder);
  if (missing.empty()) return fs.MakeFolder(folder, FolderMode(kind));
  for (const std::string& each : missing) {
    NPUMESH_RETURN_IF_ERROR(fs.MakeFolder(each, FolderMode(kind)));
  }
  return Status();
}

Status MakeFoldersBelow(const std::string& root, const std::string& below, FileKind kind,
                        FileSystem& fs) {
  NPUMESH_RETURN_IF_ERROR(MakeFolders(root, kind, fs));
  for (size_t end = 0; end < below.size(); ++end) {
    end = std::min(below.find('/', end), below.size());
    NPUMESH_RETURN_IF_ERROR(MakeFolders(root + "/" + below.substr(0, end), kind, fs));
  }
  return Status();
}

Result<std::unique_ptr<SecureFile>> SecureFile::Create(const std::string& path, FileKind kind,
                                                       FileSystem& fs) {
  NPUMESH_RETURN_IF_ERROR(CheckTarget(path));
  std::string aside = AsideOf(path);
  auto file = fs.Create(aside, PermissionOf(kind).finished);
  if (!file.ok()) return file.status().WithContext(path);
  return std::unique_ptr<SecureFile>(
      new SecureFile(path, std::move(aside), std::move(file).value(), fs));
}

SecureFile::SecureFile(std::string path, std::string aside, std::unique_ptr<WritableFile> file,
                       FileSystem& fs)
    : path_(std::move(path)), aside_(std::move(aside)), file_(std::move(file)), fs_(fs) {}

SecureFile::~SecureFile() {
  if (committed_) return;
  file_.reset();
  if (Status removed = fs_.Remove(aside_); !removed.ok()) {
    NPUMESH_WARNING("an unfinished file stays behind: {}", removed.message());
  }
}

Status SecureFile::Append(std::span<const std::byte> bytes) {
  return file_->Append(bytes).WithContext(path_);
}

Status SecureFile::Append(std::string_view text) {
  return Append(std::as_bytes(std::span(text)));
}

Status SecureFile::Commit() {
  NPUMESH_RETURN_IF_ERROR(file_->Sync().WithContext(path_));
  NPUMESH_RETURN_IF_ERROR(Publish());
  return fs_.SyncFolder(FolderOf(path_))
      .WithContext(fmt::format("{} is written, but may not survive a power failure", path_));
}

Status SecureFile::CommitUnsynced() {
  return Publish();
}

Status SecureFile::Publish() {
  NPUMESH_RETURN_IF_ERROR(file_->Close().WithContext(path_));
  // The target may have become a link since Create; rename would replace it, which the caller who
  // linked it does not expect.
  NPUMESH_RETURN_IF_ERROR(CheckTarget(path_));
  NPUMESH_RETURN_IF_ERROR(fs_.Rename(aside_, path_));
  committed_ = true;
  return Status();
}

Status WriteFile(const std::string& path, std::string_view content, FileKind kind, FileSystem& fs) {
  NPUMESH_ASSIGN_OR_RETURN(const auto file, SecureFile::Create(path, kind, fs));
  NPUMESH_RETURN_IF_ERROR(file->Append(content));
  return file->Commit();
}

Status AppendToFile(const std::string& path, std::string_view text, FileKind kind, FileSystem& fs) {
  NPUMESH_RETURN_IF_ERROR(CheckTarget(path));
  auto file = fs.OpenAtEnd(path, FileMode(kind));
  if (!file.ok()) return file.status().WithContext(path);
  NPUMESH_RETURN_IF_ERROR((*file)->Append(std::as_bytes(std::span(text))).WithContext(path));
  return (*file)->Close().WithContext(path);
}

Result<std::string> ReadFile(const std::string& path, uint64_t max_bytes) {
  // O_NONBLOCK: a pipe must be refused, not waited for.
  const int fd =
      Uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd < 0) {
    return SystemError("open", path, errno,
                       errno == ENOENT ? Code::kNotFound : Code::kInvalidArgument);
  }
  auto content = ReadAll(fd, path, max_bytes);
  close(fd);
  return content;
}

}  // namespace npumesh
