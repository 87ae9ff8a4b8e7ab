// PlanFacts: what a compilation decided, in the words of a person who reads the plan.
#ifndef NPUMESH_GRAPH_ENGINE_PLAN_PLAN_FACTS_H_
#define NPUMESH_GRAPH_ENGINE_PLAN_PLAN_FACTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace npumesh {

// A piece of the arena and the steps during which its bytes are in use.
struct PlannedTensor {
  // The value that is there first: "<step>:<output>".
  std::string name;
  // Values that live in the same bytes after it: views, in-place outputs, and outputs of
  // element-wise steps that took them over.
  std::vector<std::string> also;
  uint64_t offset = 0;
  uint64_t bytes = 0;  // of the block, a multiple of kHbmAlignment
  // Indices of steps, inclusive; `last` is the number of steps for a graph output.
  int first = 0;
  int last = 0;
  bool output = false;
};

// A static sub-graph, whose steps are compiled once for all signatures.
struct PlannedPart {
  size_t operators = 0;
  size_t steps = 0;
  uint64_t bytes = 0;         // of its block of the arena
  bool compiled_now = false;  // by this compilation, and not by one before it
};

// A node at which a fusion pass found its pattern begin, and the first reason why it fused nothing.
struct UnfusedNode {
  std::string step;  // that computes the node, alone or fused by another pass
  std::string node;
  std::string_view pass;
  std::string_view why;  // a literal

  // "not fused by RmsNormFusionPass: epsilon is no constant"; names the node where it is not that
  // of the step.
  std::string ToString() const;
};

struct PlanFacts {
  std::vector<PlannedTensor> tensors;  // in the order in which they are written first
  std::vector<std::string> folded;     // nodes whose results were computed while compiling
  std::vector<std::string> pruned;     // nodes whose results are unused
  std::vector<UnfusedNode> unfused;    // in the order of the passes
  std::vector<PlannedPart> parts;
  size_t steps_compiled = 0;  // by this compilation; those of older parts are not
  uint64_t live_bytes = 0;    // most bytes in use at one step: no arena can be smaller
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_PLAN_PLAN_FACTS_H_
