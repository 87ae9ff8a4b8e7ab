// ApiSpan and WorkSpan: what a C program calls and what its streams do, in the profile of a device.
//
// When no device is profiled each costs one relaxed load (DeviceProfiles::AnyKeeps). A span that is
// open when the profile ends is not written.
//
// Thread-safety: local variables of one thread.
#ifndef NPUMESH_RUNTIME_ACL_PROCESS_API_SPAN_H_
#define NPUMESH_RUNTIME_ACL_PROCESS_API_SPAN_H_

#include <cstdint>
#include <string_view>

#include "runtime/acl/process/device_context.h"
#include "runtime/acl/process/device_profiles.h"

namespace npumesh {

// A call of the C interface, from here to the end of the block, in the profile of the device that
// is current in this thread; nothing without one.
class ApiSpan {
 public:
  // `function` is its name.
  explicit ApiSpan(std::string_view function) {
    if (DeviceProfiles::AnyKeeps(SpanKind::kApi)) Begin(function);
  }
  ~ApiSpan() {
    if (profiler_ != nullptr) End();
  }
  ApiSpan(const ApiSpan&) = delete;
  ApiSpan& operator=(const ApiSpan&) = delete;

 private:
  [[gnu::cold]] void Begin(std::string_view function);
  [[gnu::cold]] void End();

  Profiler* profiler_ = nullptr;  // null: nothing is written
  uint32_t subject_ = 0;
  int64_t begin_ns_ = 0;
};

// What a device does for a program.
struct DeviceWork {
  SpanKind kind = SpanKind::kTask;  // or kCopy
  std::string_view name;            // of a copy its direction: "host to device"
  std::string_view type;            // of a task: "MemSet"
  uint64_t bytes = 0;
  uint16_t lane = kHostLane;
  int64_t put_ns = 0;  // when the program put it on a stream (PutTime); 0: not known
};

// Now, for DeviceWork; 0 when no device is profiled.
inline int64_t PutTime() {
  return DeviceProfiles::AnyKeeps(SpanKind::kTask) ? Profiler::Now() : 0;
}

// Work, from here to the end of the block, in the profile of `device`; null: nothing.
class WorkSpan {
 public:
  WorkSpan(AclDevice* device, const DeviceWork& work) {
    if (device != nullptr && DeviceProfiles::AnyKeeps(work.kind)) Begin(*device, work);
  }
  ~WorkSpan() {
    if (profiler_ != nullptr) End();
  }
  WorkSpan(const WorkSpan&) = delete;
  WorkSpan& operator=(const WorkSpan&) = delete;

 private:
  void Begin(AclDevice& device, const DeviceWork& work);
  void End();

  Profiler* profiler_ = nullptr;  // null: nothing is written
  Span span_;
};

// A mark or range of the program's own, from `begin_ns` (Profiler::Now) until now, in the profile
// of `device`, null: of the device that is current in this thread.
struct ProgramRange {
  std::string_view name;
  std::string_view type;  // "Mark", "Range"
  int64_t begin_ns = 0;
  uint16_t lane = kHostLane;
};
void NoteRange(const ProgramRange& range, AclDevice* device = nullptr);

// Says how much memory of the device that is current in this thread is in use now.
void NoteDeviceMemory();

// The lane of a stream with this id (aclrtStreamGetId), which is the id as far as lanes go.
uint16_t LaneOfStream(int32_t id);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_PROCESS_API_SPAN_H_
