// Calls of operator tests that are compared with float64 (float64_calls.cc).
#ifndef NPUMESH_TESTS_UNIT_FLOAT64_CALLS_H_
#define NPUMESH_TESTS_UNIT_FLOAT64_CALLS_H_

#include <cstdint>

namespace npumesh::op_test {

// How many calls of this program have been compared with what float64 gives for them.
int64_t Float64Comparisons();

}  // namespace npumesh::op_test

#endif  // NPUMESH_TESTS_UNIT_FLOAT64_CALLS_H_
