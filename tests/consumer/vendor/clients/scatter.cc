#include "client.h"

static bool Check(const Rank& me) {
  const size_t count = 100;
  std::vector<float> blocks;
  for (int r = 0; r < me.size; ++r) blocks.insert(blocks.end(), count, static_cast<float>(r + 1));
  const DeviceArray send(blocks);
  const DeviceArray recv(std::vector<float>(count, 0.0f));
  CHECK_HCCL(HcclScatter(me.rank == 0 ? send.get() : nullptr, recv.get(), count,
                         HCCL_DATA_TYPE_FP32, 0, me.comm, me.stream));
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  return Equal(me, recv.values(), std::vector<float>(count, static_cast<float>(me.rank + 1)));
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
