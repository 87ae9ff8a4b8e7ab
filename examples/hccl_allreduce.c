/* The smallest program of HCCL: every rank gives its number plus one, and all get the sum.
 * How it is compiled and started: docs/c_programs.md. */
#include <acl/acl.h>
#include <hccl/hccl.h>
#include <mpi.h>
#include <stdio.h>

static int Check(int code, const char* call) {
  const char* why = code == 0 ? NULL : aclGetRecentErrMsg();
  if (code != 0) fprintf(stderr, "%s: error %d: %s\n", call, code, why == NULL ? "-" : why);
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, 4);
  return code;
}
#define CHECK(call) Check((int)(call), #call)

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(rank));

  HcclRootInfo root;
  HcclComm comm;
  if (rank == 0) CHECK(HcclGetRootInfo(&root));
  MPI_Bcast(&root, sizeof(root), MPI_CHAR, 0, MPI_COMM_WORLD);
  CHECK(HcclCommInitRootInfo((uint32_t)size, &root, (uint32_t)rank, &comm));

  aclrtStream stream;
  void *mine, *sum;
  float value = (float)(rank + 1);
  CHECK(aclrtCreateStream(&stream));
  CHECK(aclrtMalloc(&mine, sizeof(value), ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMalloc(&sum, sizeof(value), ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(mine, sizeof(value), &value, sizeof(value), ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK(HcclAllReduce(mine, sum, 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclrtMemcpy(&value, sizeof(value), sum, sizeof(value), ACL_MEMCPY_DEVICE_TO_HOST));
  printf("rank %d of %d: the sum is %g\n", rank, size, value);

  CHECK(HcclCommDestroy(comm));
  CHECK(aclrtFree(mine));
  CHECK(aclrtFree(sum));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(rank));
  CHECK(aclFinalize());
  MPI_Finalize();
  return 0;
}
