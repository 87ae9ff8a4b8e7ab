#include "graph/ops/toolbox/product/packed_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace npumesh {
namespace {

constexpr uint64_t kLargePage = uint64_t{2} << 20;

}  // namespace

std::shared_ptr<std::byte> AllocatePacked(uint64_t bytes) {
  const bool large = bytes >= 2 * kLargePage;
  const uint64_t alignment = large ? kLargePage : kPackedLine;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0) throw std::bad_alloc();
  // A request; whole large pages only, so that none reaches beyond the end.
  if (large) madvise(memory, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

}  // namespace npumesh
