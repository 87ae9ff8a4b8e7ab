#include "runtime/acl/memory/memory_book.h"

#include <cstdlib>
#include <iterator>
#include <utility>

#include "runtime/base/log.h"

namespace npumesh {
namespace {

constexpr uint64_t kPageBytes = 4096;

}  // namespace

MemoryBook::~MemoryBook() {
  for (const auto& [block, bytes] : host_blocks_) std::free(const_cast<std::byte*>(block));
}

void MemoryBook::Attach(std::vector<DeviceMemory*> memories) {
  const std::lock_guard lock(mutex_);
  memories_ = std::move(memories);
  if (memories_.empty()) blocks_.clear();
}

Result<void*> MemoryBook::Allocate(DeviceMemory& memory, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  NPUMESH_ASSIGN_OR_RETURN(void* block, memory.Allocate(bytes));
  blocks_[block] = {&memory, Origin::Here()};
  return block;
}

Status MemoryBook::Free(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(pointer);
  if (found == blocks_.end()) {
    return Error(Code::kInvalidArgument, "{} is not the start of a block of device memory",
                 fmt::ptr(pointer));
  }
  const Status status = found->second.memory->Free(pointer);
  blocks_.erase(found);
  return status;
}

void MemoryBook::FreeAllOf(DeviceMemory& memory) {
  const std::lock_guard lock(mutex_);
  std::erase_if(blocks_, [&memory](const auto& block) {
    if (block.second.memory != &memory) return false;
    if (const Status status = memory.Free(block.first); !status.ok()) {
      NPUMESH_WARNING("device memory: {}", status.message());
    }
    return true;
  });
}

std::vector<Leak> MemoryBook::LeaksOf(const DeviceMemory& memory) const {
  const std::lock_guard lock(mutex_);
  std::vector<Leak> leaks;
  for (const auto& [block, held] : blocks_) {
    if (held.memory != &memory) continue;
    const auto around = memory.BlockAround(block, 0);
    leaks.push_back({fmt::format("{} bytes at {}", around ? around->bytes : 0, block), held.made});
  }
  return leaks;
}

std::vector<Leak> MemoryBook::HostLeaks() const {
  const std::lock_guard lock(mutex_);
  std::vector<Leak> leaks;
  for (const auto& [block, made] : host_origins_) {
    leaks.push_back({fmt::format("{} bytes at {}", host_blocks_.at(block), fmt::ptr(block)), made});
  }
  return leaks;
}

Result<MemoryBook::Pages> MemoryBook::AllocatePages(DeviceMemory& memory, uint64_t bytes) {
  const uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  // A block begins at a multiple of kHbmAlignment, the next page less than one page behind it.
  constexpr uint64_t kSpare = kPageBytes - kHbmAlignment;
  const uint64_t whole = pages < bytes || pages + kSpare < pages ? bytes : pages + kSpare;
  NPUMESH_ASSIGN_OR_RETURN(void* const block, Allocate(memory, whole));
  const uint64_t beyond = memory.OffsetOf(block) % kPageBytes;
  const uint64_t skipped = beyond == 0 ? 0 : kPageBytes - beyond;
  return Pages{block, static_cast<std::byte*>(block) + skipped};
}

std::string MemoryBook::WhyNot(const void* pointer, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (const DeviceMemory* memory : memories_) {
    if (memory->Contains(pointer, 1)) return memory->WhyNot(pointer, bytes);
  }
  return "";
}

PageRule MemoryBook::RuleOf(const void* pointer, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (const DeviceMemory* memory : memories_) {
    if (memory->Contains(pointer, bytes)) return memory->RuleOf(pointer, bytes);
  }
  return {};
}

bool MemoryBook::OnDevice(const void* pointer, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (const DeviceMemory* memory : memories_) {
    if (!memory->Contains(pointer, 1)) continue;
    return memory->InBlock(pointer, bytes) && memory->RuleOf(pointer, bytes).readable;
  }
  return Within(foreign_, pointer, bytes);
}

Result<SharedBlock> MemoryBook::Shareable(const void* pointer, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (const DeviceMemory* memory : memories_) {
    if (!memory->BlockAround(pointer, bytes)) continue;
    if (memory->descriptor() >= 0) {
      return SharedBlock{memory->descriptor(), memory->OffsetOf(pointer), bytes};
    }
    return Error(Code::kUnsupported, "the memory of this device cannot be shared");
  }
  return Error(Code::kInvalidArgument,
               "{} bytes at {} are not all in one block of this process's device memory", bytes,
               fmt::ptr(pointer));
}

void MemoryBook::AddForeign(const std::byte* start, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  foreign_[start] = bytes;
}

void MemoryBook::RemoveForeign(const std::byte* start) {
  const std::lock_guard lock(mutex_);
  foreign_.erase(start);
}

int MemoryBook::DeviceOf(const void* pointer) const {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < memories_.size(); ++i) {
    if (memories_[i]->Contains(pointer, 1)) return static_cast<int>(i);
  }
  return -1;
}

MemoryBook::Block MemoryBook::BlockAround(const void* pointer) const {
  const std::lock_guard lock(mutex_);
  for (DeviceMemory* memory : memories_) {
    const auto block = memory->BlockAround(pointer, 1);
    if (!block) continue;
    const auto* const at = static_cast<const std::byte*>(pointer);
    const uint64_t within = memory->OffsetOf(pointer) - block->offset;
    return {const_cast<std::byte*>(at) - within, block->bytes};
  }
  return {};
}

bool MemoryBook::Register(void* pointer, uint64_t bytes) {
  const auto* const start = static_cast<const std::byte*>(pointer);
  const std::lock_guard lock(mutex_);
  const auto next = registered_.lower_bound(start);
  if (next != registered_.end() && next->first < start + bytes) return false;
  if (next != registered_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second > start) return false;
  }
  registered_[start] = bytes;
  return true;
}

bool MemoryBook::Unregister(void* pointer) {
  const std::lock_guard lock(mutex_);
  return registered_.erase(static_cast<std::byte*>(pointer)) != 0;
}

void* MemoryBook::AllocateHost(uint64_t bytes) {
  const uint64_t rounded = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* block = rounded < bytes ? nullptr : std::aligned_alloc(kPageBytes, rounded);
  if (block == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  host_blocks_.emplace(static_cast<std::byte*>(block), bytes);
  if (Origin::guard()) host_origins_[static_cast<std::byte*>(block)] = Origin::Here();
  return block;
}

bool MemoryBook::FreeHost(void* pointer) {
  const std::lock_guard lock(mutex_);
  if (host_blocks_.erase(static_cast<std::byte*>(pointer)) == 0) return false;
  host_origins_.erase(static_cast<std::byte*>(pointer));
  std::free(pointer);
  return true;
}

bool MemoryBook::BeyondHostBlock(const void* pointer, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return Within(host_blocks_, pointer, 1) && !Within(host_blocks_, pointer, bytes);
}

bool MemoryBook::Pinned(const void* pointer, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return Within(host_blocks_, pointer, bytes) || Within(registered_, pointer, bytes);
}

bool MemoryBook::Within(const Ranges& ranges, const void* pointer, uint64_t bytes) {
  const auto* at = static_cast<const std::byte*>(pointer);
  auto block = ranges.upper_bound(at);
  if (block == ranges.begin()) return false;
  --block;
  const auto offset = static_cast<uint64_t>(at - block->first);
  return offset <= block->second && bytes <= block->second - offset;
}

}  // namespace npumesh
