#include "graph/static_kernel/store/builder_folder.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "graph/static_kernel/store/kernel_lock.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// No builder writes nothing into its folder for so long: it was on a host that is gone.
constexpr int64_t kAbandonedSeconds = 24 * 3600;
// Members of a LockOwner after the host's name, which may have dots, and the number.
constexpr int kDotsAfterHost = 5;

// "<host>.<boot>.<pid>.<start>.<space>.<n>" says who works there.
std::optional<LockOwner> BuilderNamed(std::string name) {
  size_t end = std::string::npos;
  for (int k = 0; k < kDotsAfterHost; ++k) {
    const size_t dot = name.rfind('.', end);
    if (dot == std::string::npos || dot == 0) return std::nullopt;
    name[dot] = ' ';
    end = dot - 1;
  }
  return LockOwner::Parse(std::string_view(name).substr(0, name.rfind(' ')));
}

std::string NameOfBuilder(const LockOwner& owner) {
  std::string name = owner.ToString();
  std::replace(name.begin(), name.end(), ' ', '.');
  return name;
}

bool IsAbandoned(const std::string& folder) {
  struct stat info;
  return lstat(folder.c_str(), &info) == 0 && time(nullptr) - info.st_mtime > kAbandonedSeconds;
}

struct OtherBuilder {
  std::string path;
  bool gone;
};

std::vector<OtherBuilder> BuildersIn(const std::string& parent) {
  std::vector<OtherBuilder> builders;
  std::error_code error;
  for (std::filesystem::directory_iterator it(parent, error), end; !error && it != end;
       it.increment(error)) {
    const auto owner = BuilderNamed(it->path().filename().string());
    const std::string path = it->path().string();
    if (owner) builders.push_back({path, owner->gone() || IsAbandoned(path)});
  }
  return builders;
}

}  // namespace

// The thread's number makes the name that of no other builder; what this thread left behind when a
// folder could not be removed is stepped over.
Result<BuilderFolder> BuilderFolder::Make(const std::string& parent, FileSystem& fs) {
  const std::string name = NameOfBuilder(LockOwner::Me());
  struct stat info;
  for (int n = 0;; ++n) {
    std::string path = fmt::format("{}/{}.{}-{}", parent, name, syscall(SYS_gettid), n);
    if (lstat(path.c_str(), &info) == 0) continue;
    NPUMESH_RETURN_IF_ERROR(fs.MakeFolder(path, FolderMode(FileKind::kKernel)));
    return BuilderFolder(std::move(path));
  }
}

void BuilderFolder::Remove() {
  if (path_.empty()) return;
  std::error_code error;
  std::filesystem::remove_all(path_, error);
  if (error) NPUMESH_WARNING("a work folder stays behind: {}: {}", path_, error.message());
}

std::vector<std::string> RemoveDeadBuilders(const std::string& parent) {
  std::vector<std::string> removed;
  for (const OtherBuilder& builder : BuildersIn(parent)) {
    std::error_code error;
    if (!builder.gone) continue;
    std::filesystem::remove_all(builder.path, error);
    if (!error) removed.push_back(builder.path);
  }
  std::sort(removed.begin(), removed.end());
  return removed;
}

bool HasLivingBuilder(const std::string& parent) {
  const auto builders = BuildersIn(parent);
  return std::any_of(builders.begin(), builders.end(),
                     [](const OtherBuilder& builder) { return !builder.gone; });
}

}  // namespace npumesh
