#include "launch/mpirun/mpi_launcher.h"

#include "runtime/base/text/parse.h"

namespace npumesh {

MpiLauncher LauncherOf(std::string_view mpi, std::string_view version) {
  if (mpi == "MPICH") return MpiLauncher::kMpich;
  const std::string_view major = version.substr(0, version.find('.'));
  const Result<int64_t> number = ParseInt(major, 0, 1000, "MPI version");
  const bool prrte = mpi == "Open MPI" && number.ok() && *number >= 5;
  return prrte ? MpiLauncher::kOpenMpi5 : MpiLauncher::kOpenMpi4;
}

}  // namespace npumesh
