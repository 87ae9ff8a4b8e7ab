#include "graph/static_kernel/store/kernel_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <limits>
#include <utility>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/files/system_call.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/files/unique_fd.h"
#include "runtime/base/process/host_name.h"
#include "runtime/base/process/process_state.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

// After it, a lock that cannot be read is that of a dead writer.
constexpr int64_t kUnreadableSeconds = 10;
constexpr uint64_t kMostOfLock = 4096;

// The number of blanks between the name in parentheses of /proc/<pid>/stat and field 22.
constexpr size_t kFieldsBeforeStart = 20;

// 0: there is no such process, or the system does not tell.
uint64_t StartOf(int pid) {
  const auto text = ReadFile(fmt::format("/proc/{}/stat", pid), kMostOfLock);
  if (!text.ok()) return 0;
  const size_t end = text->rfind(')');
  if (end == std::string::npos) return 0;
  const auto fields = Split(std::string_view(*text).substr(end + 1), " ");
  if (fields.size() <= kFieldsBeforeStart) return 0;
  const auto ticks =
      ParseInt(fields[kFieldsBeforeStart], 0, std::numeric_limits<int64_t>::max(), "start time");
  return ticks.ok() ? static_cast<uint64_t>(*ticks) : 0;
}

// A word even where the system does not tell.
std::string BootWord() {
  std::string id = BootId();
  return id.empty() ? "-" : id;
}

uint64_t PidSpace() {
  struct stat info;
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

std::optional<struct stat> FactsOf(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return std::nullopt;
  return info;
}

// `now`: seconds by the clock of the file system.
bool IsGone(const std::string& path, const std::optional<LockOwner>& owner, int64_t now) {
  if (owner) return owner->gone();
  const auto facts = FactsOf(path);
  return facts && now - facts->st_mtime > kUnreadableSeconds;
}

// A lock file that is written and not yet in its place. Its name is hidden and unique.
class LockCandidate {
 public:
  explicit LockCandidate(std::string_view lock) : me_(LockOwner::Me()) {
    const size_t slash = lock.rfind('/');
    const std::string folder(slash == std::string_view::npos ? "." : lock.substr(0, slash));
    path_ = fmt::format("{}/.{}.{}.{}.{}.{}", folder, me_.host, me_.boot.substr(0, 8), me_.pid,
                        me_.started, syscall(SYS_gettid));
  }
  ~LockCandidate() { unlink(path_.c_str()); }
  LockCandidate(const LockCandidate&) = delete;
  LockCandidate& operator=(const LockCandidate&) = delete;

  // Replaces what this thread left under the name a moment ago.
  Status Write() {
    unlink(path_.c_str());
    if (!WriteAt(path_)) return SystemError("write lock", path_, errno);
    const auto facts = FactsOf(path_);
    now_ = facts ? facts->st_mtime : time(nullptr);
    return Status();
  }
  int64_t now() const { return now_; }

  // True: the lock stands at `target`; false: another one does. REQUIRES: Write succeeded.
  Result<bool> PutAt(const std::string& target) const {
    if (link(path_.c_str(), target.c_str()) == 0) return true;
    const int reason = errno;
    // A server may have made the link although its answer was lost.
    if (const auto facts = FactsOf(path_); facts && facts->st_nlink > 1) return true;
    if (reason == EEXIST) return false;
    if (reason != EPERM && reason != EOPNOTSUPP && reason != ENOSYS && reason != EMLINK) {
      return SystemError("make lock", target, reason);
    }
    if (WriteAt(target)) return true;
    if (errno == EEXIST) return false;
    return SystemError("make lock", target, errno);
  }

  // Replaces what stands at `target`.
  Status MoveTo(const std::string& target) const {
    if (rename(path_.c_str(), target.c_str()) == 0) return Status();
    return SystemError("take over lock", target, errno);
  }

 private:
  // False leaves the reason in errno, and no file that was begun.
  bool WriteAt(const std::string& path) const {
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                           FileMode(FileKind::kKernel)));
    if (!fd) return false;
    const int reason = WriteAll(fd.get(), me_.ToString() + "\n");
    if (reason == 0) return true;
    unlink(path.c_str());
    errno = reason;
    return false;
  }

  const LockOwner me_;
  std::string path_;
  int64_t now_ = 0;
};

// Puts `candidate` in the place of the lock of `before`. Only one process does so at a time, so it
// does not replace the lock of one that was quicker; `impatient` passes over a process that has
// stopped while it did so. False: another process has the lock, or takes it in this moment.
Result<bool> TakeOver(const LockCandidate& candidate, const std::string& path,
                      const std::optional<LockOwner>& before, bool impatient) {
  const std::string guard = path + ".taking";
  NPUMESH_ASSIGN_OR_RETURN(bool mine, candidate.PutAt(guard));
  if (!mine && (impatient || IsGone(guard, OwnerOf(guard), candidate.now()))) {
    unlink(guard.c_str());
    NPUMESH_ASSIGN_OR_RETURN(mine, candidate.PutAt(guard));
  }
  if (!mine) return false;
  Status moved;
  const bool same = FactsOf(path) && OwnerOf(path) == before;
  if (same) moved = candidate.MoveTo(path);
  unlink(guard.c_str());
  if (!moved.ok()) return moved;
  return same;
}

}  // namespace

LockOwner LockOwner::Me() {
  const int pid = getpid();
  return {HostName(), BootWord(), pid, StartOf(pid), PidSpace()};
}

std::optional<LockOwner> LockOwner::Parse(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto words = Split(text, " ");
  if (words.size() != 5 || words[0].empty() || words[1].empty()) return std::nullopt;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto pid = ParseInt(words[2], 1, std::numeric_limits<int>::max(), "pid");
  const auto started = ParseInt(words[3], 0, kMost, "start time");
  const auto space = ParseInt(words[4], 0, kMost, "pid namespace");
  if (!pid.ok() || !started.ok() || !space.ok()) return std::nullopt;
  return LockOwner{std::string(words[0]), std::string(words[1]), static_cast<int>(*pid),
                   static_cast<uint64_t>(*started), static_cast<uint64_t>(*space)};
}

std::string LockOwner::ToString() const {
  return fmt::format("{} {} {} {} {}", host, boot, pid, started, space);
}

bool LockOwner::gone() const {
  if (host != HostName()) return false;
  if (boot != BootWord()) return true;
  const uint64_t here = PidSpace();
  if (space != 0 && here != 0 && space != here) return false;
  const char state = ProcessState(pid);
  if (state == '\0') return ProcessState(getpid()) != '\0';  // else the system does not tell
  if (state == 'Z' || state == 'X') return true;
  const uint64_t start = StartOf(pid);
  return started != 0 && start != 0 && start != started;
}

KernelLock::KernelLock(KernelLock&& other) noexcept
    : path_(std::exchange(other.path_, std::string())) {}

KernelLock& KernelLock::operator=(KernelLock&& other) noexcept {
  if (this == &other) return *this;
  Release();
  path_ = std::exchange(other.path_, std::string());
  return *this;
}

Result<std::optional<KernelLock>> KernelLock::TryTake(const std::string& path) {
  if (!MayBeTaken(path)) return std::optional<KernelLock>();
  LockCandidate candidate(path);
  NPUMESH_RETURN_IF_ERROR(candidate.Write());
  NPUMESH_ASSIGN_OR_RETURN(bool mine, candidate.PutAt(path));
  if (!mine) {
    const std::optional<LockOwner> owner = OwnerOf(path);
    if (!IsGone(path, owner, candidate.now())) return std::optional<KernelLock>();
    NPUMESH_ASSIGN_OR_RETURN(mine, TakeOver(candidate, path, owner, /*impatient=*/false));
  }
  if (!mine) return std::optional<KernelLock>();
  return std::optional<KernelLock>(KernelLock(path));
}

Result<std::optional<KernelLock>> KernelLock::TakeFrom(const std::string& path,
                                                       const std::optional<LockOwner>& late) {
  LockCandidate candidate(path);
  NPUMESH_RETURN_IF_ERROR(candidate.Write());
  NPUMESH_ASSIGN_OR_RETURN(bool mine, candidate.PutAt(path));
  if (!mine) {
    NPUMESH_ASSIGN_OR_RETURN(mine, TakeOver(candidate, path, late, /*impatient=*/true));
  }
  if (!mine) return std::optional<KernelLock>();
  return std::optional<KernelLock>(KernelLock(path));
}

void KernelLock::Release() {
  if (path_.empty()) return;
  if (OwnerOf(path_) == LockOwner::Me()) unlink(path_.c_str());
  path_.clear();
}

std::optional<LockOwner> OwnerOf(const std::string& path) {
  const auto text = ReadFile(path, kMostOfLock);
  return text.ok() ? LockOwner::Parse(*text) : std::nullopt;
}

bool MayBeTaken(const std::string& path) {
  if (!FactsOf(path)) return true;
  return IsGone(path, OwnerOf(path), time(nullptr));
}

}  // namespace npumesh
