#include "launch/mpirun/open_files.h"

#include <sys/resource.h>

#include <cerrno>

#include "runtime/base/files/system_error.h"

namespace npumesh {
namespace {

// Open MPI 4.1 starts 2 ranks with 36 and 8 ranks with 60 descriptors, and hangs below; this leaves
// room for what the ranks open themselves.
constexpr uint64_t kForMpirun = 64;
constexpr uint64_t kForRank = 8;

}  // namespace

uint64_t WantedOpenFiles(int ranks) {
  return kForMpirun + kForRank * static_cast<uint64_t>(ranks);
}

Result<uint64_t> SoftLimitFor(int ranks, uint64_t soft, uint64_t hard) {
  const uint64_t wanted = WantedOpenFiles(ranks);
  if (soft >= wanted) return soft;
  if (hard >= wanted) return wanted;
  return Error(
      Code::kIo,
      "{} rank{} on this host want {} open files, but only {} are allowed; raise the limit "
      "with ulimit -n {}, in a container with docker run --ulimit nofile={}",
      ranks, ranks == 1 ? "" : "s", wanted, hard, wanted, wanted);
}

Status RaiseOpenFiles(int ranks) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return SystemError("read", "the limit of open files", errno);
  NPUMESH_ASSIGN_OR_RETURN(const uint64_t soft,
                           SoftLimitFor(ranks, limit.rlim_cur, limit.rlim_max));
  if (soft == limit.rlim_cur) return Status();
  limit.rlim_cur = soft;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return Status();
  return SystemError("raise", "the limit of open files", errno);
}

}  // namespace npumesh
