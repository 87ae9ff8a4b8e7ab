// GraphAnalysis: what a compilation knows of a graph before it makes the first step: which nodes
// run, in which order, with which types, which values are known already, and what is fused.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ENGINE_ANALYSE_GRAPH_ANALYSIS_H_
#define NPUMESH_GRAPH_ENGINE_ANALYSE_GRAPH_ANALYSIS_H_

#include <functional>
#include <map>
#include <vector>

#include "graph/engine/analyse/compile_options.h"
#include "graph/engine/analyse/inference.h"
#include "graph/engine/analyse/model_inputs.h"
#include "graph/engine/analyse/weight_cache.h"
#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "graph/passes/analysis/bound_graph.h"
#include "graph/passes/fusion/fusion.h"
#include "graph/passes/layout/image_layouts.h"

namespace npumesh {

class GraphAnalysis {
 public:
  // `memory`: what an analysis of the same graph found; null: this is the first. All must outlive
  // it.
  GraphAnalysis(const Model& model, const OpRegistry& registry, GroupProvider* groups,
                const CompileOptions& options, const InferenceMemory* memory = nullptr);

  // The inputs of a compilation, by position.
  struct Inputs {
    std::vector<InputSpec> specs;
    std::vector<TensorType> types;
    std::vector<bool> value_dependent;  // the value goes into the compilation
  };

  // The next four are called once each, in this order.

  // Checks operators and inputs, and orders the nodes that run. Errors as CompiledModel::Compile.
  Status TakeInputs(const std::vector<TensorType>& types, const std::vector<Tensor>& values);
  // Finds the types of these nodes and the values that are known; then drops the nodes whose
  // results that need no step because they are known. Errors as Inference::Run.
  Status Infer();
  // Chooses which images are kept in blocks of channels, as the options say. `stays`: the node has
  // to compute on what it is given.
  void ChooseLayouts(const std::function<bool(NodeId)>& stays);
  // Finds what is computed by one step, as the options say.
  void FindFusions();

  const Model& model() const { return model_; }
  const Graph& graph() const { return model_.graph; }
  const CompileOptions& options() const { return options_; }
  const BoundGraph& bound() const { return bound_; }
  const Inference& inference() const { return inference_; }
  const Inputs& inputs() const { return inputs_; }

  // Nodes that inference has seen, in execution order.
  const std::vector<NodeId>& order() const { return order_; }
  bool needed(NodeId id) const { return needed_[static_cast<size_t>(id)]; }
  // Those of `order` that are needed.
  std::vector<NodeId> Kept(const std::vector<NodeId>& order) const;
  std::vector<NodeId> Kept() const { return Kept(order_); }
  // Position of a Data or RefData among the inputs.
  int position(NodeId input) const { return positions_.at(input); }

  // Known before the graph runs, and taken from there: weights, answers of shape queries and,
  // unless folding is off, whatever is computed from them.
  bool Folded(Value value) const;
  const ImageLayouts& layouts() const { return layouts_; }
  // An operator as it computes: with the types of the graph, or with images in blocks.
  // REQUIRES: an operator that runs.
  const OpContext& context(NodeId id) const;
  // The type of a value as the step that computes it leaves it.
  TensorType StoredType(Value value) const;

  // Folded, and the output of an operator, which has no step then.
  bool Replaced(Value value) const;

  const std::vector<FusedStep>& fusions() const { return fusions_.steps; }
  // Why passes fused nothing where they found their pattern begin.
  const std::vector<FusionRefusal>& fusion_refusals() const { return fusions_.refusals; }
  // The node whose place and name the step has that computes this one.
  NodeId StepNodeOf(NodeId id) const;
  // By each node of a fused step: the step, whose place is that of its last node.
  const std::map<NodeId, const FusedStep*>& fusion_of() const { return fusion_of_; }

 private:
  // Nodes that run, or that a node that runs reads; without folding and dropping, all.
  std::vector<bool> Needed(const std::function<bool(Value)>& known) const;
  Status BindInputs(const std::vector<Tensor>& values);
  // Whatever a kept node reads is known or made by a kept node.
  Status CheckProducers() const;

  const Model& model_;
  const CompileOptions& options_;
  BoundGraph bound_;
  Inference inference_;
  WeightCache own_weights_;  // when the options bring none

  Inputs inputs_;
  std::map<NodeId, int> positions_;  // of Data and RefData
  std::map<NodeId, Inference::Input> input_of_;
  std::vector<bool> needed_;  // by node id
  std::vector<NodeId> order_;
  ImageLayouts layouts_;
  Fusions fusions_;
  std::map<NodeId, const FusedStep*> fusion_of_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_ANALYSE_GRAPH_ANALYSIS_H_
