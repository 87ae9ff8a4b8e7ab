// The outputs of a run at the addresses that the caller chose: which are computed there, and what
// is copied there afterwards.
#ifndef NPUMESH_GRAPH_ENGINE_RUN_OUTPUT_PLACES_H_
#define NPUMESH_GRAPH_ENGINE_RUN_OUTPUT_PLACES_H_

#include <cstdint>
#include <vector>

#include "graph/engine/plan/compiled_model.h"
#include "runtime/device/device_memory.h"

namespace npumesh {

// Memory of an input that the plan works on, or that gets the input's last content after the run.
struct LentRange {
  const void* begin = nullptr;
  uint64_t bytes = 0;
  int position = -1;  // of the input in the plan; -1: it is written after the run
};

struct OutputCopy {
  void* to = nullptr;
  const void* from = nullptr;
  uint64_t bytes = 0;
};

// Errors (kInvalidArgument): outputs without memory, outputs that overlap; kInternal when there is
// not one place for each type.
Status CheckPlaces(const std::vector<TensorType>& types, const std::vector<void*>& places);

// By output: `places` where the plan may compute it there, null elsewhere. It may not where another
// rank touches an output that does not lie in `memory`, and where an output lies over an input that
// is still read when the output is written.
std::vector<void*> DirectPlaces(const CompiledModel& model, const std::vector<void*>& places,
                                const std::vector<LentRange>& inputs, const DeviceMemory& memory);

// Makes the copies as if all at once: one may have its source where another writes. Returns the
// bytes that were copied.
uint64_t MakeCopies(const std::vector<OutputCopy>& copies);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_RUN_OUTPUT_PLACES_H_
