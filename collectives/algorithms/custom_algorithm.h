// What an algorithm library includes: ways to do a collective of a user's own, built apart from
// npumesh and loaded by `npumesh run --algorithm-library FILE.so` (algorithm_tables.h).
// docs/custom_algorithms.md has the way from an empty file to a measured collective.
//
//   NPUMESH_ALGORITHM_LIBRARY(list) {
//     list.Add(npumesh::CollectiveKind::kAllReduce, {"doubling", UnlessPowerOfTwo, Doubling});
//   }
//
// The library is a module that leaves npumesh's symbols undefined; the program that loads it
// provides them (CMake: npumesh::npumesh_algorithm). It is never unloaded.
#ifndef NPUMESH_COLLECTIVES_ALGORITHMS_CUSTOM_ALGORITHM_H_
#define NPUMESH_COLLECTIVES_ALGORITHMS_CUSTOM_ALGORITHM_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/step_algorithms.h"
#include "runtime/base/files/shared_library.h"

namespace npumesh {

// What library and program must have in common. `version` always comes first, so that it can be
// read from a library of any age; the others are only compared when it is equal.
struct AlgorithmAbi {
  uint32_t version;  // raised whenever algorithm.h or what it includes changes its meaning
  uint32_t cxx11_strings;
  uint32_t algorithm_bytes;
  uint32_t call_bytes;
  uint32_t facts_bytes;
  uint32_t members_bytes;
  uint32_t meeting_bytes;
  uint32_t hierarchy_bytes;

  bool operator==(const AlgorithmAbi&) const = default;
};

inline constexpr AlgorithmAbi kAlgorithmAbi = {.version = 2,
                                               .cxx11_strings = kCxx11Strings,
                                               .algorithm_bytes = sizeof(Algorithm),
                                               .call_bytes = sizeof(Call),
                                               .facts_bytes = sizeof(Facts),
                                               .members_bytes = sizeof(Members),
                                               .meeting_bytes = sizeof(Meeting),
                                               .hierarchy_bytes = sizeof(Hierarchy)};

// Collects the rows of one library.
class AlgorithmList {
 public:
  // A row of the table of `kind`. Its name is a view: use a string literal. What is wrong with it,
  // a name that is taken for example, is what loading the library fails with.
  void Add(CollectiveKind kind, Algorithm row) { rows_.emplace_back(kind, row); }
  const std::vector<std::pair<CollectiveKind, Algorithm>>& rows() const { return rows_; }

 private:
  std::vector<std::pair<CollectiveKind, Algorithm>> rows_;
};

}  // namespace npumesh

// Defines the two symbols that npumesh looks for. Once in a library, outside of namespaces,
// followed by the body of a function with the parameter `npumesh::AlgorithmList& list`.
#define NPUMESH_ALGORITHM_LIBRARY(list)                                        \
  extern "C" __attribute__((visibility("default")))                            \
  const npumesh::AlgorithmAbi NpumeshAlgorithmAbi;                             \
  const npumesh::AlgorithmAbi NpumeshAlgorithmAbi = npumesh::kAlgorithmAbi;    \
  extern "C" __attribute__((visibility("default"))) void NpumeshAddAlgorithms( \
      [[maybe_unused]] npumesh::AlgorithmList& list)

#endif  // NPUMESH_COLLECTIVES_ALGORITHMS_CUSTOM_ALGORITHM_H_
