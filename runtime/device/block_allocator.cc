#include "runtime/device/block_allocator.h"

#include <algorithm>
#include <iterator>

namespace npumesh {

BlockAllocator::BlockAllocator(uint64_t total, uint64_t alignment)
    : total_(total & ~(alignment - 1)), alignment_(alignment) {
  if (total_ != 0) AddFree(0, total_);
}

std::optional<uint64_t> BlockAllocator::Allocate(uint64_t bytes) {
  if (bytes > total_) return std::nullopt;  // also keeps the rounding from overflowing
  const uint64_t size = std::max((bytes + alignment_ - 1) & ~(alignment_ - 1), alignment_);
  const auto best = free_sizes_.lower_bound({size, 0});
  if (best == free_sizes_.end()) return std::nullopt;
  const auto [available, offset] = *best;
  RemoveFree(free_.find(offset));
  if (available > size) AddFree(offset + size, available - size);
  used_.emplace(offset, size);
  used_bytes_ += size;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  return offset;
}

std::optional<BlockAllocator::Block> BlockAllocator::Around(uint64_t offset, uint64_t bytes) const {
  auto block = used_.upper_bound(offset);
  if (block == used_.begin()) return std::nullopt;
  --block;
  const uint64_t within = offset - block->first;
  if (within > block->second || bytes > block->second - within) return std::nullopt;
  return Block{block->first, block->second};
}

bool BlockAllocator::Free(uint64_t offset) {
  const auto block = used_.find(offset);
  if (block == used_.end()) return false;
  uint64_t begin = offset;
  uint64_t end = offset + block->second;
  used_bytes_ -= block->second;
  used_.erase(block);
  const auto after = free_.lower_bound(begin);
  if (after != free_.begin()) {
    if (const auto before = std::prev(after); before->first + before->second == begin) {
      begin = before->first;
      RemoveFree(before);
    }
  }
  if (after != free_.end() && after->first == end) {
    end += after->second;
    RemoveFree(after);
  }
  AddFree(begin, end - begin);
  return true;
}

uint64_t BlockAllocator::largest_free_block() const {
  return free_sizes_.empty() ? 0 : free_sizes_.rbegin()->first;
}

void BlockAllocator::AddFree(uint64_t offset, uint64_t bytes) {
  free_.emplace(offset, bytes);
  free_sizes_.emplace(bytes, offset);
}

void BlockAllocator::RemoveFree(Blocks::iterator block) {
  free_sizes_.erase({block->second, block->first});
  free_.erase(block);
}

}  // namespace npumesh
