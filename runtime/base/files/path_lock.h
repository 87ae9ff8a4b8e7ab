// PathLock: a living process's claim on a file or folder of the file system.
//
// What is claimed is told from what a killed process has left: the system frees the claim with the
// process, on other hosts too where the file system knows locks.
//
// Thread-safety: none.
#ifndef NPUMESH_RUNTIME_BASE_FILES_PATH_LOCK_H_
#define NPUMESH_RUNTIME_BASE_FILES_PATH_LOCK_H_

#include <string>

namespace npumesh {

class PathLock {
 public:
  PathLock() = default;
  ~PathLock();
  PathLock(const PathLock&) = delete;
  PathLock& operator=(const PathLock&) = delete;

  // Claims what stands at `path`, a file or a folder, until this object or its process ends. Never
  // waits and follows no link. False: another process claims it, or it cannot be claimed.
  bool Take(const std::string& path);

  // Programs that this process starts from now on claim it as well, while they live.
  // REQUIRES: Take returned true.
  void Inherit() const;

 private:
  int fd_ = -1;
};

// Claims a file that this process has just created, for as long as `fd` is open. False: another
// took it for a leftover in between; it is removed, or will be in a moment. Where the file system
// knows no locks the answer is true, because no process removes anything there.
bool ClaimNewFile(int fd);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FILES_PATH_LOCK_H_
