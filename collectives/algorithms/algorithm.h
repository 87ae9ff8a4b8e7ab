// Algorithms: for each collective an ordered table of ways to do it, best first, reference last.
//
// `why_not` says why a row cannot be taken; the first row that has no objection runs. It may look
// only at `Facts`, which are equal on all ranks, so that all ranks take the same row. Steps and
// bytes of each row: docs/algorithms.md.
//
// The rows small, direct, hierarchical and reference reduce every element in ascending rank order
// and round once: they give the same bits. mpi, ring, H-D_R and NHR each have another order.
#ifndef NPUMESH_COLLECTIVES_ALGORITHMS_ALGORITHM_H_
#define NPUMESH_COLLECTIVES_ALGORITHMS_ALGORITHM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/algorithms/hierarchy.h"
#include "collectives/contract/meeting.h"
#include "collectives/contract/request.h"
#include "collectives/contract/waiter.h"
#include "collectives/reduce/reduce.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"

namespace npumesh {

// One collective as this rank was asked for it. Pointers lie in this rank's HBM.
struct Call {
  CollectiveKind kind = CollectiveKind::kNone;
  DataType dtype = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  uint64_t count = 0;  // elements, as in Communicator
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  // The V variants: bytes and byte displacements by group rank. What is sent to oneself is received
  // from oneself. Empty for the others.
  std::span<const uint64_t> send_bytes, send_at, recv_bytes, recv_at;

  uint64_t bytes() const { return BytesOf(dtype, count).value_or(0); }

  // Block r of a buffer that has one for each group rank: as listed, else packed blocks of bytes().
  uint64_t send_block_bytes(int r) const { return Entry(send_bytes, r, bytes()); }
  uint64_t send_block_at(int r) const { return Entry(send_at, r, bytes() * Unsigned(r)); }
  uint64_t recv_block_bytes(int r) const { return Entry(recv_bytes, r, bytes()); }
  uint64_t recv_block_at(int r) const { return Entry(recv_at, r, bytes() * Unsigned(r)); }

 private:
  static uint64_t Unsigned(int r) { return static_cast<uint64_t>(r); }
  static uint64_t Entry(std::span<const uint64_t> list, int r, uint64_t otherwise) {
    return list.empty() ? otherwise : list[static_cast<size_t>(r)];
  }
};

// A value for each member of a group that shares memory, without an allocation.
template <typename T>
class PerMember {
 public:
  void push_back(T value) { values_[size_++] = value; }
  T* data() { return values_; }
  int size() const { return size_; }

 private:
  T values_[Meeting::kMaxSlotRanks];  // not initialised
  int size_ = 0;
};

// What is equal on all ranks.
struct Facts {
  CollectiveKind kind = CollectiveKind::kNone;
  int size = 1;
  bool in_window = false;     // all members share memory
  uint64_t bytes = 0;         // Call::bytes()
  bool reduces = false;       // FindReduce knows dtype and op, or nothing is reduced
  bool hierarchical = false;  // the members are on several nodes and share memory in each
  bool crowded = false;       // World::crowded()
};

// How the data of an algorithm travel. Eager data are copied into the meeting's slots, so the call
// has one synchronisation; otherwise ranks touch each other's buffers, and no rank leaves before
// all. In the window `run` does nothing but read and write buffers of the members; so without block
// lists, which are its caller's, any member can run it in another's place (shared_parts.h).
enum class Travel : uint8_t { kInBuffers, kEager, kInWindow };

// The group, as an algorithm sees it between Arrive and Depart.
struct Members {
  int rank = 0;
  int size = 1;
  World& world;
  DeviceMemory& memory;
  Meeting& meeting;
  const std::vector<int>& world_ranks;
  int tag = 0;                     // of this group's messages
  Hierarchy* hierarchy = nullptr;  // null unless Facts::hierarchical
  // What Deadline::meanwhile does in every wait of the call.
  const std::function<Status()>* meanwhile = nullptr;

  // For a wait that begins now: HCCL_EXEC_TIMEOUT.
  Deadline deadline() const { return {ExecDeadline(meeting.exec_timeout()).at, meanwhile}; }
  int world_rank(int peer) const { return world_ranks[static_cast<size_t>(peer)]; }

  // In the window: buffers of a member as this process sees them. With a hierarchy, of a member of
  // this node, in the rows that meet there.
  const std::byte* send_of(int peer) const {
    return memory.PeerAddress(world_rank(peer), window().send_offset(seat(peer)));
  }
  std::byte* recv_of(int peer) const {
    return memory.PeerAddress(world_rank(peer), window().recv_offset(seat(peer)));
  }
  // The block that a member has for this rank, in a call with block lists.
  const std::byte* block_of(int peer) const {
    return send_of(peer) + window().block_at(seat(peer));
  }

 private:
  const Meeting& window() const { return hierarchy ? *hierarchy->meeting : meeting; }
  int seat(int peer) const {
    return hierarchy ? hierarchy->index_of[static_cast<size_t>(peer)] : peer;
  }
};

struct Algorithm {
  std::string_view name;
  std::string_view (*why_not)(const Facts&);  // empty: no objection
  Status (*run)(const Call&, Members&);       // between Arrive and Depart (Pass, when eager)
  Travel travel = Travel::kInBuffers;
  bool meets_in_nodes = false;  // `run` stands between Arrive and Depart of each node's meeting too
};

// The built-in table of a collective; the last row never refuses.
std::span<const Algorithm> AlgorithmsFor(CollectiveKind kind);

// The names of the rows of all built-in tables, each once.
std::vector<std::string_view> AlgorithmNames();

// The first row of `table` that does not refuse; a row called `preferred` goes first when it does
// not refuse. With `trace`, says for every row it passes why not. REQUIRES: the last one never
// refuses.
const Algorithm& Choose(std::span<const Algorithm> table, const Facts& facts,
                        std::string_view preferred, bool trace);
// The same in the built-in table.
const Algorithm& Choose(const Facts& facts, std::string_view preferred, bool trace);

// One table a collective; each in the file of its name.
std::span<const Algorithm> AllReduceTable();
std::span<const Algorithm> AllGatherTable();
std::span<const Algorithm> ReduceScatterTable();
std::span<const Algorithm> BroadcastTable();
std::span<const Algorithm> AllToAllTable();  // AllToAll, AllToAllV and AllToAllVC
std::span<const Algorithm> ReduceTable();
std::span<const Algorithm> ScatterTable();
std::span<const Algorithm> AllGatherVTable();
std::span<const Algorithm> ReduceScatterVTable();
std::span<const Algorithm> BarrierTable();

// ---- parts of tables ----

std::string_view NoObjection(const Facts&);
std::string_view UnlessInWindow(const Facts& facts);
std::string_view UnlessHierarchical(const Facts& facts);
// For the rows whose data travel eagerly: every rank's share must fit into a slot.
std::string_view UnlessEager(const Facts& facts);

// What an eager row carries.
EagerData EagerDataOf(const Call& call, int rank, int size);

// MPI's own collective (Transport::Group): reference in speed, fallback across nodes.
Status MpiAllReduce(const Call&, Members&);
Status MpiAllGather(const Call&, Members&);
Status MpiReduceScatter(const Call&, Members&);
Status MpiBroadcast(const Call&, Members&);
Status MpiAllToAll(const Call&, Members&);
Status MpiBarrier(const Call&, Members&);
Status MpiReduce(const Call&, Members&);
Status MpiScatter(const Call&, Members&);
Status MpiReduceScatterV(const Call&, Members&);

// The plainest way: every rank sends everything to all others, and computes alone in rank order.
Status ReferenceAllReduce(const Call&, Members&);
Status ReferenceAllGather(const Call&, Members&);
Status ReferenceReduceScatter(const Call&, Members&);
Status ReferenceBroadcast(const Call&, Members&);
Status ReferenceAllToAll(const Call&, Members&);
Status ReferenceReduce(const Call&, Members&);
Status ReferenceScatter(const Call&, Members&);
Status ReferenceReduceScatterV(const Call&, Members&);

// The elements that `rank` of `size` works on when `count` are shared out in whole cache lines.
struct Slice {
  uint64_t begin = 0;
  uint64_t count = 0;
};
Slice SliceOf(uint64_t count, uint64_t element_bytes, int rank, int size);

// Output bytes of a rank above which reductions store past the cache. Measured: tests/bench.
inline constexpr uint64_t kStreamBytes = uint64_t{4} << 20;

// The same for copies, whose output no other rank reads and stays in the cache longer: stored past
// it, 8 MiB take 1.2 to 1.7 times as long as by memcpy, 16 MiB 0.7 to 0.85 times, 32 MiB 0.8 (2 and
// 4 ranks on 2 cores, 32 MiB of last-level cache).
inline constexpr uint64_t kCopyStreamBytes = uint64_t{16} << 20;

// Bytes that `call` leaves in the blocks of its receive buffer.
uint64_t OutputBytes(const Call& call, int size);

// Copies one block of a call that leaves `output_bytes` in all. `to` may equal `from`, else they
// must not overlap.
void CopyBlock(std::byte* to, const std::byte* from, uint64_t bytes, uint64_t output_bytes);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_ALGORITHMS_ALGORITHM_H_
