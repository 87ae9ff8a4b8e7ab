#include "runtime/acl/process/api_span.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/acl/process/process.h"
#include "runtime/profile/scoped_span.h"

namespace npumesh {
namespace {

constexpr uint16_t kFirstStreamLane = kCommunicationLane + 1;

// The ids of what the spans of one device are about, each named once a run of the profiler.
//
// Thread-safety: any thread.
class SubjectTable final : public WorldCompanion {
 public:
  static SubjectTable& Of(World& world) {
    const auto make = []() -> std::unique_ptr<WorldCompanion> {
      return std::make_unique<SubjectTable>();
    };
    return *static_cast<SubjectTable*>(world.Keep("acl subjects", make));
  }

  uint32_t IdOf(Profiler& profiler, std::string_view name, std::string_view type) {
    const std::lock_guard lock(mutex_);
    if (run_ != profiler.run()) ids_.clear();
    run_ = profiler.run();
    auto of_type = ids_.find(type);
    if (of_type == ids_.end()) of_type = ids_.emplace(type, Ids()).first;
    Ids& ids = of_type->second;
    if (const auto known = ids.find(name); known != ids.end()) return known->second;
    ProfiledTask task;
    task.name = name;
    task.type = type;
    return ids.emplace(name, profiler.Name(std::move(task))).first->second;
  }

 private:
  using Ids = std::map<std::string, uint32_t, std::less<>>;  // by name

  std::mutex mutex_;
  uint64_t run_ = 0;
  std::map<std::string, Ids, std::less<>> ids_;  // by type
};

AclDevice* DeviceOfThread() {
  const auto context = AclProcess::CurrentContext();
  return context == nullptr ? nullptr : context->device;
}

}  // namespace

void NoteRange(const ProgramRange& range, AclDevice* device) {
  if (!DeviceProfiles::AnyKeeps(SpanKind::kTask)) return;
  if (device == nullptr) device = DeviceOfThread();
  if (device == nullptr) return;
  Profiler& profiler = Profiler::Of(device->world);
  if (!profiler.keeps(SpanKind::kTask)) return;
  Span span;
  span.kind = SpanKind::kTask;
  span.subject = SubjectTable::Of(device->world).IdOf(profiler, range.name, range.type);
  span.begin_ns = range.begin_ns;
  span.end_ns = Profiler::Now();
  span.lane = range.lane;
  profiler.Add(span);
}

void ApiSpan::Begin(std::string_view function) {
  AclDevice* const device = DeviceOfThread();
  if (device == nullptr) return;
  Profiler& profiler = Profiler::Of(device->world);
  if (!profiler.keeps(SpanKind::kApi)) return;
  profiler_ = &profiler;
  subject_ = SubjectTable::Of(device->world).IdOf(profiler, function, "");
  begin_ns_ = Profiler::Now();
}

void ApiSpan::End() {
  Span span;
  span.begin_ns = begin_ns_;
  span.end_ns = Profiler::Now();
  span.subject = subject_;
  span.kind = SpanKind::kApi;
  span.lane = kHostLane;
  profiler_->Add(span);
}

void WorkSpan::Begin(AclDevice& device, const DeviceWork& work) {
  Profiler& profiler = Profiler::Of(device.world);
  if (!profiler.keeps(work.kind)) return;
  profiler_ = &profiler;
  span_.kind = work.kind;
  span_.lane = work.lane;
  span_.bytes = work.bytes;
  span_.arrived_ns = work.put_ns;
  span_.subject = SubjectTable::Of(device.world).IdOf(profiler, work.name, work.type);
  span_.begin_ns = Profiler::Now();
}

void WorkSpan::End() {
  span_.end_ns = Profiler::Now();
  profiler_->Add(span_);
}

void NoteDeviceMemory() {
  if (!DeviceProfiles::AnyKeeps(SpanKind::kMemory)) return;
  const AclDevice* const device = DeviceOfThread();
  if (device != nullptr) NoteMemory(&Profiler::Of(device->world), device->memory.used_bytes());
}

uint16_t LaneOfStream(int32_t id) {
  constexpr int32_t kLanes = kHostLane - kFirstStreamLane;
  return static_cast<uint16_t>(kFirstStreamLane + (id - kFirstStreamLane) % kLanes);
}

}  // namespace npumesh
