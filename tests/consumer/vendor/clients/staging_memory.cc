// Host memory of aclrtMallocHost is cleared like device memory, and a device is reset whatever
// still refers to it, also after aclFinalize.
#include "client.h"

static bool Check(const Rank& me) {
  const size_t count = 1000;
  const size_t bytes = count * sizeof(float);
  void* staging = nullptr;
  CHECK_ACL(aclrtMallocHost(&staging, bytes));
  CHECK_ACL(aclrtMemset(staging, bytes, 0, bytes));
  const DeviceArray send(std::vector<float>(count, 3.0f));
  const DeviceArray recv(std::vector<float>(count, 0.0f));
  CHECK_ACL(aclrtMemcpyAsync(send.get(), bytes / 2, staging, bytes / 2, ACL_MEMCPY_HOST_TO_DEVICE,
                             me.stream));
  CHECK_HCCL(HcclAllReduce(send.get(), recv.get(), count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM,
                           me.comm, me.stream));
  CHECK_ACL(aclrtMemsetAsync(staging, bytes, 0xff, bytes, me.stream));
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  const bool filled = static_cast<unsigned char*>(staging)[bytes - 1] == 0xff;
  CHECK_ACL(aclrtFreeHost(staging));
  std::vector<float> expected(count, 3.0f * static_cast<float>(me.size));
  for (size_t i = 0; i < count / 2; ++i) expected[i] = 0.0f;
  return filled && Equal(me, recv.values(), expected);
}

int main(int argc, char** argv) {
  const int result = RunClient(argc, argv, Check);
  if (result != 0) return result;
  return aclrtResetDevice(0) == ACL_SUCCESS && aclrtResetDeviceForce(0) == ACL_SUCCESS ? 0 : 2;
}
