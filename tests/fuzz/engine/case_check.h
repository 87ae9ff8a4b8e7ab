// Whether the engine, under every set of options, agrees with the plain interpreter and with
// itself.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_CASE_CHECK_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_CASE_CHECK_H_

#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/engine/engine_run.h"

namespace npumesh::fuzz {

struct Disagreement {
  std::string kind;  // what a smaller case has to share: "refused by [O1]", "[O1] is wrong" ...
  std::string text;  // the sets, the first element that differs, expected and seen
};

struct Verdict {
  std::optional<Disagreement> found;  // nullopt: all agree
  // A run ended with an error, which it may have told the world: use another one.
  bool spent = false;
};

// Runs the case under `sets`, the first of which is what the others are compared with. Sets agree
// bit by bit, unless the graph has what attention and RmsNorm are fused from; rough numbers of
// those differ within what two interpretations with noise in the last places do.
Verdict CheckCase(World& world, DeviceMemory& memory, const FuzzCase& fuzzed,
                  const std::vector<const OptionSet*>& sets);

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_CASE_CHECK_H_
