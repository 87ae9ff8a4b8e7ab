#include "collectives/hccl/creation/device_threads.h"

#include "acl/acl.h"
#include "runtime/base/process/thread.h"

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

void DeviceThreads::Add(int32_t device, std::function<Verdict()> call) {
  calls_.push_back([device, call = std::move(call)] { return CallOn(device, call); });
}

Verdict DeviceThreads::Run() {
  std::vector<Verdict> verdicts(calls_.size());
  const Status started = OnThreads(static_cast<int>(calls_.size()), "each device", [&](int i) {
    const auto seat = static_cast<size_t>(i);
    verdicts[seat] = calls_[seat]();
  });
  if (!started.ok()) return VerdictOf(started);
  for (const Verdict& verdict : verdicts) NPUMESH_RETURN_IF_REFUSED(verdict);
  return {};
}

int32_t SelectedDeviceId() {
  int32_t device = -1;
  return aclrtGetDevice(&device) == ACL_SUCCESS ? device : -1;
}

}  // namespace npumesh
