#include "client.h"

// Even ranks send to the next odd one.
static bool Check(const Rank& me) {
  const size_t count = 1000;
  const bool sends = me.rank % 2 == 0;
  const DeviceArray buffer(std::vector<float>(count, sends ? static_cast<float>(me.rank) : -1.0f));
  if (sends) {
    CHECK_HCCL(HcclSend(buffer.get(), count, HCCL_DATA_TYPE_FP32,
                        static_cast<uint32_t>(me.rank + 1), me.comm, me.stream));
  } else {
    CHECK_HCCL(HcclRecv(buffer.get(), count, HCCL_DATA_TYPE_FP32,
                        static_cast<uint32_t>(me.rank - 1), me.comm, me.stream));
  }
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  const float expected = static_cast<float>(sends ? me.rank : me.rank - 1);
  return Equal(me, buffer.values(), std::vector<float>(count, expected));
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
