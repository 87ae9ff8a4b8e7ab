// A failing case as files: the model, what it was fed, and a description for people.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_SAVED_CASE_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_SAVED_CASE_H_

#include <string>

#include "tests/fuzz/engine/fuzz_case.h"

namespace npumesh::fuzz {

// One line for each node: name = Type(inputs){attributes} after controls; then what each step is
// fed.
std::string Describe(const FuzzCase& fuzzed);

// Writes folder/case.air, step<n>_input<position>.npy and case.txt with `why` and the description.
Status SaveCase(const FuzzCase& fuzzed, const std::string& folder, const std::string& why);

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_SAVED_CASE_H_
