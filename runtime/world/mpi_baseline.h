// MpiBaseline: the MPI library's own blocking collectives, for `npumesh bench` to measure beside
// ours.
//
// Unlike PlainGroup, nothing here can be interrupted: a lost peer is waited for as long as MPI
// waits. Each call is one MPI call with the types MPI knows, as a program without npumesh would
// make it.
//
// Buffers are host pointers and must not overlap; counts are elements of 8 to 64 bits and fit into
// an int, else kUnsupported.
//
// Destroy it before the world is shut down. Thread-safety: none.
#ifndef NPUMESH_RUNTIME_WORLD_MPI_BASELINE_H_
#define NPUMESH_RUNTIME_WORLD_MPI_BASELINE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/data_type.h"
#include "runtime/base/status.h"
#include "runtime/world/transport.h"

namespace npumesh {

class MpiBaseline {
 public:
  // Collective over all ranks of the world. kUnsupported when MPI is not running (a rank without a
  // launcher, ranks as threads).
  static Result<std::unique_ptr<MpiBaseline>> Create();
  ~MpiBaseline();
  MpiBaseline(const MpiBaseline&) = delete;
  MpiBaseline& operator=(const MpiBaseline&) = delete;

  int size() const;

  // How reductions of `dtype` by `op` are done from now on. `combine` serves those MPI cannot do
  // (16-bit floats; max and min with NaN). Local.
  void SetReduction(DataType dtype, ReduceOp op, CombineFn combine);

  // Collective over all ranks of the world, each of them. The first three as SetReduction says.
  Status AllReduce(const void* send, void* recv, uint64_t count);
  Status Reduce(const void* send, void* recv, uint64_t count, int root);
  Status ReduceScatter(const void* send, void* recv, uint64_t recv_count);
  Status AllGather(const void* send, void* recv, uint64_t send_count, DataType dtype);
  Status Broadcast(void* buffer, uint64_t count, DataType dtype, int root);
  Status Scatter(const void* send, void* recv, uint64_t recv_count, DataType dtype, int root);
  Status AllToAll(const void* send, void* recv, uint64_t count, DataType dtype);
  // The same counts and displacements in both directions.
  Status AllToAllV(const void* send, void* recv, std::span<const int> counts,
                   std::span<const int> displacements, DataType dtype);
  Status Barrier();

 private:
  struct Impl;
  explicit MpiBaseline(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_MPI_BASELINE_H_
