// Lending: a plan works on memory of the caller instead of the session's buffers.
//
// An input can be read where the caller has it, and an output computed where the caller wants it,
// unless the plan's other tensors or other ranks are in the way. What is in the way is decided when
// the plan is made; what depends on addresses, run by run.
#ifndef NPUMESH_GRAPH_ENGINE_PLAN_LENDING_H_
#define NPUMESH_GRAPH_ENGINE_PLAN_LENDING_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "graph/engine/plan/plan_draft.h"
#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

// What a run may do with the memory of an input.
enum class Lending : uint8_t {
  kNone,      // copy it
  kReadOnly,  // read it; where an operator writes to the input, copy it
  kInPlace    // read it, and write to it where an operator does
};

// How a plan uses one of its inputs.
struct InputUse {
  bool written = false;  // an operator overwrites it
  bool remote = false;   // other ranks may read or write it, so it has to be device memory
  // After this step nothing touches it; -1: no step does; the number of steps: it is read after the
  // run.
  int last = -1;
  // Its operands: numbers over all steps, inputs before outputs.
  std::vector<size_t> operands;
};

// How a plan uses one of its outputs.
struct OutputUse {
  // It fills a storage of the arena that is no other output's before it, so that it can lie
  // elsewhere as well.
  bool movable = false;
  // The movable output in whose storage it lies, perhaps itself; -1: in none.
  int within = -1;
  bool remote = false;           // as of InputUse
  int first = 0;                 // step that writes the storage first
  std::vector<int> over;         // inputs that this step may overwrite at the address it reads them
  std::vector<size_t> operands;  // those of the storage, as of InputUse
};

struct PlanUses {
  std::vector<InputUse> inputs;    // by position
  std::vector<OutputUse> outputs;  // by number
};

// REQUIRES: streams are assigned. `written` as of WrittenInputs; `outputs` are numbers in the
// draft.
PlanUses UsesOf(const PlanDraft& draft, const MemoryPlan& plan, const std::vector<bool>& written,
                const std::vector<PlanIndex>& outputs);

// By position in InputsOf: inputs whose storage an operator overwrites.
std::vector<bool> WrittenInputs(const BoundGraph& graph);

// True when memory at `data` can hold such a tensor where kernels read and write it.
bool IsAligned(const void* data, DataType dtype);

// Where the outputs of a run go, asked once they have types and before they are computed: an
// address for each, of as many bytes as its type has. They must not overlap, but may be memory of
// an input.
using PlaceOutputs =
    std::function<Result<std::vector<void*>>(const std::vector<TensorType>& types)>;

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_PLAN_LENDING_H_
