// StaticParts: the static sub-graphs of one graph, compiled once for all signatures of its inputs.
//
// A part is a connected sub-graph whose shapes no input changes. What inference found for its
// nodes, its steps with their kernels, and its own memory plan are kept here; each plan of the
// graph takes them over. Its steps stand among the others in the order of the graph; what they
// write for each other lies in one block of the plan's arena, what others read of it beside that.
//
// The compiler checks in every compilation that what a part was made from is the same; a part for
// which it is not is compiled like any dynamic node. So sharing never changes a result.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ENGINE_PLAN_STATIC_PARTS_H_
#define NPUMESH_GRAPH_ENGINE_PLAN_STATIC_PARTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "graph/engine/analyse/compile_options.h"
#include "graph/engine/analyse/inference.h"
#include "graph/engine/plan/plan_facts.h"
#include "graph/engine/plan/step.h"
#include "graph/passes/rewrite/static_split.h"

namespace npumesh {

// Where a step of a part finds a tensor.
struct PartOperand {
  enum class Kind : uint8_t {
    kAbsent,    // optional input that is not fed
    kConstant,  // index into StaticPart::constants
    kOutside,   // index into StaticPart::outside
    kResult,    // index into StaticPart::results
    kInside,    // byte in the part's block
  };
  Kind kind = Kind::kAbsent;
  uint64_t at = 0;
};

struct PartStep {
  Step step;  // without addresses
  std::vector<PartOperand> inputs;
  std::vector<PartOperand> outputs;
};

// A value that a part computes for others.
struct PartResult {
  Value value;
  uint64_t bytes = 0;
};

struct StaticPart {
  std::vector<NodeId> nodes;                 // in execution order
  std::vector<NodeId> nodes_by_id;           // the same, sorted
  std::vector<std::vector<NodeId>> fusions;  // those of its nodes that are one step
  std::vector<PartResult> results;
  // The rest is there once the part is compiled.
  bool compiled = false;
  std::vector<PartStep> steps;
  std::map<NodeId, size_t> step_of;  // by node that a step stands for: its index
  std::vector<Tensor> constants;
  std::vector<Value> outside;
  uint64_t block_bytes = 0;
  std::vector<PlannedTensor> tensors;  // in its block; steps are counted in the part
  uint64_t scratch_bytes = 0;
};

class StaticParts {
 public:
  // Parts have at least `lower_limit` operators. `lower_limit` below 0: there are none.
  explicit StaticParts(int64_t lower_limit) : lower_limit_(lower_limit) {}

  int64_t lower_limit() const { return lower_limit_; }

  // What inference found for static nodes in the first compilation, empty before it.
  InferenceMemory& memory() { return memory_; }
  // Whether the parts are chosen, which the first compilation does.
  bool chosen() const { return chosen_; }
  void Choose(std::vector<StaticPart> parts) {
    parts_ = std::move(parts);
    chosen_ = true;
  }
  std::vector<StaticPart>& parts() { return parts_; }

 private:
  int64_t lower_limit_;
  bool chosen_ = false;
  InferenceMemory memory_;
  std::vector<StaticPart> parts_;
};

// The parts that a compilation with these options shares with others of the graph; null: it shares
// none.
StaticParts* StaticPartsOf(const CompileOptions& options);

// What the first of these compilations found; null: this is the first, or nothing is shared.
const InferenceMemory* FoundBefore(const CompileOptions& options);

// By node id: operators of the nodes `order` whose shapes and values are the same for all inputs
// that the model admits. All false for a model without open dimensions and without inputs whose
// values decide shapes, because it has one plan anyway.
Result<std::vector<bool>> StaticOperators(const Model& model, const BoundGraph& graph,
                                          const std::vector<NodeId>& order, GroupProvider* groups);

// Takes from `is_static` the operators that are fused with others which are not, and returns the
// rest as parts. `fusions` are those of the whole graph, `kept` the nodes that run.
std::vector<StaticPart> ChooseParts(const BoundGraph& graph, const std::vector<NodeId>& kept,
                                    std::vector<bool> is_static,
                                    const std::vector<std::vector<NodeId>>& fusions,
                                    int64_t lower_limit);

// Whether the fusions of the whole graph are on these nodes what they were when the part was
// chosen.
bool SameFusions(const StaticPart& part, const std::vector<std::vector<NodeId>>& fusions);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_PLAN_STATIC_PARTS_H_
