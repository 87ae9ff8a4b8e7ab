// Where activations live: offsets into one arena, reused as soon as the bytes have no later reader.
//
// Works on numbered values and steps, so that it can be tested without graphs. Deterministic.
#ifndef NPUMESH_GRAPH_PASSES_SCHEDULE_MEMORY_PLAN_H_
#define NPUMESH_GRAPH_PASSES_SCHEDULE_MEMORY_PLAN_H_

#include <cstdint>
#include <vector>

namespace npumesh {

struct PlanValue {
  uint64_t bytes = 0;
  // An earlier value whose storage this one lives in (view, in-place output); -1: its own.
  int same_as = -1;
  // Lives elsewhere (graph input, constant): gets no offset.
  bool external = false;
  // Graph output: lives until the end.
  bool output = false;
};

struct PlanStep {
  std::vector<int> reads;
  std::vector<int> writes;
  // Reads whose storage writes[0] may take over if this step is their last use.
  std::vector<int> may_take_over;
  // The step before which this one is sure to be finished, when it runs beside those that follow:
  // what it reads and writes lives until then. -1: it is finished before the next step.
  int done_by = -1;
  // Reads that the step overwrites without showing it as a write.
  std::vector<int> updates;
};

// A storage in the arena, and the steps at which its bytes are in use, inclusive; `last` is the
// number of steps when it has to outlive them all.
struct PlannedBlock {
  int value = -1;  // that owns it
  uint64_t bytes = 0;
  int first = -1;
  int last = -1;
  uint64_t offset = 0;
};

// How hard to look for a small arena.
enum class PlanEffort {
  kQuick,    // large storages choose their place first
  kThorough  // the best of several sequences of choice: never larger, takes several times as long
};

struct MemoryPlan {
  // By value; meaningless for external ones.
  std::vector<uint64_t> offsets;
  // By value: the value that owns the storage it lives in (itself, or through same_as and
  // take-overs an earlier one).
  std::vector<int> storage;
  uint64_t arena_bytes = 0;
  // Most bytes that are alive at one step: no plan can be smaller.
  uint64_t live_bytes = 0;
  // What of the arena is used when, in the order of the owning values.
  std::vector<PlannedBlock> blocks;
};

// Values that are neither written nor read by a step get offset 0 and no memory, unless they are
// outputs. Best fit over the largest storages first (Pisarchyk, Lee: Efficient Memory Management
// for Deep Neural Net Inference, 2020, "greedy by size"); kThorough also tries the longest lives,
// the largest products of bytes and life, and the sequence of first uses. Offsets and sizes of
// blocks are multiples of `alignment`.
// REQUIRES: same_as < own index; values of steps exist; what same_as names has at least its bytes;
// done_by > own index. `margin`, a multiple of `alignment`: bytes after each block that belong to
// no value; they count as bytes of the block.
MemoryPlan PlanMemory(const std::vector<PlanValue>& values, const std::vector<PlanStep>& steps,
                      uint64_t alignment = 512, PlanEffort effort = PlanEffort::kQuick,
                      uint64_t margin = 0);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_SCHEDULE_MEMORY_PLAN_H_
