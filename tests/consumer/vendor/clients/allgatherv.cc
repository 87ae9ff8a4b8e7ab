#include "client.h"

// Rank r sends r + 1 elements.
static bool Check(const Rank& me) {
  std::vector<uint64_t> counts;
  std::vector<uint64_t> displs;
  std::vector<float> expected;
  for (int r = 0; r < me.size; ++r) {
    displs.push_back(expected.size());
    counts.push_back(static_cast<uint64_t>(r + 1));
    expected.insert(expected.end(), static_cast<size_t>(r + 1), static_cast<float>(r + 1));
  }
  const uint64_t mine = counts[static_cast<size_t>(me.rank)];
  const DeviceArray send(std::vector<float>(mine, static_cast<float>(me.rank + 1)));
  const DeviceArray recv(std::vector<float>(expected.size(), 0.0f));
  CHECK_HCCL(HcclAllGatherV(send.get(), mine, recv.get(), counts.data(), displs.data(),
                            HCCL_DATA_TYPE_FP32, me.comm, me.stream));
  counts.assign(counts.size(), 0);  // the arrays are the program's again
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  return Equal(me, recv.values(), expected);
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
