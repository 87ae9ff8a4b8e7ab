// Subgraphs of ours that ONNX's If, Loop and Scan become, and loops that rewrites need.
#ifndef NPUMESH_GRAPH_ONNX_LOOP_WRITER_H_
#define NPUMESH_GRAPH_ONNX_LOOP_WRITER_H_

#include <functional>
#include <memory>
#include <vector>

#include "graph/onnx/graph_scope.h"
#include "graph/onnx/lowering.h"

namespace npumesh {

// A graph that a node runs. Its first inputs are variables; what it reads of the graph around comes
// after them.
struct SubgraphBody {
  std::unique_ptr<GraphScope> scope;
  std::vector<Value> variables;
  std::vector<Value> outputs;
  // Why the branch of an If does not fit, and fails when it is taken; success: it fits.
  Status misfit = {};
};

// What is known of a value that has one of two types.
TensorType CommonType(const TensorType& a, const TensorType& b);

// What one turn of a loop leaves.
struct LoopTurn {
  std::vector<Value> next;  // as many as variables
  Value go_on;              // a bool scalar
};

// Writes a While. Its variables are the number of the turn (int64), `go_on` (bool) and `first`; it
// runs while the number is below `turns` (int64) and `go_on` holds; all three are scalars. `write`
// writes one turn into `scope` with a lowering of the same node, and is called again where shapes
// change from turn to turn, which are open then. Returns the variables after the last turn.
using WriteTurn = std::function<LoopTurn(GraphScope& scope, Lowering& body, Value turn,
                                         const std::vector<Value>& now)>;
std::vector<Value> WriteLoop(Lowering& at, Value turns, Value go_on,
                             const std::vector<Value>& first, const WriteTurn& write);

// Writes an If. `outputs` of both bodies are as many and of the same types, which those of a branch
// that does not fit take from the other. The bodies have no variables. REQUIRES: one of them fits.
std::vector<Value> WriteIf(Lowering& at, Value condition, SubgraphBody yes, SubgraphBody no);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_LOOP_WRITER_H_
