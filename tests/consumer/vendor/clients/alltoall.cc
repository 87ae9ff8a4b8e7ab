#include "client.h"

static bool Check(const Rank& me) {
  const size_t count = 100;
  const size_t ranks = static_cast<size_t>(me.size);
  const DeviceArray send(std::vector<float>(count * ranks, static_cast<float>(me.rank + 1)));
  const DeviceArray recv(std::vector<float>(count * ranks, 0.0f));
  CHECK_HCCL(HcclAlltoAll(send.get(), count, HCCL_DATA_TYPE_FP32, recv.get(), count,
                          HCCL_DATA_TYPE_FP32, me.comm, me.stream));
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  std::vector<float> expected;
  for (int r = 0; r < me.size; ++r) {
    expected.insert(expected.end(), count, static_cast<float>(r + 1));
  }
  return Equal(me, recv.values(), expected);
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
