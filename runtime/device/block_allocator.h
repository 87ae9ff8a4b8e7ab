// BlockAllocator: hands out blocks of a range [0, total) of offsets. Best fit, with free neighbours
// merged; it never touches memory.
//
// Thread-safety: none; the owner locks.
#ifndef NPUMESH_RUNTIME_DEVICE_BLOCK_ALLOCATOR_H_
#define NPUMESH_RUNTIME_DEVICE_BLOCK_ALLOCATOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace npumesh {

class BlockAllocator {
 public:
  // Every block starts at a multiple of `alignment` and has a multiple of it as its size. REQUIRES:
  // alignment is a power of two. What `total` exceeds a multiple of it is never handed out.
  BlockAllocator(uint64_t total, uint64_t alignment);

  // Offset of a block of at least `bytes` (at least one unit, so that offsets are unique): the
  // smallest free block that is large enough, the lowest of equals. nullopt: none is large enough.
  std::optional<uint64_t> Allocate(uint64_t bytes);

  // The block in use that holds all of [offset, offset + bytes); nullopt: no block does.
  struct Block {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  std::optional<Block> Around(uint64_t offset, uint64_t bytes) const;

  // False when no block starts at `offset`; then nothing changes.
  bool Free(uint64_t offset);

  uint64_t total_bytes() const { return total_; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t free_bytes() const { return total_ - used_bytes_; }
  // Most that was used at any time.
  uint64_t peak_bytes() const { return peak_bytes_; }
  // The most that one Allocate can still get.
  uint64_t largest_free_block() const;

 private:
  using Blocks = std::map<uint64_t, uint64_t>;  // offset -> bytes

  void AddFree(uint64_t offset, uint64_t bytes);
  void RemoveFree(Blocks::iterator block);

  const uint64_t total_;
  const uint64_t alignment_;
  Blocks used_;
  Blocks free_;                                         // no two are neighbours
  std::set<std::pair<uint64_t, uint64_t>> free_sizes_;  // (bytes, offset) of each free block
  uint64_t used_bytes_ = 0;
  uint64_t peak_bytes_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_BLOCK_ALLOCATOR_H_
