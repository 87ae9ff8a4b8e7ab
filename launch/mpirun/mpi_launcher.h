// MpiLauncher: whose mpirun starts the ranks. Its options, the tags of its lines and the names of
// its files depend on it.
#ifndef NPUMESH_LAUNCH_MPIRUN_MPI_LAUNCHER_H_
#define NPUMESH_LAUNCH_MPIRUN_MPI_LAUNCHER_H_

#include <cstdint>
#include <string_view>

namespace npumesh {

enum class MpiLauncher : uint8_t {
  kOpenMpi4,  // Open MPI up to 4: orterun
  kOpenMpi5,  // Open MPI from 5 on: prterun, which mpirun becomes
  kMpich,     // MPICH: Hydra
};

// The tag that Hydra, the mpiexec of MPICH, is told to write (-prepend-pattern). Its first
// character keeps it apart from what ranks print: "[2] text" is a common line.
inline constexpr std::string_view kHydraPattern = "\x1f[%r] ";

// Of the MPI that npumesh is built with: "Open MPI" and "5.0.7", or "MPICH". What is not known is
// taken for Open MPI 4.
MpiLauncher LauncherOf(std::string_view mpi, std::string_view version);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_MPIRUN_MPI_LAUNCHER_H_
