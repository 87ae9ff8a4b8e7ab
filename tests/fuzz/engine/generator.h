// Random cases: a graph of 5 to 40 operators and what it is fed in one to three steps.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_GENERATOR_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_GENERATOR_H_

#include <cstdint>
#include <set>
#include <string>

#include "tests/fuzz/engine/fuzz_case.h"

namespace npumesh::fuzz {

// Equal seeds give equal cases. All steps are legal to the interpreter.
FuzzCase Generate(uint64_t seed);

// Every type of operator that a generated graph may have, those of subgraphs included.
std::set<std::string> GeneratedTypes();

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_GENERATOR_H_
