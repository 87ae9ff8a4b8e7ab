// Blocks: the counts and displacements of one side of a V operator, copied from the host arrays of
// the caller, who may free them when the call has returned.
#ifndef NPUMESH_COLLECTIVES_HCCL_CALLS_BLOCKS_H_
#define NPUMESH_COLLECTIVES_HCCL_CALLS_BLOCKS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace npumesh {

struct Blocks {
  std::vector<uint64_t> counts;  // elements, by rank
  std::vector<uint64_t> at;      // displacements in elements

  // Null arrays become empty blocks.
  static Blocks Copy(const void* counts, const void* at, uint32_t ranks) {
    if (counts == nullptr || at == nullptr) return {};
    const auto* first = static_cast<const uint64_t*>(counts);
    const auto* place = static_cast<const uint64_t*>(at);
    return {{first, first + ranks}, {place, place + ranks}};
  }

  bool none() const {
    return std::all_of(counts.begin(), counts.end(), [](uint64_t count) { return count == 0; });
  }

  // The largest count; 0 without blocks.
  uint64_t largest() const {
    return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  }

  // Elements from the buffer's begin to the end of the last block; what would overflow is as large
  // as no memory is.
  uint64_t end() const {
    constexpr uint64_t kHuge = uint64_t{1} << 56;
    uint64_t end = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      end = std::max(end, std::min(counts[i], kHuge) + std::min(at[i], kHuge));
    }
    return end;
  }
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CALLS_BLOCKS_H_
