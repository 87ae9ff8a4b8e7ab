#include "runtime/base/files/named_path.h"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace npumesh {
namespace {

std::string Remedy(std::string_view remedy) {
  return remedy.empty() ? "" : fmt::format("; {}", remedy);
}

Status NothingThere(const std::string& path, int reason, std::string_view what,
                    std::string_view remedy) {
  if (reason == ENOENT) {
    return Error(Code::kNotFound, "{}: no such {}{}", path, what, Remedy(remedy));
  }
  if (reason == ENOTDIR) {
    return Error(Code::kNotFound, "{}: a part of this path is a file{}", path, Remedy(remedy));
  }
  return Error(Code::kInvalidArgument, "{} cannot be reached: {}", path,
               std::generic_category().message(reason));
}

}  // namespace

Status NeedFolder(const std::string& path, std::string_view remedy) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return NothingThere(path, errno, "folder", remedy);
  if (S_ISDIR(info.st_mode)) return Status();
  return Error(Code::kInvalidArgument, "{} is a file, not a folder{}", path, Remedy(remedy));
}

Status NeedAnything(const std::string& path, std::string_view remedy) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) return Status();
  return NothingThere(path, errno, "file or folder", remedy);
}

}  // namespace npumesh
