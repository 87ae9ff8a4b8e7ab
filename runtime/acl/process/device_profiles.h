// DeviceProfiles: which devices of the process are profiled, from aclprofStart to aclprofStop.
//
// Thread-safety: AclProcess calls Begin, Attach and End under its mutex; AnyKeeps from any thread.
#ifndef NPUMESH_RUNTIME_ACL_PROCESS_DEVICE_PROFILES_H_
#define NPUMESH_RUNTIME_ACL_PROCESS_DEVICE_PROFILES_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/acl/process/machine.h"
#include "runtime/profile/profiler.h"

namespace npumesh {

// What aclprofStart asks for.
struct ProfileRequest {
  std::string folder;
  std::vector<int32_t> devices;  // as the client numbers them
  uint32_t kinds = 0;            // of spans, as Profiler::SetOf
  bool training_trace = false;
};

class DeviceProfiles {
 public:
  // True when the profile of a device keeps spans of this kind: one relaxed load, which is all that
  // a call costs when no device is profiled.
  static bool AnyKeeps(SpanKind kind) {
    return (kept_.load(std::memory_order_relaxed) & Profiler::SetOf(kind)) != 0;
  }

  // Profiles the devices of `machine`, which may be null: then from Attach on. Errors of
  // Profiler::Start; nothing is profiled then.
  Status Begin(ProfileRequest request, Machine* machine);
  // The machine has started. Warns of devices that are not of this process.
  Status Attach(Machine& machine);
  // Ends all files and makes the vendor's from them (runtime/msprof). Error (kIo): one could not be
  // written. OK when nothing is profiled.
  Status End();

 private:
  // Defined in libacl_rt alone: a second one in a library above would never be set.
  static std::atomic<uint32_t> kept_;

  std::optional<ProfileRequest> request_;
  std::vector<World*> running_;  // whose profilers run
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_PROCESS_DEVICE_PROFILES_H_
