// A collective that is captured once and run four times, as programs do that save the host's work.
#include "client.h"

static const size_t kCount = 1000;
static const int kRuns = 4;

// A global capture would forbid the synchronous copies of other threads, which are other ranks
// here. recv becomes the sum over all ranks, and then the next input: size times as much each time.
static bool Capture(const Rank& me, const DeviceArray& send, const DeviceArray& recv,
                    aclmdlRI* model) {
  const size_t bytes = kCount * sizeof(float);
  CHECK_ACL(aclmdlRICaptureBegin(me.stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  CHECK_HCCL(HcclAllReduce(send.get(), recv.get(), kCount, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM,
                           me.comm, me.stream));
  CHECK_ACL(aclrtMemcpyAsync(send.get(), bytes, recv.get(), bytes, ACL_MEMCPY_DEVICE_TO_DEVICE,
                             me.stream));
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  aclmdlRI captured = nullptr;
  CHECK_ACL(aclmdlRICaptureGetInfo(me.stream, &status, &captured));
  CHECK_ACL(aclmdlRICaptureEnd(me.stream, model));
  return status == ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE && captured == *model;
}

static bool Check(const Rank& me) {
  const DeviceArray send(std::vector<float>(kCount, 2.0f));
  const DeviceArray recv(std::vector<float>(kCount, 0.0f));
  aclmdlRI model = nullptr;
  if (!Capture(me, send, recv, &model)) return false;
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  if (!Equal(me, recv.values(), std::vector<float>(kCount, 0.0f))) return false;  // nothing ran
  float expected = 2.0f;
  for (int run = 0; run < kRuns; ++run) {
    CHECK_ACL(aclmdlRIExecuteAsync(model, me.stream));
    CHECK_ACL(aclrtSynchronizeStream(me.stream));
    expected *= static_cast<float>(me.size);
    if (!Equal(me, recv.values(), std::vector<float>(kCount, expected))) return false;
  }
  CHECK_ACL(aclmdlRIDestroy(model));
  return true;
}

int main(int argc, char** argv) {
  return RunClient(argc, argv, Check);
}
