// What can be said about a model before it is compiled: its inputs, its groups, its faults.
#ifndef NPUMESH_GRAPH_ENGINE_ANALYSE_MODEL_INPUTS_H_
#define NPUMESH_GRAPH_ENGINE_ANALYSE_MODEL_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/ops/core/op_registry.h"
#include "graph/passes/analysis/reachability.h"

namespace npumesh {

// What a graph expects from its caller.
struct InputSpec {
  std::string name;
  int64_t index = 0;    // attribute `index`
  TensorType declared;  // with unknown dimensions
  bool ref = false;     // RefData: updated in place
  bool host = false;    // small host scalar (device_type CPU)
};

// Inputs of the main graph sorted by index; gaps in the numbering are legal. The shape of an input
// in a private format is its `origin_shape`. Errors (kCorrupt): two inputs with one index.
Result<std::vector<InputSpec>> InputsOf(const Model& model);

// Compares what a caller has with what the graph declares, where that is known. Errors
// (kInvalidArgument) name input, expected and seen.
Status CheckInputTypes(const std::vector<InputSpec>& inputs, const std::vector<TensorType>& types);

// Larger inputs never decide shapes.
inline constexpr uint64_t kMaxShapeValueBytes = uint64_t{64} << 10;

// By position in InputsOf: inputs whose values may decide shapes: host scalars and small integers
// that reach an input which inference reads by value, of dead nodes too where they are kept.
// Compile takes their values if they are at most kMaxShapeValueBytes.
std::vector<bool> ShapeDecidingInputs(const Model& model, const OpRegistry& registry,
                                      DeadNodes dead);

// Everything that can be said about a model and its subgraphs without input types: its operators
// are known and fit their interfaces, and what runs as a branch or body overwrites none of its
// inputs. Errors as CheckOperators: one with the complete list.
Status CheckModel(const Model& model, const OpRegistry& registry);

// The `group` attributes of all operators that will meet other ranks, subgraphs
// included, sorted, each once.
std::vector<std::string> GroupsOf(const Model& model, const OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_ANALYSE_MODEL_INPUTS_H_
