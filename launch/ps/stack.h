// The stack of a rank's threads, by a debugger that is installed.
#ifndef NPUMESH_LAUNCH_PS_STACK_H_
#define NPUMESH_LAUNCH_PS_STACK_H_

#include <string>

#include "runtime/base/status.h"

namespace npumesh {

// What py-spy, eu-stack or gdb, the first of PATH that can, prints of the threads of `process`,
// which it stops for that moment. Waits at most 30 s. kNotFound: none is there; kIo: the last one
// could not, with its words.
Result<std::string> StackOf(int process);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PS_STACK_H_
