#include "graph/export/folder_exchange.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "graph/export/package_layout.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

namespace stdfs = std::filesystem;

// The working folder is `folder` or lies in it; unknown counts as yes.
bool WorksIn(const std::string& folder) {
  std::error_code error;
  const stdfs::path here = stdfs::current_path(error);
  if (error) return true;
  const stdfs::path real = stdfs::canonical(folder, error);
  if (error) return true;
  const stdfs::path relative = here.lexically_relative(real);
  return !relative.empty() && *relative.begin() != "..";
}

Status CarryFile(const std::string& from, const std::string& to) {
  if (Exists(to)) return Status();
  if (link(from.c_str(), to.c_str()) == 0) return Status();
  return SystemError("link", to, errno);
}

Status CarryFolder(const std::string& from, const std::string& to, FileSystem& fs) {
  struct stat info;
  if (stat(from.c_str(), &info) != 0) return SystemError("inspect", from, errno);
  NPUMESH_RETURN_IF_ERROR(fs.MakeFolder(to, info.st_mode & 07777));
  if (chmod(to.c_str(), info.st_mode & 07777) == 0) return Status();
  return SystemError("set permissions of", to, errno);
}

}  // namespace

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

bool CanTakePlaceOf(const std::string& target) {
  const std::string parent = stdfs::path(target).parent_path().string();
  struct stat own;
  struct stat above;
  if (parent == target || lstat(target.c_str(), &own) != 0 || stat(parent.c_str(), &above) != 0) {
    return false;
  }
  return own.st_dev == above.st_dev && own.st_uid == geteuid() && own.st_gid == getegid() &&
         access(parent.c_str(), W_OK | X_OK) == 0 && !WorksIn(target);
}

Status CarryOver(const std::string& target, const std::string& fresh, FileSystem& fs) {
  size_t carried = 0;
  NPUMESH_RETURN_IF_ERROR(CarryFolder(target, fresh, fs));
  std::error_code error;
  for (stdfs::recursive_directory_iterator it(target, error), end; !error && it != end;
       it.increment(error)) {
    const std::string from = it->path().string();
    const std::string to = JoinPath(fresh, it->path().lexically_relative(target).string());
    std::error_code ignored;  // then it is neither
    const stdfs::file_type type = it->symlink_status(ignored).type();
    if (++carried > kMostCarried) {
      return Error(Code::kUnsupported, "{} holds more than {} files", target, kMostCarried);
    }
    if (type == stdfs::file_type::directory) {
      NPUMESH_RETURN_IF_ERROR(CarryFolder(from, to, fs));
    } else if (type == stdfs::file_type::regular) {
      NPUMESH_RETURN_IF_ERROR(CarryFile(from, to));
    } else {
      return Error(Code::kUnsupported, "{} is neither file nor folder", from);
    }
  }
  if (error) return Error(Code::kIo, "cannot list {}: {}", target, error.message());
  return Status();
}

void RescueLatecomers(const std::string& old, const std::string& target, FileSystem& fs) {
  std::error_code error;
  for (stdfs::recursive_directory_iterator it(old, error), end; !error && it != end;
       it.increment(error)) {
    const std::string to = JoinPath(target, it->path().lexically_relative(old).string());
    if (Exists(to)) continue;
    it.disable_recursion_pending();
    const Status moved = fs.Rename(it->path().string(), to);
    if (!moved.ok()) NPUMESH_WARNING("{} is lost: {}", to, moved.message());
  }
}

Status Exchange(const std::string& a, const std::string& b) {
  if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return Status();
  const bool unsupported = errno == EINVAL || errno == ENOSYS || errno == EXDEV || errno == EBUSY;
  return SystemError("exchange", b, errno, unsupported ? Code::kUnsupported : Code::kIo);
}

}  // namespace npumesh
