#include "client.h"

// A ring: to the next, from the one before.
static bool Check(const Rank& me) {
  const size_t count = 1000;
  const uint32_t next = static_cast<uint32_t>((me.rank + 1) % me.size);
  const uint32_t before = static_cast<uint32_t>((me.rank + me.size - 1) % me.size);
  const DeviceArray send(std::vector<float>(count, static_cast<float>(me.rank)));
  const DeviceArray recv(std::vector<float>(count, -1.0f));
  HcclSendRecvItem items[] = {
      {HCCL_SEND, send.get(), count, HCCL_DATA_TYPE_FP32, next},
      {HCCL_RECV, recv.get(), count, HCCL_DATA_TYPE_FP32, before},
  };
  CHECK_HCCL(HcclBatchSendRecv(items, 2, me.comm, me.stream));
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  return Equal(me, recv.values(), std::vector<float>(count, static_cast<float>(before)));
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
