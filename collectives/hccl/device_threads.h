// DeviceThreads: calls that wait for each other, each on a thread that has a device selected.
//
// Thread-safety: one thread owns it.
#ifndef NPUMESH_COLLECTIVES_HCCL_DEVICE_THREADS_H_
#define NPUMESH_COLLECTIVES_HCCL_DEVICE_THREADS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>

#include "collectives/hccl/verdict.h"

namespace npumesh {

class DeviceThreads {
 public:
  ~DeviceThreads();  // joins

  // Starts `call` with `device` (of aclrtSetDevice) selected; -1: none.
  void Start(int32_t device, std::function<Verdict()> call);
  // Waits for all. The first refusal, in the order of Start.
  Verdict Join();

 private:
  struct Seat {
    Verdict verdict;
    std::thread thread;
  };
  std::deque<Seat> seats_;  // a Seat keeps its address
};

// The device that the calling thread has selected; -1: none.
int32_t SelectedDeviceId();

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_DEVICE_THREADS_H_
