// KernelLock: which process builds a key.
//
// A file made by link(2), which is atomic on file systems without flock, too; where there are no
// hard links, by open(2) with O_EXCL. It says host, boot id, pid and start time of its owner, so
// that the lock of a process that is gone is taken over. Of several processes that find such a lock
// at once, one takes it over, under the guard "<lock>.taking".
//
// The lock saves work only: two builders of one key would publish the same content twice.
//
// Thread-safety: none; two locks of one process exclude each other.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_STORE_KERNEL_LOCK_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_STORE_KERNEL_LOCK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace npumesh {

// Host, boot id, pid and start time: no two processes have the same, whenever they live.
struct LockOwner {
  std::string host;
  std::string boot;
  int pid = 0;
  uint64_t started = 0;  // ticks since boot, field 22 of /proc/<pid>/stat; 0: not known
  uint64_t space = 0;    // inode of the pid namespace; 0: not known

  static LockOwner Me();
  static std::optional<LockOwner> Parse(std::string_view text);
  std::string ToString() const;  // one line: the members, separated by blanks
  // Lived on this host and does not any more. An owner on another host, or in another pid
  // namespace (container) of this one, is alive for all we know.
  bool gone() const;
  bool operator==(const LockOwner&) const = default;
};

class KernelLock {
 public:
  ~KernelLock() { Release(); }
  KernelLock() = default;
  KernelLock(KernelLock&& other) noexcept;
  KernelLock& operator=(KernelLock&& other) noexcept;  // releases what was held

  // Never waits. nullopt: a process has it that is alive for all we know, or another one takes it
  // over in this moment. A lock whose owner is gone is taken over; one that cannot be read 10 s
  // after it was written counts as that of a dead writer. Error (kIo): the folder takes no files
  // (read-only, full), with the system's reason.
  static Result<std::optional<KernelLock>> TryTake(const std::string& path);

  // Takes the lock over from `late`, or from a lock that cannot be read (nullopt), although its
  // owner may live: for those who have waited long enough. nullopt: another process has it now.
  static Result<std::optional<KernelLock>> TakeFrom(const std::string& path,
                                                    const std::optional<LockOwner>& late);

  // Removes the file, if it still belongs to this process.
  void Release();

 private:
  explicit KernelLock(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: nothing is held
};

// Who holds the lock; nullopt: there is no lock, or it cannot be read now.
std::optional<LockOwner> OwnerOf(const std::string& path);

// True when TryTake would take the lock: it is free, or its owner is gone. Only looks.
bool MayBeTaken(const std::string& path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_STORE_KERNEL_LOCK_H_
