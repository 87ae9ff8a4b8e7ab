// Counts what a test program allocates: allocation_count.cc replaces the global operator new.
#ifndef NPUMESH_TESTS_UNIT_ALLOCATION_COUNT_H_
#define NPUMESH_TESTS_UNIT_ALLOCATION_COUNT_H_

#include <cstdint>

namespace npumesh {

// Calls of operator new so far, by all threads of the program.
uint64_t AllocationCount();

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_ALLOCATION_COUNT_H_
