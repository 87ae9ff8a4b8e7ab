// Meeting: where the ranks of a group meet for each collective, compare their requests and tell
// each other where their buffers are.
//
// In a node the ranks meet in shared memory: every rank owns one *slot* for each group, with one
// cache line that says "I have arrived at call s, with this fingerprint, my buffers are here" and
// one that says "I am done with call s". A call in which ranks touch each other's buffers ends with
// Depart, which waits for all; a small one, whose data travel in the slots themselves (eager), ends
// with Pass, which does not wait: one synchronisation. When members are on several nodes, the
// requests travel as messages.
//
// Thread-safety: one collective at a time.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_MEETING_H_
#define NPUMESH_COLLECTIVES_CONTRACT_MEETING_H_

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/contract/request.h"
#include "runtime/world/world.h"

namespace npumesh {

class SharedParts;

// Where one rank's buffers lie in its HBM, and for AllToAll(V) the blocks it exchanges with each
// member (by group rank; empty for other collectives, on all ranks alike).
struct Buffers {
  uint64_t send_offset = 0;
  uint64_t recv_offset = 0;
  std::span<const uint64_t> send_bytes;
  std::span<const uint64_t> send_at;  // byte displacements
  std::span<const uint64_t> recv_bytes;
};

// What a call carries in the slots themselves.
struct EagerData {
  std::span<const std::byte> bytes;  // of this rank; at most Meeting::kEagerBytes
  // The group rank that alone has data, and how much; equal on all ranks. -1: all have as much.
  int sole_sender = -1;
  uint64_t sole_bytes = 0;
  // The part of the others' data that this rank reads; no bytes: all.
  uint64_t part_at = 0;
  uint64_t part_bytes = 0;
  // A sole sender that repeats its call may run ahead; equal on all ranks.
  bool may_run_ahead = false;

  // The group rank that may run ahead; -1: none.
  int leader() const { return may_run_ahead ? sole_sender : -1; }
  // How much group rank `peer` has, and the one with the most.
  uint64_t bytes_of(int peer) const {
    if (sole_sender < 0) return bytes.size();
    return peer == sole_sender ? sole_bytes : 0;
  }
  uint64_t most_bytes() const { return sole_sender < 0 ? bytes.size() : sole_bytes; }
};

class Meeting {
 public:
  // Data that fit into a slot.
  static constexpr uint64_t kEagerBytes = uint64_t{32} << 10;
  // Groups of more ranks than this do not fit a slot and meet by messages.
  static constexpr int kMaxSlotRanks = 512;

  // Of the group whose members are `world_ranks`. `world` must outlive the meeting. Local.
  static std::unique_ptr<Meeting> Of(World& world, const std::string& name,
                                     const std::vector<int>& world_ranks);
  virtual ~Meeting() = default;

  // Collective. The members find each other, once and before any call. Waits up to `limit`, and
  // says that it waits in `what`: "creating group "tp"", or the group's first call. Groups of equal
  // name and members are told apart by the order in which they meet.
  virtual Status Meet(const std::string& what, std::chrono::seconds limit) = 0;

  // Collective. Waits for all, compares all: requests, and that every block is expected as it is
  // sent. On disagreement every rank gets the same error, after which the meeting must not be used
  // again. `eager`, only in the window, is copied to where the others read it.
  //
  // In the window a sole sender that repeats its call does not wait for the others (run_ahead.h);
  // what it did not learn it learns in one of its next calls.
  virtual Status Arrive(const Announcement& announcement, const Buffers& buffers,
                        const EagerData& eager) = 0;
  // Collective. Waits until all have called it: buffers belong to their owners again.
  virtual Status Depart() = 0;
  // Ends a call in which members read and write eager data only. Does not wait.
  virtual void Pass() = 0;

  // Between Arrive and DepartShared, in the window: the parts of the members, which they may run
  // for each other. Null where members do not share memory.
  virtual SharedParts* parts() { return nullptr; }
  // Collective, instead of Depart after a call whose parts were shared: waits until all parts are
  // done.
  virtual Status DepartShared() { return Depart(); }

  // No call may follow. Waits a moment for those that still read what this rank has left for them,
  // and returns what was found wrong with a call that ran ahead; what Arrive has returned is not
  // said again. Local.
  virtual Status Close() { return Status(); }

  // From here on requests are not compared where the members share memory; all members call it.
  virtual void StopComparing() {}

  // True when the members share memory, and with it the next calls have a meaning.
  virtual bool in_window() const = 0;
  // Between Arrive and Depart: the offsets group rank `peer` has named.
  virtual uint64_t send_offset(int peer) const = 0;
  virtual uint64_t recv_offset(int peer) const = 0;
  // The eager data of `peer`; valid until Pass or Depart.
  virtual const std::byte* eager(int peer) const = 0;
  // Where the block that `peer` sends to this rank in an AllToAll(V) begins in its send buffer.
  virtual uint64_t block_at(int peer) const = 0;

  // MPI's (or the transport's) own collectives over the group; made when first asked for.
  // Collective.
  virtual Result<PlainGroup*> Plain() = 0;

  // Number of the next call.
  virtual uint64_t sequence() const = 0;

  // How long a call waits for its members, here and in the algorithm; kNoTimeout: without limit. At
  // first env.exec_timeout. Local.
  std::chrono::seconds exec_timeout() const { return exec_timeout_; }
  void set_exec_timeout(std::chrono::seconds limit) { exec_timeout_ = limit; }

 protected:
  explicit Meeting(const World& world) : exec_timeout_(world.env().exec_timeout) {}

 private:
  std::chrono::seconds exec_timeout_;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_MEETING_H_
