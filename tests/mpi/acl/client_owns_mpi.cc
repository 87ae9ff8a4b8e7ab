// A client that has called plain MPI_Init, as hccl_test does, and takes the device of its rank.
#include <mpi.h>

#include "client.h"

namespace {

int Run() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  uint32_t count = 0;
  CHECK(aclrtGetDeviceCount(&count));
  EXPECT(count == 2);
  const int32_t device = rank % static_cast<int32_t>(count);
  // Twice: the interface may end and begin again while MPI goes on.
  for (int i = 0; i < 2; ++i) {
    CHECK(aclInit(nullptr));
    if (UseDevice(device) != 0) return 1;
    if (UseDevice(0) != 0) return 1;
    CHECK(aclFinalize());
  }
  int sum = 0;
  const int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(sum == 2);
  return 0;
}

}  // namespace

int main() {
  MPI_Init(NULL, NULL);
  const int status = Run();
  MPI_Finalize();
  return status;
}
