// A program started with its output in our hands.
#ifndef NPUMESH_LAUNCH_MPIRUN_CHILD_PROCESS_H_
#define NPUMESH_LAUNCH_MPIRUN_CHILD_PROCESS_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// Receives bytes as they come; an empty view is the end of the stream.
using ByteSink = std::function<void(std::string_view)>;

// How a child is asked to end.
struct ChildCare {
  // Sent first when the child is to end, because it ends in good order then; the child gets a
  // separate process group, so that Ctrl-C reaches it only as this signal, and no standard input.
  // 0: the child gets the signal that we got.
  int polite_signal = 0;
  // After it, or at a second signal, the child gets SIGTERM; after it again, or at a third,
  // SIGKILL.
  std::chrono::seconds patience{5};
  // After it the child is asked to end as if a signal had come.
  std::optional<std::chrono::seconds> timeout;
  // The child starts others and ends with the last of them. When all have ended it is reminded by
  // SIGCHLD; when it takes no notice for `patience`, it is killed.
  bool ends_with_its_children = false;
  // NAME=value, in the place of what this process has of the same name.
  std::vector<std::string> environment;
};

struct ChildEnd {
  int code = 0;         // the exit code, or 128 + the signal that ended it
  int signal = 0;       // the first signal that asked us to end; 0: none did
  bool late = false;    // the time was over
  bool bereft = false;  // it did not notice that all its children had ended
};

// Runs `words` (absolute path first) without a shell, and blocks until it ends. Signals that other
// processes send to us (SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2) are passed on; those of the
// terminal reach the child by themselves. The child is asked to end when we die, and when the
// reader of what the sinks print has gone (SIGPIPE, unless this process ignores it). Returns its
// exit code, or 128 + the signal that ended it. Error: kIo when it cannot be started. REQUIRES: no
// other thread of this process waits for those signals.
Result<int> RunChild(const std::vector<std::string>& words, const ByteSink& output,
                     const ByteSink& errors);

// The same, and asks the child to end as `care` says.
Result<ChildEnd> RunChild(const std::vector<std::string>& words, const ByteSink& output,
                          const ByteSink& errors, const ChildCare& care);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_MPIRUN_CHILD_PROCESS_H_
