// Open files of a job: mpirun holds pipes and sockets for each rank, and crashes or hangs when the
// system refuses it one.
//
// Thread-safety: free functions; RaiseOpenFiles changes a limit of this process.
#ifndef NPUMESH_LAUNCH_MPIRUN_OPEN_FILES_H_
#define NPUMESH_LAUNCH_MPIRUN_OPEN_FILES_H_

#include <cstdint>

#include "runtime/base/status.h"

namespace npumesh {

// What mpirun and the ranks that it starts on this host may want to have open.
uint64_t WantedOpenFiles(int ranks);

// The soft limit to set for so many ranks: `soft` when it is enough, otherwise what is wanted,
// which `hard` must allow. Error (kIo): it does not; names `ulimit -n`.
Result<uint64_t> SoftLimitFor(int ranks, uint64_t soft, uint64_t hard);

// Raises the soft limit of this process, which its children inherit. Error: as SoftLimitFor, or the
// system refuses.
Status RaiseOpenFiles(int ranks);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_MPIRUN_OPEN_FILES_H_
