// Memory for packed weights: large, written once, read in every run.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PACKED_MEMORY_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PACKED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace npumesh {

inline constexpr uint64_t kPackedLine = 64;

// `bytes` of memory, aligned to kPackedLine, not initialised; in large pages where the system gives
// them, which saves most page faults when it is filled. Throws std::bad_alloc.
std::shared_ptr<std::byte> AllocatePacked(uint64_t bytes);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PACKED_MEMORY_H_
