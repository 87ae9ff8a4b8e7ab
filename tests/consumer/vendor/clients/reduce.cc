#include "client.h"

static bool Check(const Rank& me) {
  const size_t count = 1000;
  const DeviceArray send(std::vector<float>(count, static_cast<float>(me.rank)));
  const DeviceArray recv(std::vector<float>(count, 0.0f));
  CHECK_HCCL(HcclReduce(send.get(), recv.get(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_MAX, 0,
                        me.comm, me.stream));
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  if (me.rank != 0) return true;
  return Equal(me, recv.values(), std::vector<float>(count, static_cast<float>(me.size - 1)));
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
