// DeviceMemory: the HBM of one simulated NPU, and the window onto the HBM of the other ranks of the
// node (design: "HBM is memory that peers can read").
//
// One shared segment a rank, zero when fresh, taken from the system page by page as it is touched.
// `Allocate` hands out 512-byte aligned blocks from it; a pointer inside the segment can be named
// to a peer as an offset and read or written by it directly.
//
// Behind the HBM the segment has addresses without memory, for clients that reserve them and map
// physical blocks there: as on a card, addresses cost nothing, and only blocks count.
//
// With a guard (NPUMESH_GUARD) a block is followed by bytes that are checked when it is freed,
// and a freed block is filled with a pattern and kept from being used again for a while.
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_DEVICE_DEVICE_MEMORY_H_
#define NPUMESH_RUNTIME_DEVICE_DEVICE_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/block_allocator.h"
#include "runtime/device/page_rules.h"
#include "runtime/world/world.h"

namespace npumesh {

// HBM of the simulated SoC (Ascend 910B: 64 GiB).
inline constexpr uint64_t kSocHbmBytes = uint64_t{64} << 30;
inline constexpr uint64_t kHbmAlignment = 512;

class DeviceMemory {
 public:
  // Collective over the ranks of the node. Size: env.hbm_bytes, or the SoC's cut to this rank's
  // share of the available memory (cgroup limit included). Asking for more than there is:
  // kOutOfMemory that says how much there is, how much was asked and that NPUMESH_HBM_SIZE changes
  // it. Ranks that ask for different sizes: kMismatch. Either way all ranks of the node fail
  // together.
  static Result<std::unique_ptr<DeviceMemory>> Create(
      World& world, NodeSegment::Reach reach = NodeSegment::Reach::kRanks);

  // Over a segment made by the caller, of which `rank` owns a part. `hbm_bytes`: of them the HBM;
  // 0: all.
  DeviceMemory(std::unique_ptr<NodeSegment> segment, int rank, bool guard = false,
               uint64_t hbm_bytes = 0);

  // Errors: kOutOfMemory with asked, free and total bytes. `bytes` 0 yields a valid unique pointer.
  Result<void*> Allocate(uint64_t bytes);
  // Errors: kInvalidArgument for a pointer that Allocate did not return; with a guard kCorrupt,
  // which names what was written behind the block, or long ago after it was freed. The block is
  // free all the same.
  Status Free(void* pointer);
  // With a guard: what was written behind blocks, or after they were freed, and was not said yet.
  std::vector<std::string> Damage();

  // ---- Addresses without memory ----
  // Whole pages of them. Error (kOutOfMemory): no row of so many is free.
  Result<std::byte*> ReserveAddresses(uint64_t bytes);
  // Their content is gone. REQUIRES: ReserveAddresses has returned `start`, and no other process
  // maps it.
  void ReleaseAddresses(std::byte* start);
  // The size of a physical block counts as used, wherever its bytes lie. Error: kOutOfMemory.
  Status Claim(uint64_t bytes);
  void Unclaim(uint64_t bytes);
  // The system may have the pages back; they read as zero then.
  static void Discard(std::byte* at, uint64_t bytes);

  // True when [pointer, pointer + bytes) lies inside this rank's HBM, or the addresses behind it.
  bool Contains(const void* pointer, uint64_t bytes) const {
    const auto begin = reinterpret_cast<uintptr_t>(base_);
    const auto at = reinterpret_cast<uintptr_t>(pointer);
    return at >= begin && at - begin <= span_ && bytes <= span_ - (at - begin);
  }
  // Offset of a pointer into this rank's HBM. REQUIRES: Contains(pointer, 0).
  uint64_t OffsetOf(const void* pointer) const {
    return static_cast<uint64_t>(static_cast<const std::byte*>(pointer) - base_);
  }
  // The window: address here of `offset` in the HBM of `world_rank`; null on another node.
  std::byte* PeerAddress(int world_rank, uint64_t offset) const;

  // By which other processes map this rank's HBM; -1: they cannot.
  int descriptor() const { return segment_->descriptor(); }
  // The allocated block that holds all of [pointer, pointer + bytes): its offset and size; nullopt
  // when no block does.
  std::optional<BlockAllocator::Block> BlockAround(const void* pointer, uint64_t bytes) const;
  // Whether one does. The last block that a thread has asked for is found without a lock.
  bool InBlock(const void* pointer, uint64_t bytes) const;
  // InBlock, and a collective may use the bytes: it sees this HBM's own pages, and may read them.
  bool ForCollectives(const void* pointer, uint64_t bytes) const {
    if (!InBlock(pointer, bytes)) return false;
    const PageRule rule = RuleOf(pointer, bytes);
    return rule.readable && !rule.elsewhere;
  }
  // Why not, for messages: "begin 8 bytes before the end of the block of 512 bytes at 0x...".
  // Empty: there is no reason in this HBM.
  std::string WhyNot(const void* pointer, uint64_t bytes) const;

  // ---- Pages that a client maps or protects. REQUIRES of these: whole pages of this HBM ----
  // Shows `pages`, a shared mapping, at `at` in place of this HBM's own: only here, not to peers.
  // Errors: those of the system; kUnsupported where the HBM is not shared memory.
  Status ShowAt(std::byte* at, const std::byte* pages, uint64_t bytes);
  // This HBM's own pages again, readable and writable.
  Status ShowOwn(std::byte* at, uint64_t bytes);
  // What this process may do there; `rule.elsewhere` is kept as it was.
  Status Protect(std::byte* at, uint64_t bytes, PageRule rule);
  // What holds for all of the bytes.
  PageRule RuleOf(const void* pointer, uint64_t bytes) const { return rules_.Of(pointer, bytes); }

  uint64_t total_bytes() const { return bytes_; }
  uint64_t used_bytes() const;
  uint64_t peak_bytes() const;

 private:
  // Blocks that were freed lately, the last one first.
  struct Freed {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  // REQUIRES of these: the caller holds mutex_.
  std::optional<BlockAllocator::Block> Around(uint64_t offset, uint64_t bytes) const;
  Status OutOfMemory(uint64_t bytes) const;
  std::optional<uint64_t> Take(uint64_t bytes);
  std::string DamageBehind(uint64_t offset, uint64_t bytes) const;
  // Freed memory of the guard that is longest free goes back; what was written there is noted.
  bool GiveBackOldest();
  void NoteFreed(uint64_t offset, uint64_t bytes);

  const std::unique_ptr<NodeSegment> segment_;
  std::byte* const base_;
  const uint64_t bytes_;            // of the HBM
  const uint64_t span_;             // with the addresses behind it
  const uint64_t addresses_begin_;  // an offset
  mutable std::mutex mutex_;
  BlockAllocator blocks_;       // guarded by mutex_
  BlockAllocator addresses_;    // guarded by mutex_; from addresses_begin_ on
  uint64_t claimed_bytes_ = 0;  // guarded by mutex_
  std::deque<Freed> freed_;     // guarded by mutex_
  PageRules rules_;
  // Another one after each end of a block; no other memory has the same.
  std::atomic<uint64_t> version_;

  // With a guard, guarded by mutex_: what clients have asked for, by offset of the block, and
  // blocks that they have freed, the oldest first, which are kept from being used again.
  const bool guard_;
  std::map<uint64_t, uint64_t> asked_;
  std::deque<Freed> kept_;
  uint64_t kept_bytes_ = 0;
  std::vector<std::string> damage_;
};

// Memory that one rank of `local_size` may take: the system's available bytes or the cgroup's
// remaining limit, whichever is less, shared evenly, with an eighth left for everything else.
uint64_t MemoryShare(int local_size);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_DEVICE_MEMORY_H_
