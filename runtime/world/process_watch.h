// ProcessWatch: notices the end of a process, also as a zombie and after its number has been given
// away again.
//
// Thread-safety: const members may be called from any thread.
#ifndef NPUMESH_RUNTIME_WORLD_PROCESS_WATCH_H_
#define NPUMESH_RUNTIME_WORLD_PROCESS_WATCH_H_

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/process_state.h"
#include "runtime/base/unique_fd.h"

namespace npumesh {

class ProcessWatch {
 public:
  explicit ProcessWatch(int process)
      : process_(process), fd_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))) {}
  int process() const { return process_; }
  bool stopped() const {
    const char state = ProcessState(process_);
    return state == 'T' || state == 't';
  }
  bool gone() const {
    pollfd entry{fd_.get(), POLLIN, 0};
    return !fd_ || poll(&entry, 1, 0) > 0;
  }

 private:
  int process_;
  UniqueFd fd_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_PROCESS_WATCH_H_
