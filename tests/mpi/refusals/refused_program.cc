// A program of AscendCL and HCCL, whose every call must end with a code: alone on one device, or,
// started by mpirun, a rank of a group.
//
// Ends with 0 when all went well, 4 when a call returned an error and said why.
#include <mpi.h>
#include <stdio.h>

#include "acl/acl.h"
#include "hccl/hccl.h"

namespace {

int Failed(const char* what, int code) {
  const char* why = aclGetRecentErrMsg();
  fprintf(stderr, "%s: %d: %s\n", what, code, why == nullptr ? "(no reason)" : why);
  return 4;
}

void Nothing(void*) {}

#define TRY(call)                              \
  do {                                         \
    const int code = static_cast<int>(call);   \
    if (code != 0) return Failed(#call, code); \
  } while (false)

int MakeGroup(int ranks, int rank, HcclComm* comm) {
  if (ranks == 1) {
    int32_t device = 0;
    TRY(HcclCommInitAll(1, &device, comm));
    return 0;
  }
  HcclRootInfo root;
  const HcclResult got = rank == 0 ? HcclGetRootInfo(&root) : HCCL_SUCCESS;
  int good = got == HCCL_SUCCESS ? 1 : 0;
  MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (good == 0) return rank == 0 ? Failed("HcclGetRootInfo", got) : 4;
  MPI_Bcast(&root, sizeof(root), MPI_BYTE, 0, MPI_COMM_WORLD);
  TRY(HcclCommInitRootInfo(static_cast<uint32_t>(ranks), &root, static_cast<uint32_t>(rank), comm));
  return 0;
}

int Run(int ranks, int rank) {
  TRY(aclInit(nullptr));
  TRY(aclrtSetDevice(ranks == 1 ? 0 : rank));
  aclrtStream stream = nullptr;
  TRY(aclrtCreateStream(&stream));
  aclrtEvent event = nullptr;
  TRY(aclrtCreateEvent(&event));
  TRY(aclrtLaunchHostFunc(stream, Nothing, nullptr));
  TRY(aclrtRecordEvent(event, stream));
  TRY(aclrtSynchronizeEvent(event));
  HcclComm comm = nullptr;
  if (const int code = MakeGroup(ranks, rank, &comm); code != 0) return code;
  void* data = nullptr;
  TRY(aclrtMalloc(&data, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  TRY(HcclAllReduce(data, data, 16, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
  const auto next = static_cast<uint32_t>((rank + 1) % ranks);
  const auto before = static_cast<uint32_t>((rank + ranks - 1) % ranks);
  void* const got = static_cast<char*>(data) + 16;
  HcclSendRecvItem items[2] = {
      {HCCL_SEND, data, 4, HCCL_DATA_TYPE_FP32, next},
      {HCCL_RECV, ranks == 1 ? data : got, 4, HCCL_DATA_TYPE_FP32, before}};
  TRY(HcclBatchSendRecv(items, 2, comm, stream));
  TRY(aclrtSynchronizeStream(stream));
  TRY(HcclCommDestroy(comm));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int ranks = 1;
  int rank = 0;
  if (argc > 1) {
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  }
  const int code = Run(ranks, rank);
  if (ranks > 1 && code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  aclFinalize();
  if (argc > 1) MPI_Finalize();
  return code;
}
