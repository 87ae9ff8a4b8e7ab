// Makes a case that fails smaller for as long as it fails.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_SHRINKER_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_SHRINKER_H_

#include <functional>

#include "tests/fuzz/engine/fuzz_case.h"

namespace npumesh::fuzz {

// True when the smaller case still fails in the same way.
using StillFails = std::function<bool(const FuzzCase& smaller)>;

// Drops steps, outputs, control edges and nodes (constants take their place), and makes dimensions
// smaller. Asks `fails` at most `most_asked` times.
FuzzCase Shrink(FuzzCase failing, const StillFails& fails, int most_asked = 400);

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_SHRINKER_H_
