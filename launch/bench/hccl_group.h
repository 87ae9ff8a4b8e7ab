// HcclGroup: all ranks as one communicator of the C interface, whose calls go to a stream of this
// rank. A measured call is what a program pays: HcclXxx and aclrtSynchronizeStream.
//
// Thread-safety: none.
#ifndef NPUMESH_LAUNCH_BENCH_HCCL_GROUP_H_
#define NPUMESH_LAUNCH_BENCH_HCCL_GROUP_H_

#include <memory>

#include "launch/bench/bench_op.h"
#include "launch/bench/bench_options.h"
#include "launch/ranks/rank_circle.h"
#include "runtime/world/world.h"

namespace npumesh {

// Collective over all ranks: the world of the device that the C interface gives this process, which
// this thread selects. MPI runs once in a process, so no other code may start a world. Errors:
// those of World::Start.
Result<World*> StartHcclWorld();

// Collective over all ranks: its orderly end. What was made in the world is gone before.
Status EndHcclWorld();

// Whether HCCL has `op` for the element type and the reduction asked for. kInvalidArgument when it
// has not.
Status CheckHccl(const BenchOp& op, const BenchOptions& options);

class HcclGroup {
 public:
  // Collective over all ranks, on the device that this thread has selected. REQUIRES: CheckHccl
  // accepts `dtype`.
  static Result<std::unique_ptr<HcclGroup>> Create(RankCircle& circle, DataType dtype);
  ~HcclGroup();
  HcclGroup(const HcclGroup&) = delete;
  HcclGroup& operator=(const HcclGroup&) = delete;

  // Collective over all ranks: the call, until the stream has done it.
  Status Run(const BenchOp& op, const BenchCall& call);
  Status Barrier();

 private:
  HcclGroup() = default;
  Status Await(HcclResult issued);

  HcclSeat seat_;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_BENCH_HCCL_GROUP_H_
