// How the ranks of a node agree on the size of their HBM.
#ifndef NPUMESH_RUNTIME_DEVICE_HBM_SIZE_H_
#define NPUMESH_RUNTIME_DEVICE_HBM_SIZE_H_

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// A chosen size is a multiple of a huge page, so that the last one can be one.
constexpr uint64_t kHugePage = uint64_t{2} << 20;

// What a rank tells the other ranks of its node. Sent as bytes: two fixed fields.
struct HbmWish {
  uint64_t asked_bytes;  // NPUMESH_HBM_SIZE; 0: unset
  uint64_t share_bytes;  // MemoryShare, as this rank saw it
};

// The size of every HBM of the node: what was asked, or else the SoC's size cut to the least share.
// A function of all wishes alone, so that every rank comes to the same size or to the same error:
// kMismatch when wishes differ, kOutOfMemory when more is asked than there is. `ranks` are the
// world ranks of the wishes. REQUIRES: at least one wish.
Result<uint64_t> ChooseHbmBytes(const std::vector<HbmWish>& wishes, const std::vector<int>& ranks);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_HBM_SIZE_H_
