// MachineFloor: what this machine takes for the least that a collective has to do, measured beside
// it.
//
// The least is: no rank goes on before all have come, and every rank writes what it receives once.
// So the ranks meet by one cache line each and then copy, from where the data lie; an element that
// is reduced counts as one that is copied. No call, no contract, nothing is told to others. A
// collective in which all ranks wait for all others cannot be faster by any means but better
// copies.
//
// Thread-safety: none.
#ifndef NPUMESH_LAUNCH_BENCH_MACHINE_FLOOR_H_
#define NPUMESH_LAUNCH_BENCH_MACHINE_FLOOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/contract/waiter.h"
#include "launch/bench/bench_op.h"
#include "launch/ranks/rank_circle.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"

namespace npumesh {

class MachineFloor {
 public:
  // Collective over all ranks, which share memory. All must outlive the floor.
  static Result<std::unique_ptr<MachineFloor>> Create(World& world, DeviceMemory& memory,
                                                      RankCircle& circle);
  ~MachineFloor();

  // Collective over all ranks: from here on the buffers of `calls`, which are used in turn.
  Status Use(const BenchOp& op, const std::vector<BenchCall>& calls, const Seat& seat);
  // Collective over all ranks: the least of call number `i`. REQUIRES: Use.
  Status Run(int i);

 private:
  // Where a rank has come to. Its owner's only, and polled by all.
  struct alignas(64) Line {
    std::atomic<uint64_t> meeting;
    std::atomic<int32_t> cpu;
  };
  struct Copy {
    std::byte* to;
    const std::byte* from;
    uint64_t bytes;
  };

  MachineFloor(World& world, DeviceMemory& memory, RankCircle& circle);
  Status Meet();
  // Collective over all ranks: where the block of each rank is, as seen from here.
  Result<std::vector<std::byte*>> Everybodys(const std::byte* mine);

  World& world_;
  DeviceMemory& memory_;
  RankCircle& circle_;
  Waiter waiter_;
  void* block_ = nullptr;     // this rank's Line
  std::vector<Line*> lines_;  // by rank
  uint64_t meeting_ = 0;
  std::vector<std::vector<Copy>> copies_;  // of each call
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_BENCH_MACHINE_FLOOR_H_
