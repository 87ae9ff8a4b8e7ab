// BenchJob: measures one size of one collective on this rank, with all others.
//
// Thread-safety: none.
#ifndef NPUMESH_LAUNCH_BENCH_BENCH_JOB_H_
#define NPUMESH_LAUNCH_BENCH_BENCH_JOB_H_

#include <memory>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_tables.h"
#include "collectives/communicator.h"
#include "launch/bench/bench_op.h"
#include "launch/bench/bench_options.h"
#include "launch/bench/bench_report.h"
#include "launch/bench/hccl_group.h"
#include "launch/bench/machine_floor.h"
#include "launch/ranks/rank_circle.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/blocked_watch.h"
#include "runtime/world/mpi_baseline.h"
#include "runtime/world/world.h"

namespace npumesh {

// What one rank has measured and found.
struct Measured {
  BenchTimes ours;
  BenchTimes mpi;     // empty without a baseline
  BenchTimes floor;   // empty without --floor
  std::string wrong;  // the first wrong element; empty: right, or not checked
};

class BenchJob {
 public:
  // `world`, `options` and `circle` must outlive the job. With BenchApi::kHccl the world is that of
  // the device which this thread has selected.
  BenchJob(World& world, const BenchOptions& options, RankCircle& circle)
      : world_(world), options_(options), circle_(circle) {}

  // Local: loads the algorithms. kInvalidArgument for options that do not fit these ranks, or
  // `ops`; errors of AlgorithmTables::Load.
  Status CheckOptions(std::span<const BenchOp* const> ops);

  // Collective over all ranks: memory, group, baseline. REQUIRES: CheckOptions was asked.
  Status Prepare();

  // Collective over all ranks. The point is complete on all of them.
  Result<BenchPoint> Run(const BenchOp& op, uint64_t size);

  BenchPlace place() const;

 private:
  Status JoinHccl();
  Status JoinCommunicator();
  Result<Measured> Measure(const BenchOp& op, const Seat& seat);
  // Collective over all ranks: one call of ours, done when it returns.
  Status Ours(const BenchOp& op, const BenchCall& call);
  Status Meet();
  Status Time(const BenchOp& op, const Seat& seat, const std::vector<BenchCall>& calls,
              Measured& measured);
  // One more call of ours and of MPI's, every element compared; what is wrong, or nothing.
  Result<std::string> Verify(const BenchOp& op, const Seat& seat, const BenchCall& call);
  Result<BenchPoint> Conclude(const BenchOp& op, uint64_t size, const Seat& seat,
                              const Measured& mine);

  World& world_;
  const BenchOptions& options_;
  RankCircle& circle_;
  std::shared_ptr<const AlgorithmTables> tables_ = std::make_shared<AlgorithmTables>();
  std::unique_ptr<DeviceMemory> own_memory_;  // null with the device's
  DeviceMemory* memory_ = nullptr;
  std::unique_ptr<Communicator> group_;  // one of the two
  std::unique_ptr<HcclGroup> hccl_;
  std::unique_ptr<MpiBaseline> mpi_;         // null without a baseline
  std::unique_ptr<BlockedWatch> mpi_watch_;  // beside it, because MPI's calls do not end
  std::unique_ptr<MachineFloor> floor_;      // null without --floor
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_BENCH_BENCH_JOB_H_
