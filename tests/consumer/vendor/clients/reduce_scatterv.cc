#include "client.h"

// Rank r receives r + 1 elements.
static bool Check(const Rank& me) {
  std::vector<uint64_t> counts;
  std::vector<uint64_t> displs;
  std::vector<float> blocks;
  for (int r = 0; r < me.size; ++r) {
    displs.push_back(blocks.size());
    counts.push_back(static_cast<uint64_t>(r + 1));
    blocks.insert(blocks.end(), static_cast<size_t>(r + 1), static_cast<float>(r + 1));
  }
  const uint64_t mine = counts[static_cast<size_t>(me.rank)];
  const DeviceArray send(blocks);
  const DeviceArray recv(std::vector<float>(mine, 0.0f));
  CHECK_HCCL(HcclReduceScatterV(send.get(), counts.data(), displs.data(), recv.get(), mine,
                                HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, me.comm, me.stream));
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  const float expected = static_cast<float>(me.size * (me.rank + 1));
  return Equal(me, recv.values(), std::vector<float>(mine, expected));
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
