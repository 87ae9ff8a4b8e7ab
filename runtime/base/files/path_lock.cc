#include "runtime/base/files/path_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace npumesh {

PathLock::~PathLock() {
  if (fd_ >= 0) close(fd_);
}

bool PathLock::Take(const std::string& path) {
  // O_NONBLOCK: opening does not wait for a pipe of that name.
  fd_ = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd_ < 0 || flock(fd_, LOCK_EX | LOCK_NB) != 0) return false;
  // What was opened may have been renamed by its owner, and `path` be a new file of another's.
  struct stat locked;
  struct stat there;
  return fstat(fd_, &locked) == 0 && lstat(path.c_str(), &there) == 0 &&
         locked.st_dev == there.st_dev && locked.st_ino == there.st_ino;
}

void PathLock::Inherit() const {
  fcntl(fd_, F_SETFD, 0);
}

bool ClaimNewFile(int fd) {
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat info;
  return fstat(fd, &info) != 0 || info.st_nlink > 0;
}

}  // namespace npumesh
