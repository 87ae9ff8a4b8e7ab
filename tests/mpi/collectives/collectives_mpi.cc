// Ring 3: collectives by processes under mpirun. Brings its own main because every rank must agree
// on the outcome.
#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>

#include "collectives/communicator.h"
#include "tests/ranks/collectives/collective_cases.h"

namespace npumesh {
namespace {

// The algorithm comes from HCCL_ALGO, as a user would ask for it.
Status RunAll(World& world) {
  std::vector<int> everyone(static_cast<size_t>(world.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
  NPUMESH_ASSIGN_OR_RETURN(const auto group,
                           Communicator::Create(world, *memory, "world", everyone));
  NPUMESH_RETURN_IF_ERROR(CheckQuickly(*group, *memory));
  return CheckEverything(*group, *memory);
}

int Main() {
  Result<Env> env = Env::FromProcess();
  if (!env.ok()) {
    std::fprintf(stderr, "%s\n", env.status().ToString().c_str());
    return 2;
  }
  env->hbm_bytes = uint64_t{64} << 20;
  Result<std::unique_ptr<World>> world = World::Start(*env);
  if (!world.ok()) {
    std::fprintf(stderr, "%s\n", world.status().ToString().c_str());
    return 4;
  }
  Status status = RunAll(**world);
  if (!status.ok()) (*world)->board().PublishFailure(status);
  const Status end = (*world)->Shutdown();
  if (status.ok()) status = end;
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() && !::testing::Test::HasFailure() ? 0 : 1;
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return npumesh::Main();
}
