// What the system says about the processes of this host.
#ifndef NPUMESH_RUNTIME_BASE_PROCESS_STATE_H_
#define NPUMESH_RUNTIME_BASE_PROCESS_STATE_H_

#include <vector>

namespace npumesh {

// The state letter of a process (proc(5), field 3): 'R', 'S', 'T' stopped, 'Z' ended; 0: there is
// no such process, or the system does not tell.
char ProcessState(int process);

// True when `process` has children and all of them have ended without its taking notice of it.
bool HasOnlyEndedChildren(int process);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_PROCESS_STATE_H_
