// ProcessWatch: notices the end of a process, also as a zombie and after its number has been given
// away again. Where the system has no pidfd_open, or forbids it (containers' filters of system
// calls, valgrind), it asks by number and beginning.
//
// Thread-safety: const members may be called from any thread.
#ifndef NPUMESH_RUNTIME_WORLD_PROCESS_WATCH_H_
#define NPUMESH_RUNTIME_WORLD_PROCESS_WATCH_H_

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "runtime/base/files/unique_fd.h"
#include "runtime/base/process/process_state.h"

namespace npumesh {

class ProcessWatch {
 public:
  explicit ProcessWatch(int process)
      : process_(process),
        start_(ProcessStart(process)),
        fd_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))) {}
  int process() const { return process_; }
  bool stopped() const {
    const char state = ProcessState(process_);
    return state == 'T' || state == 't';
  }
  bool gone() const {
    if (!fd_) return GoneByNumber();
    pollfd entry{fd_.get(), POLLIN, 0};
    return poll(&entry, 1, 0) > 0;
  }

 private:
  bool GoneByNumber() const {
    if (kill(process_, 0) != 0 && errno == ESRCH) return true;
    const char state = ProcessState(process_);
    return state == 'Z' || state == 'X' || ProcessStart(process_) != start_;
  }

  int process_;
  uint64_t start_;
  UniqueFd fd_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_PROCESS_WATCH_H_
