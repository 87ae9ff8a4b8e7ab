// Machine: the worlds and device memories behind a process of the C interface.
//
// Under a launcher it is one world, this rank's, and one device. Otherwise it is N ranks in a world
// of threads and N devices (NPUMESH_DEVICE_COUNT, or one).
//
// Thread-safety: const members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_PROCESS_MACHINE_H_
#define NPUMESH_RUNTIME_ACL_PROCESS_MACHINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/acl/process/device_context.h"
#include "runtime/base/env/env.h"

namespace npumesh {

// The ids that clients give to the devices of a process. One that belongs to a launched rank
// answers to its local index and to 0.
struct DeviceIds {
  bool launched = false;
  int local_rank = 0;  // when launched
  int count = 0;       // devices of this process

  // Which device of this process an id means; -1: none.
  int IndexOf(int32_t device_id) const;
};

class Machine {
 public:
  // Collective over all ranks of the launcher. Without one all worlds and memories are made here,
  // by as many temporary threads, since that is collective over them.
  static Result<std::unique_ptr<Machine>> Start(const Env& env);

  // The devices of the node before a machine was started: what the environment says. 0 when only
  // the ranks can tell.
  static int CountBeforeStart(const Env& env);

  // Devices of the node, as clients count them.
  int device_count() const;
  // Devices of this process.
  int local_count() const { return static_cast<int>(seats_.size()); }
  AclDevice& local_device(int index) { return *seats_[static_cast<size_t>(index)].device; }
  DeviceIds ids() const;
  // NPUMESH_GUARD.
  bool guard() const { return seats_[0].world->env().guard; }
  // Which device of this process answers to a client's id; -1: none.
  int IndexOf(int32_t device_id) const { return ids().IndexOf(device_id); }

  // Collective like Start; the orderly end. Says what went wrong, having ended all the same.
  Status Shutdown();

 private:
  struct Seat {
    std::unique_ptr<World> world;
    std::unique_ptr<DeviceMemory> memory;
    std::unique_ptr<AclDevice> device;
  };

  static Result<Seat> TakeSeat(Result<std::unique_ptr<World>> world);
  static Result<std::unique_ptr<Machine>> StartThreads(const Env& env, int count);

  bool launched_ = false;
  std::vector<Seat> seats_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_PROCESS_MACHINE_H_
