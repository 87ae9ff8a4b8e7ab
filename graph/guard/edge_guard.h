// EdgeGuard: finds operators of a library that write past the end of their outputs.
//
// Before such a step the unused bytes after each of its outputs get a known content, and after it
// they must have it still. That costs a pass over CompileOptions::margin bytes for each output, so
// it is always on; MemoryGuard sees all of memory and costs a copy of it. Steps of built-in
// operators, late ones (NonZero ...) and outputs outside of the arena are left out.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_GUARD_EDGE_GUARD_H_
#define NPUMESH_GRAPH_GUARD_EDGE_GUARD_H_

#include <cstdint>
#include <span>
#include <vector>

#include "graph/engine/run/step_observer.h"
#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// What CompileOptions::margin should be.
inline constexpr uint64_t kEdgeMargin = 4096;

// Whether a graph of `model` has an operator of `operators` that `trusted` has not.
bool HasUntrustedOperators(const Model& model, const OpRegistry& operators,
                           const OpRegistry& trusted);

class EdgeGuard final : public StepObserver {
 public:
  // Steps of operators that `trusted`, which must outlive it, does not have are checked.
  explicit EdgeGuard(const OpRegistry& trusted) : trusted_(trusted) {}

  bool needs_each_operator() const override { return false; }
  Status BeforeStep(const StepView& view) override;
  // Error (kCorrupt) names operator, node, output and how many bytes after its end were written.
  Status AfterStep(const StepView& view) override;

 private:
  struct Edge {
    size_t output;
    std::span<std::byte> unused;  // after it, in memory of no tensor
    uint64_t distance;            // from the output's end
  };
  void AddEdge(const StepView& view, size_t output);

  const OpRegistry& trusted_;
  std::vector<Edge> edges_;  // of the step
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_GUARD_EDGE_GUARD_H_
