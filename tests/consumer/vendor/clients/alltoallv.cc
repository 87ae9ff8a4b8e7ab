#include "client.h"

// Rank s sends s + 1 elements to every rank.
static bool Check(const Rank& me) {
  std::vector<uint64_t> sent;
  std::vector<uint64_t> sent_at;
  std::vector<uint64_t> taken;
  std::vector<uint64_t> taken_at;
  std::vector<float> expected;
  const uint64_t mine = static_cast<uint64_t>(me.rank + 1);
  for (int r = 0; r < me.size; ++r) {
    sent.push_back(mine);
    sent_at.push_back(mine * static_cast<uint64_t>(r));
    taken.push_back(static_cast<uint64_t>(r + 1));
    taken_at.push_back(expected.size());
    expected.insert(expected.end(), static_cast<size_t>(r + 1), static_cast<float>(r + 1));
  }
  const DeviceArray send(
      std::vector<float>(mine * static_cast<uint64_t>(me.size), static_cast<float>(mine)));
  const DeviceArray recv(std::vector<float>(expected.size(), 0.0f));
  CHECK_HCCL(HcclAlltoAllV(send.get(), sent.data(), sent_at.data(), HCCL_DATA_TYPE_FP32, recv.get(),
                           taken.data(), taken_at.data(), HCCL_DATA_TYPE_FP32, me.comm, me.stream));
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  return Equal(me, recv.values(), expected);
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
