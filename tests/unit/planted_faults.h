// How many faults the tests that plant them try: NPUMESH_TEST_FAULTS of each kind, for the nightly
// runs of the same programs, else as many as CI has time for.
#ifndef NPUMESH_TESTS_UNIT_PLANTED_FAULTS_H_
#define NPUMESH_TESTS_UNIT_PLANTED_FAULTS_H_

#include <cstdlib>

#include "runtime/base/text/parse.h"

namespace npumesh {

// A number that cannot be read plants none, which tests notice.
inline int PlantedFaults(int in_ci) {
  const char* const wanted = std::getenv("NPUMESH_TEST_FAULTS");  // NOLINT: before any thread
  if (wanted == nullptr) return in_ci;
  constexpr int64_t kMost = 1'000'000;
  const Result<int64_t> faults = ParseInt(wanted, 1, kMost, "NPUMESH_TEST_FAULTS");
  return faults.ok() ? static_cast<int>(*faults) : 0;
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_PLANTED_FAULTS_H_
