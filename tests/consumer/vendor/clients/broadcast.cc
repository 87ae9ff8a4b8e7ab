#include "client.h"

static bool Check(const Rank& me) {
  const size_t count = 1000;
  const DeviceArray buffer(std::vector<float>(count, me.rank == 1 ? 2.0f : 0.0f));
  CHECK_HCCL(HcclBroadcast(buffer.get(), count, HCCL_DATA_TYPE_FP32, 1, me.comm, me.stream));
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  return Equal(me, buffer.values(), std::vector<float>(count, 2.0f));
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
