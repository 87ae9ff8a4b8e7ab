#include "client.h"

static bool Check(const Rank& me) {
  const size_t count = 100;
  std::vector<float> blocks;
  for (int r = 0; r < me.size; ++r) blocks.insert(blocks.end(), count, static_cast<float>(r + 1));
  const DeviceArray send(blocks);
  const DeviceArray recv(std::vector<float>(count, 0.0f));
  CHECK_HCCL(HcclReduceScatter(send.get(), recv.get(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM,
                               me.comm, me.stream));
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  const float expected = static_cast<float>(me.size * (me.rank + 1));
  return Equal(me, recv.values(), std::vector<float>(count, expected));
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
