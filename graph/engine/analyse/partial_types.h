// PartialTypes: what is known of the types of a graph's values before anybody has given inputs.
//
// Inputs have the types that the file declares, with open dimensions; from there InferPartly goes
// on, node by node. Nodes that differ in nothing that inference sees are asked once.
//
// Thread-safety: const members may be called from several threads.
#ifndef NPUMESH_GRAPH_ENGINE_ANALYSE_PARTIAL_TYPES_H_
#define NPUMESH_GRAPH_ENGINE_ANALYSE_PARTIAL_TYPES_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/passes/analysis/bound_graph.h"
#include "runtime/base/error_list.h"

namespace npumesh {

enum class PartialEffort {
  kQuick,    // nothing is asked of a node that reads a value of unknown rank
  kThorough  // it is asked for each rank: for people who look at a graph, not for sessions
};

// What a caller knows of nodes that operators cannot tell. Both may be null.
struct PartialHelp {
  // The outputs of a node that runs subgraphs, by the types of its inputs; fewer than it has, or of
  // dtype kUndefined: unknown.
  std::function<std::vector<TensorType>(const Node& node, const std::vector<TensorType>& inputs)>
      of_subgraphs;
  // The outputs of a node that refuses its inputs; nullopt: unknown.
  std::function<std::optional<std::vector<TensorType>>(const Operator& op,
                                                       const OpContext& context)>
      of_refused;
};

class PartialTypes {
 public:
  // Walks the nodes of `order`, producers before readers; others have unknown types. `model` is the
  // one whose main graph is `graph`: its inputs and the place of its weights. `groups` may be null:
  // what collectives give then is unknown.
  static Result<PartialTypes> Of(const Model& model, const BoundGraph& graph,
                                 const std::vector<NodeId>& order, GroupProvider* groups,
                                 PartialEffort effort, const PartialHelp& help = {});

  // Dtype kUndefined and unknown rank where nothing is known.
  const TensorType& type(Value value) const;
  // The value where it is the same whatever the inputs are and a node reads it by value; else null.
  const Tensor* constant(Value value) const;

  // What cannot be whatever the open dimensions are: an error for every node whose inputs are known
  // and which refuses them, and for element-wise operators and products whose known dimensions do
  // not fit. The complete list, as Inference::Run gives it.
  Status Contradictions() const { return contradictions_.Join(title_); }

 private:
  struct Known {
    std::vector<TensorType> types;  // by port
    std::vector<Tensor> constants;  // by port, or empty
  };
  // Answers by everything that InferPartly sees of a node.
  using Answers = std::map<std::string, Result<std::vector<TensorType>>>;
  class Walk;

  std::vector<Known> known_;  // by node id
  ErrorList contradictions_;
  std::string title_;
};

// Refuses a model whose main graph cannot run for any input, where its open dimensions leave that
// to be seen: PartialTypes::Contradictions. It ignores models without open dimensions, because
// their first compilation says the same. Not collective. Errors name nodes and types.
Status CheckKnownTypes(const Model& model, const OpRegistry& registry, GroupProvider* groups);

// A graph of this model as `--plan` and exports show it: every descriptor of a value about whose
// type something is known says it, open dimensions as -1. Descriptors of inputs and weights, and
// those of values about which nothing is known, stay.
void DescribePartly(const PartialTypes& types, Graph& graph);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_ANALYSE_PARTIAL_TYPES_H_
