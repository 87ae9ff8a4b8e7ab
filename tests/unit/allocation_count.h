// Counts what a test program allocates, oneDNN's and the C library's own calls included:
// allocation_count.cc replaces malloc and its relatives, which operator new calls too. A sanitizer
// has replaced them already; then only operator new is counted.
#ifndef NPUMESH_TESTS_UNIT_ALLOCATION_COUNT_H_
#define NPUMESH_TESTS_UNIT_ALLOCATION_COUNT_H_

#include <cstdint>

namespace npumesh {

// Allocations so far, by all threads of the program.
uint64_t AllocationCount();

// Those of them that are larger than kSmallAllocation bytes: buffers, not the nodes of a map.
inline constexpr uint64_t kSmallAllocation = 512;
uint64_t BufferCount();

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_ALLOCATION_COUNT_H_
