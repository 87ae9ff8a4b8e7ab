// ProgramRun: a program started without a shell, whose words are kept and whose time is limited.
//
// Thread-safety: any thread.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_STORE_PROGRAM_RUN_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_STORE_PROGRAM_RUN_H_

#include <chrono>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

struct ProgramEnd {
  int code = 0;       // the exit code
  int signal = 0;     // that ended it; 0: none
  bool late = false;  // the time limit passed, and all of its process group was killed
  std::string said;   // standard output and standard error, the first 64 KiB
};

// Runs `words` (the path of the program first) in a separate process group, with an empty standard
// input, messages in English and, unless it is empty, temporary files in `temporary`. Blocks until
// the program ends, at most `limit` and a moment; what it started and left running is killed. The
// processor time of each of its processes is limited too, for the case that this process is killed.
// Error (kIo): it cannot be started.
Result<ProgramEnd> RunProgram(const std::vector<std::string>& words, const std::string& temporary,
                              std::chrono::milliseconds limit);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_STORE_PROGRAM_RUN_H_
