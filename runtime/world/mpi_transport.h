// MpiTransport: the product's transport. The files mpi_*.cc are the only ones with MPI types.
//
// In a node nothing goes through MPI once the ranks have met: shared memory is handed over by file
// descriptors (SCM_RIGHTS), and a peer's death is noticed by its pidfd. Between nodes, messages and
// plain collectives are MPI's, always non-blocking underneath so that every wait has an end.
//
// Works when the host program has called MPI_Init itself, with any thread level: all MPI calls of
// this process pass one mutex.
#ifndef NPUMESH_RUNTIME_WORLD_MPI_TRANSPORT_H_
#define NPUMESH_RUNTIME_WORLD_MPI_TRANSPORT_H_

#include <chrono>
#include <memory>
#include <string>

#include "runtime/world/transport.h"

namespace npumesh {

// True when a launcher started this process (Open MPI, MPICH, PMIx, Slurm) or MPI is already
// running.
bool StartedByLauncher();

// Collective over all processes of the job. Starts MPI unless it is running; MPI that it has
// started ends with the process, so a process may have one world after the other.
// `connect_timeout`: how long ranks of a node wait for each other to share memory; `soft_timeout`:
// after which a wait for a rank of this node that is stopped says so.
Result<std::unique_ptr<Transport>> MakeMpiTransport(std::chrono::seconds connect_timeout,
                                                    std::chrono::seconds soft_timeout);

// "Open MPI v4.1.4, ...": the library this process runs with.
std::string MpiLibraryVersion();

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_MPI_TRANSPORT_H_
