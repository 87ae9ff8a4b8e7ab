// A program that has called plain MPI_Init (no thread support asked for) before npumesh starts:
// npumesh must work beside it, must not finish MPI, and must refuse to start after MPI has ended.
#include <mpi.h>

#include <cstdio>

#include "collectives/communicator.h"

namespace npumesh {
namespace {

Status UseNpumesh() {
  NPUMESH_ASSIGN_OR_RETURN(Env env, Env::FromProcess());
  env.hbm_bytes = uint64_t{16} << 20;
  NPUMESH_ASSIGN_OR_RETURN(const auto world, World::Start(env));
  NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(*world));
  NPUMESH_ASSIGN_OR_RETURN(const auto group,
                           Communicator::Create(*world, *memory, "world", {0, 1}));
  NPUMESH_ASSIGN_OR_RETURN(void* block, memory->Allocate(4));
  auto* value = static_cast<float*>(block);
  *value = static_cast<float>(world->rank() + 1);
  NPUMESH_RETURN_IF_ERROR(
      group->AllReduce(value, value, 1, DataType::kFloat, ReduceOp::kSum, "sum"));
  if (*value != 3.0f) return Error(Code::kInternal, "sum is {}, expected 3", *value);
  return world->Shutdown();
}

Status Expect(bool condition, const char* what) {
  return condition ? Status() : Error(Code::kInternal, "expected that {}", what);
}

Status Run() {
  // Twice: a world may end and another begin while MPI goes on.
  for (int i = 0; i < 2; ++i) NPUMESH_RETURN_IF_ERROR(UseNpumesh());
  int finalized = 0;
  MPI_Finalized(&finalized);
  NPUMESH_RETURN_IF_ERROR(Expect(!finalized, "MPI goes on"));
  int sum = 0;
  const int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  NPUMESH_RETURN_IF_ERROR(Expect(sum == 2, "the program's own MPI calls work"));
  MPI_Finalize();
  const Status late = World::Start(Env()).status();
  return Expect(late.code() == Code::kInvalidArgument, "a world after MPI_Finalize is refused");
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const npumesh::Status status = npumesh::Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
