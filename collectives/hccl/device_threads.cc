#include "collectives/hccl/device_threads.h"

#include "acl/acl.h"

namespace npumesh {
namespace {

Verdict CallOn(int32_t device, const std::function<Verdict()>& call) {
  if (device < 0) return call();
  if (aclrtSetDevice(device) != ACL_SUCCESS) {
    return Refuse(HCCL_E_RUNTIME, "device {} cannot be selected", device);
  }
  Verdict verdict = call();
  aclrtResetDevice(device);
  return verdict;
}

}  // namespace

void DeviceThreads::Start(int32_t device, std::function<Verdict()> call) {
  Seat& seat = seats_.emplace_back();
  seat.thread =
      std::thread([&seat, device, call = std::move(call)] { seat.verdict = CallOn(device, call); });
}

Verdict DeviceThreads::Join() {
  for (Seat& seat : seats_) {
    if (seat.thread.joinable()) seat.thread.join();
  }
  for (const Seat& seat : seats_) NPUMESH_RETURN_IF_REFUSED(seat.verdict);
  return {};
}

DeviceThreads::~DeviceThreads() {
  for (Seat& seat : seats_) {
    if (seat.thread.joinable()) seat.thread.join();
  }
}

int32_t SelectedDeviceId() {
  int32_t device = -1;
  return aclrtGetDevice(&device) == ACL_SUCCESS ? device : -1;
}

}  // namespace npumesh
