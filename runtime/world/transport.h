// Transport: how ranks reach each other, as a seam. MPI in the product, threads in tests and in
// programs that drive N devices from N threads of one process.
//
// Three things pass through it: memory that the ranks of one node share, messages between any two
// ranks, and plain collectives (MPI's own ones in the product). Nothing above this file knows MPI.
//
// Every blocking call takes a Deadline and is cut short with kPeerLost when a rank it waits for is
// known to be dead. "Collective over X" means: each rank of X must call it, in the same order.
//
// Thread-safety: `Probe`, and `Exchange` with tags apart, from any thread; else one at a time.
#ifndef NPUMESH_RUNTIME_WORLD_TRANSPORT_H_
#define NPUMESH_RUNTIME_WORLD_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/data_type.h"
#include "runtime/base/process/wait.h"
#include "runtime/base/status.h"

namespace npumesh {

enum class ReduceOp : uint8_t { kSum = 0, kProd = 1, kMax = 2, kMin = 3 };
std::string_view Name(ReduceOp op);  // "sum", "prod", "max", "min"

// Combines `count` elements: inout[i] = left[i] op inout[i]. Supplied by the floor above for the
// types that MPI does not know (float16, bfloat16).
using CombineFn = void (*)(const void* left, void* inout, uint64_t count);

// What is known about a peer.
enum class PeerState : uint8_t {
  kAlive,
  kGone,     // its process has ended
  kUnknown,  // on another node: only messages tell
};

// Memory that the ranks of a node share: each rank owns one part and maps the others'.
// Unmapped with the last owner; nothing has a name, so nothing is left behind after SIGKILL.
class NodeSegment {
 public:
  // Who may map a part.
  enum class Reach {
    kRanks,      // the ranks of the node; private memory when there is one
    kProcesses,  // also processes outside the world, by descriptor()
  };

  virtual ~NodeSegment() = default;
  // The part that `world_rank` owns; null when that rank is on another node.
  virtual std::byte* part(int world_rank) const = 0;
  // Bytes of every part.
  virtual uint64_t bytes() const = 0;
  // Of this rank's own part, open as long as the segment lives; -1: it cannot be mapped by others.
  virtual int descriptor() const { return -1; }
};

// Plain collectives over a fixed list of ranks: the reference, the fallback and the baseline.
// Buffers are ordinary host pointers; counts are elements. In-place calls pass the same pointer
// twice where the operation allows it.
class PlainGroup {
 public:
  virtual ~PlainGroup() = default;
  // Collective over the group, each of them.
  virtual Status AllReduce(const void* send, void* recv, uint64_t count, DataType dtype,
                           ReduceOp op, CombineFn combine, Deadline deadline) = 0;
  virtual Status ReduceScatter(const void* send, void* recv, uint64_t recv_count, DataType dtype,
                               ReduceOp op, CombineFn combine, Deadline deadline) = 0;
  virtual Status AllGather(const void* send, void* recv, uint64_t send_bytes,
                           Deadline deadline) = 0;
  virtual Status Broadcast(void* buffer, uint64_t bytes, int root, Deadline deadline) = 0;
  // Byte counts and byte displacements, one for each rank of the group.
  virtual Status AllToAllV(const void* send, std::span<const uint64_t> send_bytes,
                           std::span<const uint64_t> send_at, void* recv,
                           std::span<const uint64_t> recv_bytes, std::span<const uint64_t> recv_at,
                           Deadline deadline) = 0;
  virtual Status Barrier(Deadline deadline) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Node index of each world rank; nodes are numbered by their lowest world rank. Asked from the
  // system (who shares memory), never computed from the rank.
  virtual const std::vector<int>& node_of() const = 0;

  // Collective over the ranks of this node. `bytes` must be equal on all of them; it is rounded up
  // to whole pages. The memory is zero, and is only really taken where it is touched.
  virtual Result<std::unique_ptr<NodeSegment>> Share(
      std::string_view label, uint64_t bytes,
      NodeSegment::Reach reach = NodeSegment::Reach::kRanks) = 0;

  // Sends and receives at once with one peer; either side may be empty. Messages between two ranks
  // with the same tag keep their order. Tags in [0, 2^14).
  virtual Status Exchange(int send_to, std::span<const std::byte> send, int recv_from,
                          std::span<std::byte> recv, int tag, Deadline deadline) = 0;

  // Collective over `world_ranks` (group order). `key` tells two groups with equal members apart.
  virtual Result<std::unique_ptr<PlainGroup>> Group(const std::vector<int>& world_ranks,
                                                    uint32_t key, Deadline deadline) = 0;

  virtual PeerState Probe(int world_rank) const = 0;

  // Collective over all ranks: the orderly end. Without it, destruction is silent and local.
  virtual Status Shutdown(Deadline deadline) = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_TRANSPORT_H_
