// What the system says about a process of this host.
#ifndef NPUMESH_RUNTIME_WORLD_PROCESS_STATE_H_
#define NPUMESH_RUNTIME_WORLD_PROCESS_STATE_H_

namespace npumesh {

// The state letter of a process (proc(5), field 3): 'R', 'S', 'T' stopped, 'Z' ended; 0: there is
// no such process, or the system does not tell.
char ProcessState(int process);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_PROCESS_STATE_H_
