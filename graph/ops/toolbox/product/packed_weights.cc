#include "graph/ops/toolbox/product/packed_weights.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace npumesh {

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
  constexpr uint64_t kLine = 64, kLargePage = uint64_t{2} << 20;
  const bool large = bytes >= kLargePage;
  void* memory = nullptr;
  if (posix_memalign(&memory, large ? kLargePage : kLine, bytes == 0 ? 1 : bytes) != 0) {
    throw std::bad_alloc();
  }
  // A request; whole large pages only, so that none reaches beyond the end.
  if (large) madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

}  // namespace npumesh
