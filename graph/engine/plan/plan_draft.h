// PlanDraft: what a plan is made of, while it is made.
//
// Values and steps have the numbers of the memory plan (passes/schedule/memory_plan.h). A draft is
// a value: the plan of a graph has one, and so has each static part that is compiled for it.
// plan_builder.h fills it.
#ifndef NPUMESH_GRAPH_ENGINE_PLAN_PLAN_DRAFT_H_
#define NPUMESH_GRAPH_ENGINE_PLAN_PLAN_DRAFT_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "graph/engine/plan/plan_facts.h"
#include "graph/engine/plan/step.h"
#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/passes/schedule/memory_plan.h"

namespace npumesh {

// Number of a value in the memory plan of one draft.
using PlanIndex = int;

struct PlanDraft {
  // Each step three times: what runs, what the memory plan sees of it, and its operands by slot
  // (-1: absent). AddStep keeps them together.
  std::vector<Step> steps;
  std::vector<PlanStep> plan_steps;
  std::vector<std::vector<PlanIndex>> slots;
  // By plan index. An arena address gets its offset from the memory plan.
  std::vector<PlanValue> values;
  std::vector<Address> addresses;
  // Values of the graph that have a number.
  std::map<Value, PlanIndex> index;
  // Images in blocks of channels (passes/layout) that have a number, beside that in `index`.
  std::map<Value, PlanIndex> blocks;
  std::vector<Tensor> constants;
  std::map<std::pair<const void*, uint64_t>, PlanIndex> constant_index;  // host address and bytes
  // Of a static part: values that it reads and does not compute. Their address is kInput and the
  // place in this list.
  std::vector<Value> outside;
  uint64_t scratch_bytes = 0;  // largest of all kernels

  void AddStep(Step step, PlanStep plan, std::vector<PlanIndex> operands);
  PlanIndex AddValue(const PlanValue& value, Address address);
  // The number of these bytes, which equal addresses share.
  PlanIndex AddConstant(const Tensor& tensor);
  // The value that owns the storage in which this one lives.
  PlanIndex StorageOf(PlanIndex at) const;

  PlanValue& value(PlanIndex at) { return values[static_cast<size_t>(at)]; }
  const PlanValue& value(PlanIndex at) const { return values[static_cast<size_t>(at)]; }
  const Address& address(PlanIndex at) const { return addresses[static_cast<size_t>(at)]; }
};

// Where the values of the draft live. `spare`: looks harder for a small arena. `margin`: unused
// bytes after each.
MemoryPlan PlanMemory(const PlanDraft& draft, bool spare, uint64_t margin = 0);

// What the blocks of `plan` hold, in their order; blocks of the values `left_out` are not told.
// `graph` is the one that the draft numbers.
std::vector<PlannedTensor> NamedBlocks(const Graph& graph, const PlanDraft& draft,
                                       const MemoryPlan& plan,
                                       const std::set<PlanIndex>& left_out = {});

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_PLAN_PLAN_DRAFT_H_
