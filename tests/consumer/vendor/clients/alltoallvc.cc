#include "client.h"

// Rank s sends s + 1 elements to every rank.
static bool Check(const Rank& me) {
  std::vector<uint64_t> matrix;
  std::vector<float> expected;
  for (int s = 0; s < me.size; ++s) {
    matrix.insert(matrix.end(), static_cast<size_t>(me.size), static_cast<uint64_t>(s + 1));
    expected.insert(expected.end(), static_cast<size_t>(s + 1), static_cast<float>(s + 1));
  }
  const size_t mine = static_cast<size_t>(me.rank + 1);
  const DeviceArray send(
      std::vector<float>(mine * static_cast<size_t>(me.size), static_cast<float>(mine)));
  const DeviceArray recv(std::vector<float>(expected.size(), 0.0f));
  CHECK_HCCL(HcclAlltoAllVC(send.get(), matrix.data(), HCCL_DATA_TYPE_FP32, recv.get(),
                            HCCL_DATA_TYPE_FP32, me.comm, me.stream));
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  return Equal(me, recv.values(), expected);
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
