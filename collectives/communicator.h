// Communicator: a group of ranks and the collectives over it. What the graph and the C API call.
//
// Every collective runs the contract (docs/window.md): the ranks meet, compare what they were
// asked to do, and either all run the same algorithm or all return the same explanation. A
// communicator that has returned an error is broken; further calls return that error.
//
// Buffers are pointers into this rank's HBM; others are refused with kInvalidArgument. Counts are
// elements. A call returns when the caller's buffers are its own again.
//
// Thread-safety: one collective at a time for one communicator; different communicators are
// independent and may be used from different threads.
#ifndef NPUMESH_COLLECTIVES_COMMUNICATOR_H_
#define NPUMESH_COLLECTIVES_COMMUNICATOR_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
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

struct CommunicatorOptions {
  // In place of env.hccl_algo, in the same grammar (docs/algorithms.md).
  std::optional<std::string> algo;
  // In place of env.exec_timeout: how long a call waits for its members; kNoTimeout: without limit.
  // The members should say the same.
  std::optional<std::chrono::seconds> exec_timeout;
  // false: the members do not compare their requests, and a mismatch is undefined. For measuring
  // what comparing costs (tests/bench/bench_contract); equal on all members.
  bool contract = true;
  // true: Create does not wait, and the members meet in the first collective of the group, which
  // waits as any collective. Messages need no meeting. So members that are idle, or late, hold no
  // others; for groups that are declared in a graph. Equal on all members.
  bool meets_late = false;
  // true: a root that repeats a small broadcast does not wait for the others, up to 16 calls long
  // (contract/run_ahead.h). What it would have learned in those calls, one of its next calls
  // returns, or Close. Equal on all members.
  bool run_ahead = false;
};

// One half of a message in a BatchSendRecv.
struct SendRecvItem {
  bool sends = false;  // else receives
  void* buffer = nullptr;
  uint64_t count = 0;
  DataType dtype = DataType::kFloat;
  int peer = 0;  // group rank
};

class Communicator {
 public:
  // Collective over `world_ranks`, whose order defines the group ranks; with options.meets_late
  // local. `name` tells groups with equal members apart and stands in messages. Waits for the
  // members up to env.connect_timeout.
  // Errors: kInvalidArgument (this rank is no member, a member is listed twice or does not exist;
  // an algorithm that cannot be asked for); those of env.algorithm_libraries; kTimeout and
  // kPeerLost naming the members that did not come. `world` and `memory` must outlive the
  // communicator.
  static Result<std::unique_ptr<Communicator>> Create(World& world, DeviceMemory& memory,
                                                      std::string name,
                                                      std::vector<int> world_ranks,
                                                      const CommunicatorOptions& options = {});
  ~Communicator();  // closes
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Ends the group for this rank; no call may follow. Waits up to a second for those that still
  // read what this rank has sent. The mismatch that is found in a call which ran ahead, the same
  // text as on all ranks; OK for a group that is broken already. Without a Close the end of the
  // communicator logs it. Local.
  Status Close();

  int rank() const;  // in the group
  int size() const;
  const std::string& name() const;
  const std::vector<int>& world_ranks() const;

  // Collective over the group, all of them. `node` is the operator's name for messages. Counts and
  // displacements in spans are elements, one for each rank of the group; displacements may leave
  // gaps and differ between ranks, counts may not.

  // recv[i] = op over ranks of send[i]; send may equal recv.
  Status AllReduce(const void* send, void* recv, uint64_t count, DataType dtype, ReduceOp op,
                   std::string_view node = {});
  // As AllReduce at `root` (a group rank); elsewhere recv is not touched and may be null.
  Status Reduce(const void* send, void* recv, uint64_t count, DataType dtype, ReduceOp op, int root,
                std::string_view node = {});
  // recv[r * send_count + i] = send[i] of rank r. send may be this rank's block of recv.
  Status AllGather(const void* send, void* recv, uint64_t send_count, DataType dtype,
                   std::string_view node = {});
  // Block r of recv = the recv_counts[r] elements of rank r's send. recv_counts[rank()] is
  // send_count.
  Status AllGatherV(const void* send, uint64_t send_count, void* recv,
                    std::span<const uint64_t> recv_counts,
                    std::span<const uint64_t> recv_displacements, DataType dtype,
                    std::string_view node = {});
  // recv[i] = op over ranks of send[rank() * recv_count + i]. recv may be this rank's block of
  // send.
  Status ReduceScatter(const void* send, void* recv, uint64_t recv_count, DataType dtype,
                       ReduceOp op, std::string_view node = {});
  // recv = op over ranks of their blocks for this rank. send_counts[rank()] is recv_count. send and
  // recv must not overlap.
  Status ReduceScatterV(const void* send, std::span<const uint64_t> send_counts,
                        std::span<const uint64_t> send_displacements, void* recv,
                        uint64_t recv_count, DataType dtype, ReduceOp op,
                        std::string_view node = {});
  // buffer of every rank = buffer of `root` (a group rank).
  Status Broadcast(void* buffer, uint64_t count, DataType dtype, int root,
                   std::string_view node = {});
  // recv = block rank() of root's send, which elsewhere is not touched and may be null.
  Status Scatter(const void* send, void* recv, uint64_t recv_count, DataType dtype, int root,
                 std::string_view node = {});
  // Block r of recv = block rank() of rank r's send; blocks have `count` elements. Here and in the
  // two below send and recv must not overlap.
  Status AllToAll(const void* send, void* recv, uint64_t count, DataType dtype,
                  std::string_view node = {});
  Status AllToAllV(const void* send, std::span<const uint64_t> send_counts,
                   std::span<const uint64_t> send_displacements, void* recv,
                   std::span<const uint64_t> recv_counts,
                   std::span<const uint64_t> recv_displacements, DataType dtype,
                   std::string_view node = {});
  // matrix[i * size() + j] elements go from rank i to rank j; blocks lie packed in rank order.
  Status AllToAllVC(const void* send, std::span<const uint64_t> matrix, void* recv, DataType dtype,
                    std::string_view node = {});
  Status Barrier(std::string_view node = {});

  // Collective over this rank and `peer` (a group rank, not this one). Messages from one rank to
  // another pair in the order in which both ask for them; both calls return when the receiver has
  // the data. kMismatch on both when count or dtype differ.
  Status Send(const void* buffer, uint64_t count, DataType dtype, int peer,
              std::string_view node = {});
  Status Recv(void* buffer, uint64_t count, DataType dtype, int peer, std::string_view node = {});
  // All items at the same time: none waits for another, whatever their order on either side. At
  // most one send and one receive for each peer; to itself a rank sends what it receives.
  Status BatchSendRecv(std::span<const SendRecvItem> items, std::string_view node = {});

  // What this rank has asked of this communicator so far.
  struct Totals {
    uint64_t calls = 0;
    uint64_t bytes = 0;  // bytes sent by this rank's buffers
    uint64_t torn = 0;   // failed when data were under way: others may still touch them
  };
  Totals totals() const;

  // This rank fails in the next call, in which the others wait: on all of them it fails for this
  // reason, and all go on with the call after it (FailTogether). Local but for ComeBack.
  void FailNext(const Status& why);
  // The members have failed together in a call of something else that uses this group: they meet
  // anew in its next call. Local, and all members say so.
  void MeetAnew();

 private:
  struct Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_COMMUNICATOR_H_
