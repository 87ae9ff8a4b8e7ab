// How many faults the tests that plant them try: NPUMESH_TEST_FAULTS of each kind, for the nightly
// runs of the same programs, else as many as CI has time for.
#ifndef NPUMESH_TESTS_UNIT_PLANTED_FAULTS_H_
#define NPUMESH_TESTS_UNIT_PLANTED_FAULTS_H_

#include <cstdlib>
#include <string>

namespace npumesh {

inline int PlantedFaults(int in_ci) {
  const char* const wanted = std::getenv("NPUMESH_TEST_FAULTS");  // NOLINT: before any thread
  return wanted == nullptr ? in_ci : std::stoi(wanted);
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_PLANTED_FAULTS_H_
