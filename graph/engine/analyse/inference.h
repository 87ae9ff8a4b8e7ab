// Inference: types of all values and the values that are known before a graph runs.
//
// One walk in execution order: each node sees concrete input types and constant inputs, infers its
// output types and, where nothing is left to run time, is evaluated on the spot. So chains like
// Shape -> Gather -> Pack -> Reshape.shape resolve.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ENGINE_ANALYSE_INFERENCE_H_
#define NPUMESH_GRAPH_ENGINE_ANALYSE_INFERENCE_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/engine/analyse/weight_cache.h"
#include "graph/ir/tensor.h"
#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

// What an inference found for some operators, for another one of the same graph.
struct InferenceMemory {
  struct Entry {
    // By slot: types, and the addresses of values that were known; null: none.
    std::vector<TensorType> in;
    std::vector<const void*> values;
    std::vector<TensorType> types;  // by port
    // By port, or empty when nothing is known; without bytes where they are not asked for again.
    std::vector<Tensor> constants;
  };
  std::map<NodeId, Entry> entries;
};

class Inference {
 public:
  // What the caller of the graph gives to a Data or RefData node.
  struct Input {
    TensorType type;
    // The value, when it goes into the compilation; else a default Tensor.
    Tensor value;
  };
  struct Settings {
    GroupProvider* groups = nullptr;
    int threads = 1;
    PackedWeights* packed = nullptr;  // may be null
    KernelTuning* tuning = nullptr;   // may be null
    // Operators in it whose inputs are the same are not asked again; null: no such memory.
    const InferenceMemory* memory = nullptr;
    // As CompileOptions has it.
    std::function<Status(const OpContext&)> check_operator;
  };

  Inference(const BoundGraph& graph, Settings settings);

  // Walks `order`. Nodes after a failed one are left out; all other failures are collected.
  Status Run(const std::vector<NodeId>& order, const std::map<NodeId, Input>& inputs,
             WeightCache& weights, const std::string& model_path);

  // The rest REQUIRES: Run was OK and the node was in `order`.

  const TensorType& type(Value value) const;
  // By port; empty for nodes without a value (NetOutput, NoOp).
  const std::vector<TensorType>& types(NodeId id) const { return result(id).types; }
  // The value when it is known before the graph runs, else null.
  const Tensor* constant(Value value) const;
  // True when all outputs are known: nothing is left to run.
  bool folded(NodeId id) const;
  // Its results come from the memory.
  bool recalled(NodeId id) const { return result(id).recalled; }
  // For the memory of another inference. `forgets`: values that are not asked for again.
  InferenceMemory::Entry EntryOf(NodeId id, bool forgets) const;
  // The node with its input types, constant inputs and output types. REQUIRES: an operator.
  const OpContext& context(NodeId id) const { return *results_[static_cast<size_t>(id)].context; }

 private:
  struct NodeResult {
    std::optional<OpContext> context;
    std::vector<TensorType> types;
    std::vector<Tensor> constants;  // by port, or empty when nothing is known
    bool failed = false;
    bool recalled = false;
  };
  // True: the memory knows the node with these inputs, and has given its results.
  bool Recall(NodeId id);
  Status Visit(const Node& node, const std::map<NodeId, Input>& inputs, WeightCache& weights,
               const std::string& model_path);
  Status CheckSource(Value value) const;
  Status CheckSources(const Node& node) const;
  Status VisitOperator(const Node& node);
  bool BehindFailure(const Node& node) const;
  NodeResult& result(NodeId id) { return results_[static_cast<size_t>(id)]; }
  const NodeResult& result(NodeId id) const { return results_[static_cast<size_t>(id)]; }

  const BoundGraph& graph_;
  Settings settings_;
  std::vector<NodeResult> results_;  // by node id
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_ANALYSE_INFERENCE_H_
