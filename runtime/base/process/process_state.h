// What the system says about the processes of this host.
#ifndef NPUMESH_RUNTIME_BASE_PROCESS_PROCESS_STATE_H_
#define NPUMESH_RUNTIME_BASE_PROCESS_PROCESS_STATE_H_

#include <cstdint>

namespace npumesh {

// The state letter of a process (proc(5), field 3): 'R', 'S', 'T' stopped, 'Z' ended; 0: there is
// no such process, or the system does not tell.
char ProcessState(int process);

// When a process began, in clock ticks after boot (proc(5), field 22): with its number it names a
// process of this boot for good. 0: there is no such process, or the system does not tell.
uint64_t ProcessStart(int process);

// The process that `process` belongs to as a child; 0: none, or the system does not tell.
int ProcessParent(int process);

// The space in which this process sees numbers of processes: equal for two processes of a boot when
// the numbers that they see mean the same. 0: not known.
uint64_t ProcessSpace();

// True when `process` has children and all of them have ended without its taking notice of it.
bool HasOnlyEndedChildren(int process);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_PROCESS_PROCESS_STATE_H_
