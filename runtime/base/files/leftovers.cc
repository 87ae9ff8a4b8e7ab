#include "runtime/base/files/leftovers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/files/path_lock.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

namespace stdfs = std::filesystem;

// Cuts ".<digits>" off the end of `name`. False: it does not end so.
bool CutNumber(std::string_view& name) {
  const size_t dot = name.rfind('.');
  if (dot == name.npos || dot + 1 == name.size()) return false;
  const std::string_view number = name.substr(dot + 1);
  if (!std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return false;
  }
  name = name.substr(0, dot);
  return true;
}

bool IsOwnFile(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid();
}

bool RemoveIfDead(const std::string& path) {
  if (!IsOwnFile(path)) return false;
  PathLock lock;
  return lock.Take(path) && unlink(path.c_str()) == 0;
}

}  // namespace

bool IsAsideName(std::string_view name) {
  constexpr std::string_view kEnd = ".tmp";
  if (!name.starts_with('.') || !name.ends_with(kEnd)) return false;
  name.remove_suffix(kEnd.size());
  // The name itself may end in a number.
  return CutNumber(name) && name.size() > 1;
}

std::vector<std::string> RemoveLeftovers(const std::string& folder, LeftoverDepth depth) {
  std::vector<std::string> removed;
  std::error_code error;
  const auto options = stdfs::directory_options::skip_permission_denied;
  for (stdfs::recursive_directory_iterator it(folder, options, error), end; !error && it != end;
       it.increment(error)) {
    if (depth == LeftoverDepth::kFolder) it.disable_recursion_pending();
    const std::string path = it->path().string();
    if (!IsAsideName(it->path().filename().string()) || !RemoveIfDead(path)) continue;
    removed.push_back(path);
  }
  return removed;
}

void ClearLeftoversOf(const std::string& folder, LeftoverDepth depth) {
  for (const std::string& path : RemoveLeftovers(folder, depth)) {
    NPUMESH_INFO("{} is removed: its writer was killed", path);
  }
}

}  // namespace npumesh
