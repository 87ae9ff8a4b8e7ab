#include "graph/ops/toolbox/product/packed_weights.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {
namespace {

constexpr uint64_t kCacheLine = 64;
constexpr uint64_t kLargePage = uint64_t{2} << 20;
// Smaller allocations stand alone, where a sanitizer sees who reads beyond them.
constexpr uint64_t kLeastInRegion = 128 << 10;

void* AllocateAligned(uint64_t alignment, uint64_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes) != 0) throw std::bad_alloc();
  return memory;
}

// Address space that allocations take from its beginning to its end, without gaps, so that all of
// them lie in large pages, of whatever size they are. Lives as long as one of them does.
class Region {
 public:
  // Throws std::bad_alloc.
  explicit Region(uint64_t bytes)
      : memory_(static_cast<std::byte*>(AllocateAligned(kLargePage, bytes))), bytes_(bytes) {
    madvise(memory_, bytes, MADV_HUGEPAGE);  // a request
  }
  ~Region() { std::free(memory_); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // Null: there is no room for them. Thread-safety: none.
  std::byte* Take(uint64_t bytes) {
    const uint64_t whole_lines = RoundedUp(bytes, kCacheLine);
    if (whole_lines > bytes_ - used_) return nullptr;
    return memory_ + std::exchange(used_, used_ + whole_lines);
  }

  // Returns the large pages that nothing else is in. Thread-safe.
  static void GiveBack(std::byte* memory, uint64_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    const uint64_t first = RoundedUp(begin, kLargePage),
                   last = (begin + bytes) / kLargePage * kLargePage;
    if (first < last) madvise(memory + (first - begin), last - first, MADV_DONTNEED);
  }

 private:
  std::byte* const memory_;
  const uint64_t bytes_;
  uint64_t used_ = 0;
};

// A region with room for `bytes` at least. Throws std::bad_alloc.
std::shared_ptr<Region> OpenRegion(uint64_t bytes) {
  constexpr uint64_t kUsual = uint64_t{64} << 20;
  const uint64_t least = RoundedUp(bytes, kLargePage);
  try {
    return std::make_shared<Region>(std::max(kUsual, least));
  } catch (const std::bad_alloc&) {
    return std::make_shared<Region>(least);  // address space is scarce
  }
}

}  // namespace

std::shared_ptr<const void> PackedWeights::Find(const Tensor& weight,
                                                const std::string& form) const {
  const auto known = packed_.find({weight.data(), form});
  return known == packed_.end() ? nullptr : known->second.second.lock();
}

void PackedWeights::Keep(const Tensor& weight, const std::string& form,
                         std::shared_ptr<const void> packed) {
  std::erase_if(packed_, [](const auto& entry) { return entry.second.second.expired(); });
  packed_[{weight.data(), form}] = {weight, std::move(packed)};
}

std::shared_ptr<std::byte> AllocatePacked(uint64_t bytes) {
  if (bytes < kLeastInRegion) {
    auto* const memory =
        static_cast<std::byte*>(AllocateAligned(kCacheLine, std::max(bytes, kCacheLine)));
    return {memory, [](std::byte* p) { std::free(p); }};
  }
  static std::mutex mutex;
  static auto* const open = new std::weak_ptr<Region>;
  const std::lock_guard lock(mutex);
  auto region = open->lock();
  std::byte* memory = region == nullptr ? nullptr : region->Take(bytes);
  if (memory == nullptr) {
    *open = region = OpenRegion(bytes);
    memory = region->Take(bytes);
  }
  return {memory, [region, bytes](std::byte* p) { Region::GiveBack(p, bytes); }};
}

}  // namespace npumesh
