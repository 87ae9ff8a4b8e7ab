#include "runtime/device/device_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/device/hbm_size.h"
#include "runtime/device/host_memory.h"

namespace npumesh {
namespace {

// Tells the group of this exchange apart from communicators over the same ranks ("HBM").
constexpr uint32_t kGroupKey = 0x48424d00;

// Collective over the ranks of the node.
Result<std::vector<HbmWish>> ExchangeWishes(World& world, const HbmWish& mine) {
  const Deadline deadline = Deadline::After(world.env().connect_timeout);
  NPUMESH_ASSIGN_OR_RETURN(const auto group,
                           world.transport().Group(world.local_ranks(), kGroupKey, deadline));
  std::vector<HbmWish> wishes(world.local_ranks().size());
  NPUMESH_RETURN_IF_ERROR(group->AllGather(&mine, wishes.data(), sizeof mine, deadline));
  return wishes;
}

// How many freed blocks messages can tell of.
constexpr size_t kMostFreed = 64;

// The guard's: bytes behind a block, what is in them, and in freed blocks, and how much is kept.
constexpr uint64_t kFenceBytes = 64;
constexpr int kFence = 0xA5;
constexpr int kPoison = 0xDD;
constexpr uint64_t kPoisonBytes = uint64_t{4} << 20;
constexpr uint64_t kMostKeptBytes = uint64_t{256} << 20;

// Allocators of clients reserve somewhat more than all memory, once for each of their pools.
constexpr uint64_t kAddressesPerByte = 8;

uint64_t RoundUp(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// The HBM and the addresses behind it. A limit of addresses (ulimit -v) leaves none.
uint64_t SpanOf(uint64_t hbm_bytes) {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? hbm_bytes : RoundUp(hbm_bytes, kHugePage) + kAddressesPerByte * hbm_bytes;
}

// For a block of so many bytes beside those that are claimed.
bool HaveRoom(const BlockAllocator& blocks, uint64_t claimed, uint64_t bytes) {
  const uint64_t free = blocks.free_bytes();
  return bytes <= free && claimed <= free - bytes;
}

uint64_t NextVersion() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Status PagesError(std::string_view what, const void* at, uint64_t bytes) {
  return Error(errno == ENOMEM ? Code::kOutOfMemory : Code::kIo, "{} {} bytes at {}: {}", what,
               bytes, fmt::ptr(at), std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::Create(World& world, NodeSegment::Reach reach) {
  const HbmWish mine{world.env().hbm_bytes.value_or(0), MemoryShare(world.local_size())};
  NPUMESH_ASSIGN_OR_RETURN(const auto wishes, ExchangeWishes(world, mine));
  NPUMESH_ASSIGN_OR_RETURN(const uint64_t bytes, ChooseHbmBytes(wishes, world.local_ranks()));
  NPUMESH_ASSIGN_OR_RETURN(auto segment, world.transport().Share("hbm", SpanOf(bytes), reach));
  return std::unique_ptr<DeviceMemory>(
      new DeviceMemory(std::move(segment), world.rank(), world.env().guard, bytes));
}

DeviceMemory::DeviceMemory(std::unique_ptr<NodeSegment> segment, int rank, bool guard,
                           uint64_t hbm_bytes)
    : segment_(std::move(segment)),
      base_(segment_->part(rank)),
      bytes_(hbm_bytes == 0 ? segment_->bytes() : hbm_bytes),
      span_(segment_->bytes()),
      addresses_begin_(std::min(RoundUp(bytes_, kHugePage), span_)),
      blocks_(bytes_, kHbmAlignment),
      addresses_(span_ - addresses_begin_, kHugePage),
      version_(NextVersion()),
      guard_(guard) {}

Result<void*> DeviceMemory::Allocate(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::optional<uint64_t> offset = Take(bytes);
  while (!offset && GiveBackOldest()) offset = Take(bytes);
  if (offset) return static_cast<void*>(base_ + *offset);
  return OutOfMemory(bytes);
}

Status DeviceMemory::OutOfMemory(uint64_t bytes) const {
  const uint64_t free = blocks_.free_bytes() - std::min(claimed_bytes_, blocks_.free_bytes());
  return Error(Code::kOutOfMemory,
               "device memory: {} bytes asked, {} free (largest block {}) of {}; NPUMESH_HBM_SIZE "
               "changes the total",
               bytes, free, std::min(free, blocks_.largest_free_block()), blocks_.total_bytes());
}

Result<std::byte*> DeviceMemory::ReserveAddresses(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto offset = addresses_.Allocate(bytes)) return base_ + addresses_begin_ + *offset;
  return Error(Code::kOutOfMemory,
               "addresses: {} bytes asked, {} free (largest row {}) of {}; they are {} times the "
               "device's memory (NPUMESH_HBM_SIZE), and none below a limit of them (ulimit -v)",
               bytes, addresses_.free_bytes(), addresses_.largest_free_block(),
               addresses_.total_bytes(), kAddressesPerByte);
}

void DeviceMemory::ReleaseAddresses(std::byte* start) {
  const std::lock_guard lock(mutex_);
  const uint64_t offset = OffsetOf(start) - addresses_begin_;
  const auto row = addresses_.Around(offset, 0);
  if (!row) return;
  Discard(start, row->bytes);
  version_.store(NextVersion(), std::memory_order_release);
  NoteFreed(OffsetOf(start), row->bytes);
  addresses_.Free(offset);
}

Status DeviceMemory::Claim(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!HaveRoom(blocks_, claimed_bytes_, bytes)) return OutOfMemory(bytes);
  claimed_bytes_ += bytes;
  return Status();
}

void DeviceMemory::Unclaim(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  claimed_bytes_ -= std::min(bytes, claimed_bytes_);
}

void DeviceMemory::Discard(std::byte* at, uint64_t bytes) {
  if (madvise(at, bytes, MADV_REMOVE) != 0) madvise(at, bytes, MADV_DONTNEED);
}

std::optional<uint64_t> DeviceMemory::Take(uint64_t bytes) {
  if (claimed_bytes_ > 0 && !HaveRoom(blocks_, claimed_bytes_, bytes)) return std::nullopt;
  if (!guard_) return blocks_.Allocate(bytes);
  if (bytes > bytes_) return std::nullopt;
  const auto offset = blocks_.Allocate(bytes + kFenceBytes);
  if (!offset) return std::nullopt;
  asked_[*offset] = bytes;
  std::memset(base_ + *offset + bytes, kFence, kFenceBytes);
  return offset;
}

Status DeviceMemory::Free(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto block = Contains(pointer, 0) ? Around(OffsetOf(pointer), 0) : std::nullopt;
  if (!block || block->offset != OffsetOf(pointer)) {
    return Error(
        Code::kInvalidArgument,
        "{} is not the start of a block of this rank's device memory, or was freed already",
        fmt::ptr(pointer));
  }
  version_.store(NextVersion(), std::memory_order_release);
  NoteFreed(block->offset, block->bytes);
  if (!guard_) {
    blocks_.Free(block->offset);
    return Status();
  }
  const std::string damage = DamageBehind(block->offset, block->bytes);
  asked_.erase(block->offset);
  std::memset(pointer, kPoison, std::min(block->bytes, kPoisonBytes));
  kept_.push_back({block->offset, block->bytes});
  kept_bytes_ += block->bytes;
  while (kept_bytes_ > std::min(bytes_ / 4, kMostKeptBytes)) GiveBackOldest();
  return damage.empty() ? Status() : Error(Code::kCorrupt, "{}", damage);
}

bool DeviceMemory::GiveBackOldest() {
  if (kept_.empty()) return false;
  const Freed oldest = kept_.front();
  kept_.pop_front();
  kept_bytes_ -= oldest.bytes;
  const std::byte* const begin = base_ + oldest.offset;
  const std::byte* const end = begin + std::min(oldest.bytes, kPoisonBytes);
  const auto written =
      std::find_if(begin, end, [](std::byte each) { return each != std::byte{kPoison}; });
  if (written != end) {
    damage_.push_back(
        fmt::format("byte {} of the block of {} bytes at {} was written after the "
                    "block was freed",
                    written - begin, oldest.bytes, fmt::ptr(begin)));
  }
  blocks_.Free(oldest.offset);
  return true;
}

std::string DeviceMemory::DamageBehind(uint64_t offset, uint64_t bytes) const {
  const std::byte* const begin = base_ + offset + bytes;
  const std::byte* const end = begin + kFenceBytes;
  const auto written =
      std::find_if(begin, end, [](std::byte each) { return each != std::byte{kFence}; });
  if (written == end) return "";
  return fmt::format("byte {} behind the end of the block of {} bytes at {} was written",
                     written - begin + 1, bytes, fmt::ptr(base_ + offset));
}

std::vector<std::string> DeviceMemory::Damage() {
  const std::lock_guard lock(mutex_);
  while (GiveBackOldest()) {
  }
  for (const auto& [offset, bytes] : asked_) {
    if (std::string damage = DamageBehind(offset, bytes); !damage.empty()) {
      damage_.push_back(std::move(damage));
    }
  }
  return std::exchange(damage_, {});
}

void DeviceMemory::NoteFreed(uint64_t offset, uint64_t bytes) {
  freed_.push_front({offset, bytes});
  if (freed_.size() > kMostFreed) freed_.pop_back();
}

std::optional<BlockAllocator::Block> DeviceMemory::Around(uint64_t offset, uint64_t bytes) const {
  if (offset >= addresses_begin_ && addresses_begin_ < span_) {
    auto row = addresses_.Around(offset - addresses_begin_, bytes);
    if (row) row->offset += addresses_begin_;
    return row;
  }
  auto block = blocks_.Around(offset, guard_ ? 0 : bytes);
  if (!guard_ || !block) return block;
  const auto asked = asked_.find(block->offset);
  if (asked == asked_.end()) return std::nullopt;
  const uint64_t within = offset - block->offset;
  if (within > asked->second || bytes > asked->second - within) return std::nullopt;
  block->bytes = asked->second;
  return block;
}

std::optional<BlockAllocator::Block> DeviceMemory::BlockAround(const void* pointer,
                                                               uint64_t bytes) const {
  if (!Contains(pointer, bytes)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return Around(OffsetOf(pointer), bytes);
}

std::string DeviceMemory::WhyNot(const void* pointer, uint64_t bytes) const {
  if (!Contains(pointer, 1) || bytes == 0) return "";
  const std::lock_guard lock(mutex_);
  const uint64_t offset = OffsetOf(pointer);
  if (const auto block = Around(offset, 1)) {
    const uint64_t left = block->bytes - (offset - block->offset);
    if (bytes > left) {
      return fmt::format("begin {} bytes before the end of the block of {} bytes at {}", left,
                         block->bytes, fmt::ptr(base_ + block->offset));
    }
    const PageRule rule = RuleOf(pointer, bytes);
    if (!rule.readable) return "may not be used (aclrtMemSetAccess)";
    return rule.elsewhere ? "show memory that peers do not see here (a block that processes share)"
                          : "";
  }
  for (const Freed& freed : freed_) {
    if (offset < freed.offset || offset - freed.offset >= freed.bytes) continue;
    return fmt::format("are in a block of {} bytes at {} that was freed", freed.bytes,
                       fmt::ptr(base_ + freed.offset));
  }
  return "are in device memory that is not allocated";
}

bool DeviceMemory::InBlock(const void* pointer, uint64_t bytes) const {
  struct Last {
    uint64_t version = 0;
    const std::byte* begin = nullptr;
    uint64_t bytes = 0;
  };
  thread_local Last last;
  const uint64_t version = version_.load(std::memory_order_acquire);
  const auto* const at = static_cast<const std::byte*>(pointer);
  if (last.version == version && at >= last.begin &&
      static_cast<uint64_t>(at - last.begin) <= last.bytes &&
      bytes <= last.bytes - static_cast<uint64_t>(at - last.begin)) {
    return true;
  }
  const auto block = BlockAround(pointer, bytes);
  if (block) last = {version, base_ + block->offset, block->bytes};
  return block.has_value();
}

Status DeviceMemory::ShowAt(std::byte* at, const std::byte* pages, uint64_t bytes) {
  if (descriptor() < 0) {
    return Error(Code::kUnsupported, "the memory of this device cannot show other pages");
  }
  // Of a shared mapping a length of 0 makes a second one of the same pages.
  void* const shown =
      mremap(const_cast<std::byte*>(pages), 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
  if (shown == MAP_FAILED) return PagesError("mapping", at, bytes);
  rules_.Set(at, bytes, {.elsewhere = true});
  return Status();
}

Status DeviceMemory::ShowOwn(std::byte* at, uint64_t bytes) {
  const PageRule rule = RuleOf(at, bytes);
  if (rule.elsewhere) {
    void* const own =
        mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
             descriptor(), static_cast<off_t>(OffsetOf(at)));
    if (own == MAP_FAILED) return PagesError("mapping", at, bytes);
    madvise(at, bytes, MADV_HUGEPAGE);
    madvise(at, bytes, MADV_DONTDUMP);
  } else if (!rule.plain() && mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0) {
    return PagesError("opening", at, bytes);
  }
  rules_.Set(at, bytes, {});
  return Status();
}

Status DeviceMemory::Protect(std::byte* at, uint64_t bytes, PageRule rule) {
  const int protection = (rule.readable ? PROT_READ : PROT_NONE) | (rule.writable ? PROT_WRITE : 0);
  if (mprotect(at, bytes, protection) != 0) return PagesError("protecting", at, bytes);
  rule.elsewhere = RuleOf(at, bytes).elsewhere;
  rules_.Set(at, bytes, rule);
  return Status();
}

std::byte* DeviceMemory::PeerAddress(int world_rank, uint64_t offset) const {
  std::byte* part = segment_->part(world_rank);
  return part == nullptr ? nullptr : part + offset;
}

uint64_t DeviceMemory::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return blocks_.used_bytes() + claimed_bytes_ - kept_bytes_;
}

uint64_t DeviceMemory::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return blocks_.peak_bytes();
}

// Below a limit of the address space (ulimit -v) at most half of what is left of it is shared.
uint64_t MemoryShare(int local_size) {
  const uint64_t available = AvailableMemory();
  // Every rank maps the memory of all; stacks and libraries want addresses, too.
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const uint64_t addresses = AvailableAddresses(limited ? limit.rlim_cur : ~uint64_t{0}) / 2;
  return std::min(available - available / 8, addresses) / static_cast<uint64_t>(local_size);
}

}  // namespace npumesh
