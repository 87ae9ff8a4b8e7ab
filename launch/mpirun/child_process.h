// A program started with its output in our hands.
#ifndef NPUMESH_LAUNCH_MPIRUN_CHILD_PROCESS_H_
#define NPUMESH_LAUNCH_MPIRUN_CHILD_PROCESS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// Receives bytes as they come; an empty view is the end of the stream.
using ByteSink = std::function<void(std::string_view)>;

// Runs `words` (absolute path first) without a shell, and blocks until it ends. Signals that other
// processes send to us (SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2) are passed on; those of the
// terminal reach the child by themselves. The child is asked to end when we die.
// Returns its exit code, or 128 + the signal that ended it. Error: kIo when it cannot be started.
// REQUIRES: no other thread of this process waits for those signals.
Result<int> RunChild(const std::vector<std::string>& words, const ByteSink& output,
                     const ByteSink& errors);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_MPIRUN_CHILD_PROCESS_H_
