// How MPI is started, and which threads it starts for itself.
//
// A wait that certainly never ends is found out only when every thread of the process is known
// (runtime/base/process/thread_census.h). Those of MPI begin while MPI starts, so the start of
// a program that calls MPI itself is watched, too: libacl_rt.so and libhccl.so define MPI_Init and
// MPI_Init_thread, in the manner of MPI's profiling interface, and pass the call on.
#ifndef NPUMESH_RUNTIME_WORLD_MPI_START_H_
#define NPUMESH_RUNTIME_WORLD_MPI_START_H_

#include <cstddef>
#include <functional>

namespace npumesh {

// Calls `start`, which starts MPI, and notes the threads that begin meanwhile as helpers, unless
// the process has more than `alone` threads, of which one could have started them. Returns what
// `start` does.
int StartNotingThreads(size_t alone, const std::function<int()>& start);

// The same for a program that starts MPI itself, under the watch of a start (blocked_watch.h): MPI
// would wait without an end for a rank that has died, where the launcher does not end the job.
int StartOfProgram(const std::function<int()>& start);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_MPI_START_H_
