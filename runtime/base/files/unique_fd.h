// A file descriptor that closes itself.
#ifndef NPUMESH_RUNTIME_BASE_FILES_UNIQUE_FD_H_
#define NPUMESH_RUNTIME_BASE_FILES_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace npumesh {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { Reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void Reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FILES_UNIQUE_FD_H_
