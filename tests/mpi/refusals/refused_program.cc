// A program of AscendCL and HCCL alone on one device, whose every call must end with a code.
//
// Ends with 0 when all went well, 4 when a call returned an error and said why.
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

int Run() {
#define TRY(call)                              \
  do {                                         \
    const int code = static_cast<int>(call);   \
    if (code != 0) return Failed(#call, code); \
  } while (false)
  TRY(aclInit(nullptr));
  TRY(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  TRY(aclrtCreateStream(&stream));
  aclrtEvent event = nullptr;
  TRY(aclrtCreateEvent(&event));
  TRY(aclrtLaunchHostFunc(stream, Nothing, nullptr));
  TRY(aclrtRecordEvent(event, stream));
  TRY(aclrtSynchronizeEvent(event));
  HcclComm comm = nullptr;
  int32_t device = 0;
  TRY(HcclCommInitAll(1, &device, &comm));
  void* data = nullptr;
  TRY(aclrtMalloc(&data, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  TRY(HcclAllReduce(data, data, 16, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
  HcclSendRecvItem items[2] = {{HCCL_SEND, data, 4, HCCL_DATA_TYPE_FP32, 0},
                               {HCCL_RECV, data, 4, HCCL_DATA_TYPE_FP32, 0}};
  TRY(HcclBatchSendRecv(items, 2, comm, stream));
  TRY(aclrtSynchronizeStream(stream));
  TRY(HcclCommDestroy(comm));
  return 0;
}

}  // namespace

int main() {
  const int code = Run();
  aclFinalize();
  return code;
}
