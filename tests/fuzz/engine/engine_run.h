// Runs a case in a session.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_ENGINE_RUN_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_ENGINE_RUN_H_

#include <functional>
#include <map>
#include <vector>

#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"
#include "tests/fuzz/engine/fuzz_case.h"
#include "tests/fuzz/engine/option_sets.h"

namespace npumesh::fuzz {

// What a session gave in one step.
struct EngineStep {
  std::vector<Tensor> outputs;
  std::map<int, Tensor> refs;  // what RefData hold afterwards, by input position
};

struct EngineRun {
  Status status;                  // of the first step that failed, or of making the session
  std::vector<EngineStep> steps;  // those before it
};

EngineRun RunInEngine(World& world, DeviceMemory& memory, const FuzzCase& fuzzed,
                      const OptionSet& set);

// `body` with a world of one rank and a small device.
Status WithDevice(const std::function<void(World& world, DeviceMemory& memory)>& body);

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_ENGINE_RUN_H_
