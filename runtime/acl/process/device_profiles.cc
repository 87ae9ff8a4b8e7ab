#include "runtime/acl/process/device_profiles.h"

#include <set>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/msprof/vendor_files.h"
#include "runtime/profile/owner.h"

namespace npumesh {
namespace {

// A client may give two ids to one device.
std::set<int> IndicesOf(const std::vector<int32_t>& devices, const Machine& machine) {
  std::set<int> indices;
  for (const int32_t device : devices) {
    const int index = machine.IndexOf(device);
    if (index >= 0) {
      indices.insert(index);
    } else {
      NPUMESH_WARNING("aclprofStart: device {} is not one of this process and is not profiled",
                      device);
    }
  }
  return indices;
}

ProfileOwner OwnerOf(const World& world, const ProfileRequest& request) {
  ProfileOwner owner = OwnerOf(world);
  owner.command = CommandLine();
  owner.training_trace = request.training_trace;
  owner.task_trace = (request.kinds & Profiler::SetOf(SpanKind::kTask)) != 0;
  return owner;
}

Status Finish(World& world) {
  Profiler& profiler = Profiler::Of(world);
  NPUMESH_RETURN_IF_ERROR(profiler.Stop());
  return WriteMsprofFolderBeside(profiler.path(), world.node_of());
}

}  // namespace

std::atomic<uint32_t> DeviceProfiles::kept_{0};

Status DeviceProfiles::Begin(ProfileRequest request, Machine* machine) {
  NPUMESH_RETURN_IF_ERROR(End());
  request_ = std::move(request);
  return machine == nullptr ? Status() : Attach(*machine);
}

Status DeviceProfiles::Attach(Machine& machine) {
  if (!request_) return Status();
  for (const int index : IndicesOf(request_->devices, machine)) {
    World& world = machine.local_device(index).world;
    const Status started = Profiler::Of(world).Start(request_->folder, OwnerOf(world, *request_),
                                                     Profiler::kMostBytes, request_->kinds);
    if (!started.ok()) {
      static_cast<void>(End());
      return started;
    }
    running_.push_back(&world);
  }
  kept_.store(request_->kinds, std::memory_order_relaxed);
  return Status();
}

Status DeviceProfiles::End() {
  kept_.store(0, std::memory_order_relaxed);
  request_.reset();
  Status first;
  for (World* const world : std::exchange(running_, {})) {
    const Status ended = Finish(*world);
    if (first.ok()) first = ended;
  }
  return first;
}

}  // namespace npumesh
