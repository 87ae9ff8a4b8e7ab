// The first inputs of each fuzz target: files as npumesh itself writes them, and texts in the forms
// that its readers take.
#ifndef NPUMESH_TESTS_FUZZ_SEEDS_H_
#define NPUMESH_TESTS_FUZZ_SEEDS_H_

#include <string>
#include <string_view>
#include <vector>

namespace npumesh::fuzz {

struct Target {
  std::string name;  // of the program fuzz_<name> and of the folder corpus/<name>
  std::string (*check)(std::string_view bytes);
  std::vector<std::string> seeds;
};

// All targets, by name.
std::vector<Target> AllTargets();

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_SEEDS_H_
