#include "runtime/device/hbm_size.h"

#include <algorithm>

#include "runtime/device/device_memory.h"

namespace npumesh {

Result<uint64_t> ChooseHbmBytes(const std::vector<HbmWish>& wishes, const std::vector<int>& ranks) {
  const uint64_t asked = wishes[0].asked_bytes;
  uint64_t share = wishes[0].share_bytes;
  for (size_t i = 1; i < wishes.size(); ++i) {
    share = std::min(share, wishes[i].share_bytes);
    if (wishes[i].asked_bytes != asked) {
      return Error(Code::kMismatch,
                   "NPUMESH_HBM_SIZE differs between ranks of one node: {} bytes on rank {}, {} on "
                   "rank {} (0: unset); set it alike",
                   asked, ranks[0], wishes[i].asked_bytes, ranks[i]);
    }
  }
  if (asked == 0) return std::max(std::min(share, kSocHbmBytes) & ~(kHugePage - 1), kHugePage);
  if (asked <= share) return asked;
  return Error(Code::kOutOfMemory,
               "device memory: {} bytes asked for each of {} ranks of this node, but there are {} "
               "bytes for each; set NPUMESH_HBM_SIZE to at most that, or unset it",
               asked, wishes.size(), share);
}

}  // namespace npumesh
