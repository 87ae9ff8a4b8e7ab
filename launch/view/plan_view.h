// PlanView: a compiled plan for people: order, streams, lives of tensors, peak memory; as text, as
// JSON and as a picture.
#ifndef NPUMESH_LAUNCH_VIEW_PLAN_VIEW_H_
#define NPUMESH_LAUNCH_VIEW_PLAN_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/engine/plan/compiled_model.h"
#include "launch/view/stage_outline.h"
#include "runtime/base/text/json.h"

namespace npumesh {

struct PlanStepView {
  std::string name;
  std::string type;
  bool beside = false;               // on the communication stream
  int wait_for = -1;                 // index of a step beside
  int done_by = 0;                   // the step before which it is sure to be finished
  uint64_t live_bytes = 0;           // of the arena, in use during the step
  int part = -1;                     // static part, index into PlanView::parts; -1: none
  KernelChoice kernel;               // without a name where there was nothing to choose
  std::vector<UnfusedNode> unfused;  // fusions of its operators that did not apply
};

// What precision_mode chose for an operator, or a Cast that it put there (docs/precision.md).
struct PrecisionChoice {
  std::string name;
  std::string type;
  std::string note;
};

struct LaterStage;

struct PlanView {
  std::string graph;
  int stages = 1;                  // of the graph; the plan is that of the first
  std::vector<OutlinedStep> late;  // operators that end the first stage
  std::vector<LaterStage> later;   // the stages after it
  std::vector<PlannedPart> parts;  // static parts
  std::vector<PlanStepView> steps;
  std::vector<PlannedTensor> tensors;  // of the arena
  std::vector<std::string> folded;
  std::vector<std::string> pruned;
  std::vector<PrecisionChoice> precision;  // in the order of the graph
  // Bytes of device memory.
  uint64_t arena_bytes = 0;
  uint64_t live_bytes = 0;  // most of the arena that is in use at once
  uint64_t scratch_bytes = 0;
  size_t inputs = 0;
  uint64_t input_bytes = 0;
  size_t constants = 0;
  uint64_t constant_bytes = 0;
  // Constants that kernels have packed for themselves, outside of device memory.
  size_t packed = 0;
  uint64_t packed_bytes = 0;
  uint64_t peak_bytes = 0;  // all of it, in the blocks of the device
};

// A stage after the first: what is known of it, and its plan where all its shapes are.
struct LaterStage {
  StageOutline outline;
  std::vector<PlanView> plan;  // none, or one
};

PlanView ViewOf(const CompiledModel& plan, int stages);

std::string ToText(const PlanView& plan);

// The same as an object with the members `graph`, `stages`, `memory`, `steps`, `tensors`, `folded`,
// `pruned`, `precision`, `parts`, `late` and `later`. Bytes of names that are not UTF-8 are
// replaced.
std::string ToJson(const PlanView& plan);
nlohmann::json ToJsonObject(const PlanView& plan);

// An SVG that any browser shows: steps from left to right in two lanes, one for each stream; below
// them a rectangle for the life of each tensor, at its addresses. Every mark has a tooltip, and
// rectangles of tensors carry their numbers as data-first, data-last, data-offset, data-bytes.
std::string ToSvg(const PlanView& plan);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_PLAN_VIEW_H_
