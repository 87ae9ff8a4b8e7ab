// DeviceThreads: calls that wait for each other, each on a thread that has a device selected.
//
// Thread-safety: one thread owns it.
#ifndef NPUMESH_COLLECTIVES_HCCL_CREATION_DEVICE_THREADS_H_
#define NPUMESH_COLLECTIVES_HCCL_CREATION_DEVICE_THREADS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "collectives/hccl/comm/verdict.h"

namespace npumesh {

class DeviceThreads {
 public:
  // Run will make `call` with `device` (of aclrtSetDevice) selected; -1: none.
  void Add(int32_t device, std::function<Verdict()> call);
  // Makes all calls at the same time and waits for them. The first refusal, in the order of Add;
  // none is made where the system gives too few threads (HCCL_E_SYSCALL). To be called once.
  Verdict Run();

 private:
  std::vector<std::function<Verdict()>> calls_;
};

// The device that the calling thread has selected; -1: none.
int32_t SelectedDeviceId();

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CREATION_DEVICE_THREADS_H_
