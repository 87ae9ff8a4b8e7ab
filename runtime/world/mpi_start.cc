#include "runtime/world/mpi_start.h"

#include <sys/types.h>

#include <new>
#include <optional>
#include <set>

#include "runtime/base/env/env.h"
#include "runtime/base/process/thread_census.h"
#include "runtime/world/blocked_watch.h"

namespace npumesh {

int StartNotingThreads(size_t alone, const std::function<int()>& start) {
  const std::set<pid_t> before = ThreadsOfProcess();
  const int code = start();
  if (before.empty() || before.size() > alone) return code;
  std::set<pid_t> made = ThreadsOfProcess();
  for (const pid_t thread : before) made.erase(thread);
  AddHelperThreads(made);
  return code;
}

namespace {

int StartWatched(const std::function<int()>& start) {
  constexpr size_t kAlone = 2;  // the caller and the watch
  const bool single = ThreadsOfProcess().size() == 1;
  const Result<Env> env = Env::FromProcess();
  const BlockedWatch watch("MPI_Init",
                           {env.ok() ? env->soft_timeout : Env().soft_timeout, kNoTimeout});
  return single ? StartNotingThreads(kAlone, start) : start();
}

}  // namespace

int StartOfProgram(const std::function<int()>& start) {
  std::optional<int> code;
  try {
    return StartWatched([&] { return *(code = start()); });
  } catch (const std::bad_alloc&) {  // MPI starts all the same, without what is noted beside it
    return code ? *code : start();
  }
}

}  // namespace npumesh
