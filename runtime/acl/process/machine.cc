#include "runtime/acl/process/machine.h"

#include <functional>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/process/thread.h"
#include "runtime/world/meeting.h"
#include "runtime/world/mpi_transport.h"
#include "runtime/world/thread_transport.h"

namespace npumesh {
namespace {

// `body` for each device, all at the same time, because they wait for each other; the first
// failure in their order.
Status OnDevices(int count, const std::function<Status(int)>& body) {
  std::vector<Status> statuses(static_cast<size_t>(count));
  NPUMESH_RETURN_IF_ERROR(OnThreads(count, "each device", [&](int i) {
    SetLogRank(count > 1 ? i : -1);
    statuses[static_cast<size_t>(i)] = body(i);
  }));
  for (int i = 0; i < count; ++i) {
    const Status& status = statuses[static_cast<size_t>(i)];
    if (!status.ok()) return status.WithContext(fmt::format("device {}", i));
  }
  return Status();
}

// Whether this process is a rank among others, rather than one that has all devices.
Result<bool> IsOneOfMany(const Env& env) {
  if (env.device_count) return false;
  if (StartedByLauncher()) return true;
  NPUMESH_ASSIGN_OR_RETURN(const std::optional<Appointment> appointment, AppointmentOf(env));
  return appointment.has_value();
}

}  // namespace

Result<std::unique_ptr<Machine>> Machine::Start(const Env& env) {
  NPUMESH_ASSIGN_OR_RETURN(const bool one_of_many, IsOneOfMany(env));
  if (!one_of_many) return StartThreads(env, env.device_count.value_or(1));
  std::unique_ptr<Machine> machine(new Machine);
  machine->launched_ = true;
  NPUMESH_ASSIGN_OR_RETURN(Seat seat, TakeSeat(World::Start(env)));
  machine->seats_.push_back(std::move(seat));
  return machine;
}

Result<std::unique_ptr<Machine>> Machine::StartThreads(const Env& env, int count) {
  std::unique_ptr<Machine> machine(new Machine);
  machine->seats_.resize(static_cast<size_t>(count));
  const auto fabric = MakeThreadFabric(count, {}, env.connect_timeout);
  NPUMESH_RETURN_IF_ERROR(OnDevices(count, [&](int rank) -> Status {
    Result<Seat> seat = TakeSeat(World::Start(env, MakeThreadTransport(fabric, rank)));
    if (!seat.ok()) return seat.status();
    machine->seats_[static_cast<size_t>(rank)] = *std::move(seat);
    return Status();
  }));
  return machine;
}

Result<Machine::Seat> Machine::TakeSeat(Result<std::unique_ptr<World>> world) {
  if (!world.ok()) return world.status();
  Seat seat;
  seat.world = *std::move(world);
  NPUMESH_ASSIGN_OR_RETURN(seat.memory,
                           DeviceMemory::Create(*seat.world, NodeSegment::Reach::kProcesses));
  seat.device = std::make_unique<AclDevice>(AclDevice{*seat.world, *seat.memory});
  return seat;
}

int Machine::CountBeforeStart(const Env& env) {
  if (env.device_count) return *env.device_count;
  const Result<bool> one_of_many = IsOneOfMany(env);
  if (!one_of_many.ok() || !*one_of_many) return 1;
  return env.launched_on_node.value_or(env.local_world_size.value_or(0));
}

int Machine::device_count() const {
  return launched_ ? seats_[0].world->local_size() : local_count();
}

DeviceIds Machine::ids() const {
  return {launched_, launched_ ? seats_[0].world->local_rank() : 0, local_count()};
}

int DeviceIds::IndexOf(int32_t device_id) const {
  if (launched) return device_id == 0 || device_id == local_rank ? 0 : -1;
  return device_id >= 0 && device_id < count ? device_id : -1;
}

Status Machine::Shutdown() {
  if (launched_) return seats_[0].world->Shutdown();
  return OnDevices(local_count(), [this](int rank) {
    return seats_[static_cast<size_t>(rank)].world->Shutdown();
  });
}

}  // namespace npumesh
