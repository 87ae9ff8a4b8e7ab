// Communicator: a group of ranks and the collectives over it. What the graph and the C API call.
//
// Every collective runs the contract (design 3.4): the ranks meet, compare what they were asked to
// do, and either all run the same algorithm or all return the same explanation. A communicator that
// has returned an error is broken; further calls return that error.
//
// Buffers are pointers into this rank's HBM; others are refused with kInvalidArgument. Counts are
// elements. A call returns when the caller's buffers are its own again.
//
// Thread-safety: one collective at a time for one communicator; different communicators are
// independent and may be used from different threads.
#ifndef NPUMESH_COLLECTIVES_COMMUNICATOR_H_
#define NPUMESH_COLLECTIVES_COMMUNICATOR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/data_type.h"
#include "runtime/base/status.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"

namespace npumesh {

// The name graphs use for the group of all ranks.
inline constexpr std::string_view kWorldGroup = "hccl_world_group";

class Communicator {
 public:
  // Collective over `world_ranks`, whose order defines the group ranks. `name` tells groups with
  // equal members apart and stands in messages. Waits for the members up to env.connect_timeout.
  // Errors: kInvalidArgument (this rank is no member, a member is listed twice or does not exist);
  // kTimeout and kPeerLost naming the members that did not come.
  // `world` and `memory` must outlive the communicator.
  static Result<std::unique_ptr<Communicator>> Create(World& world, DeviceMemory& memory,
                                                      std::string name,
                                                      std::vector<int> world_ranks);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;  // in the group
  int size() const;
  const std::string& name() const;
  const std::vector<int>& world_ranks() const;

  // Collective over the group, all of them. `node` is the operator's name for messages.
  // recv[i] = op over ranks of send[i]; send may equal recv.
  Status AllReduce(const void* send, void* recv, uint64_t count, DataType dtype, ReduceOp op,
                   std::string_view node = {});
  // recv[r * send_count + i] = send[i] of rank r.
  Status AllGather(const void* send, void* recv, uint64_t send_count, DataType dtype,
                   std::string_view node = {});
  // recv[i] = op over ranks of send[rank() * recv_count + i].
  Status ReduceScatter(const void* send, void* recv, uint64_t recv_count, DataType dtype,
                       ReduceOp op, std::string_view node = {});
  // buffer of every rank = buffer of `root` (a group rank).
  Status Broadcast(void* buffer, uint64_t count, DataType dtype, int root,
                   std::string_view node = {});
  // Block r of recv = block rank() of rank r's send; blocks have `count` elements.
  Status AllToAll(const void* send, void* recv, uint64_t count, DataType dtype,
                  std::string_view node = {});
  // Element counts and displacements, one for each rank of the group.
  Status AllToAllV(const void* send, std::span<const uint64_t> send_counts,
                   std::span<const uint64_t> send_displacements, void* recv,
                   std::span<const uint64_t> recv_counts,
                   std::span<const uint64_t> recv_displacements, DataType dtype,
                   std::string_view node = {});
  Status Barrier(std::string_view node = {});

  // Time this rank spent inside collectives of this communicator, and how many there were.
  struct Totals {
    uint64_t calls = 0;
    double seconds = 0;
    uint64_t bytes = 0;  // bytes sent by this rank's buffers
  };
  Totals totals() const;

 private:
  struct Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_COMMUNICATOR_H_
