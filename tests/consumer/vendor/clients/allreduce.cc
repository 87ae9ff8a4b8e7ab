#include "client.h"

static bool Check(const Rank& me) {
  const size_t count = 1000;
  const DeviceArray send(std::vector<float>(count, 2.0f));
  const DeviceArray recv(std::vector<float>(count, 0.0f));
  CHECK_HCCL(HcclAllReduce(send.get(), recv.get(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM,
                           me.comm, me.stream));
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  return Equal(me, recv.values(), std::vector<float>(count, 2.0f * static_cast<float>(me.size)));
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
