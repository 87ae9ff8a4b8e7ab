// InputCause: why an operator saw other inputs although no dumped operator before it differs.
#ifndef NPUMESH_GRAPH_COMPARE_REPLAY_INPUT_CAUSE_H_
#define NPUMESH_GRAPH_COMPARE_REPLAY_INPUT_CAUSE_H_

#include <optional>
#include <string>

#include "graph/compare/measures/comparison.h"
#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

struct InputCause {
  enum class Kind : uint8_t {
    kWeight,       // a weight of the graph is another one
    kGraphInput,   // the graph was given something else
    kNotDumped,    // what makes it has no tensor in one of the dumps
    kOverwritten,  // what made it left the same on both sides
    kSharded,      // the shapes differ by the number of ranks
    kUnknown,      // no graph says where it comes from
  };
  Kind kind = Kind::kUnknown;
  TensorRow tensor;  // the input, or for kSharded any tensor of the operator
  // Of the weight, graph input or operator that makes it.
  std::string name;
  std::string file;  // of the weight; empty: in the graph
  int axis = 0;      // kSharded: of the pieces
};
std::string_view Name(InputCause::Kind kind);  // "weight", "graph input", ...

// What explains a row of `comparison` that differs; nullopt when its inputs are the same or
// unknown: then it is the operator itself. `graph`: as it ran on the rank (graph_that_ran.h), or
// null. The dumps are of jobs of `my_ranks` and `golden_ranks` ranks.
std::optional<InputCause> FindInputCause(const Comparison& comparison, const OperatorRow& row,
                                         const Graph* graph, const OpRegistry& registry,
                                         int my_ranks, int golden_ranks);

// "its weight arg7_1 (rank_2/arg7_1) differs in 1 of 4096 elements, first [0,100]".
std::string ToText(const InputCause& cause, int my_ranks, int golden_ranks);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_REPLAY_INPUT_CAUSE_H_
