#include "graph/engine/analyse/stage_graph.h"

#include <map>

#include "graph/ir/node_draft.h"

namespace npumesh {
namespace {

void Describe(const TensorType& type, TensorDesc& desc) {
  desc.dtype = type.dtype;
  desc.shape = type.shape;
}

// Copies nodes one by one into a new graph and keeps track of where their values went.
class Copier {
 public:
  Copier(const Graph& from, const std::function<const Tensor*(Value)>& folded)
      : from_(from), folded_(folded), to_(from.name()) {
    to_.attrs() = from.attrs();
    to_.output_records() = from.output_records();
    to_.opaque() = from.opaque();
  }

  void Copy(NodeId id) {
    Node node = from_.node(id);
    for (std::optional<Value>& input : node.inputs) {
      if (input) input = NewValue(*input);
    }
    std::vector<NodeId> controls;
    for (const NodeId control : node.controls) {
      const auto known = ids_.find(control);
      if (known != ids_.end()) controls.push_back(known->second);
    }
    node.controls = std::move(controls);
    ids_[id] = to_.Add(std::move(node)).value();  // names were unique and stay so
  }

  Graph Take() { return std::move(to_); }

 private:
  std::optional<Value> NewValue(Value value) {
    const auto known = constants_.find(value);
    if (known != constants_.end()) return Value{known->second, 0};
    if (const Tensor* constant = folded_(value)) {
      Node node = MakeConst(
          fmt::format("{}_ConstantFolding_{}", from_.node(value.node).name, value.port), *constant);
      while (from_.Find(node.name) != kNoNode || to_.Find(node.name) != kNoNode) node.name += "_";
      const NodeId id = to_.Add(std::move(node)).value();
      constants_[value] = id;
      return Value{id, 0};
    }
    const auto copied = ids_.find(value.node);
    if (copied == ids_.end()) return std::nullopt;
    return Value{copied->second, value.port};
  }

  const Graph& from_;
  const std::function<const Tensor*(Value)>& folded_;
  Graph to_;
  std::map<NodeId, NodeId> ids_;
  std::map<Value, NodeId> constants_;
};

}  // namespace

Model TypedGraph(const Model& model, const Inference& inference, const std::vector<NodeId>& order) {
  Model typed = model;
  for (const NodeId id : order) {
    Node& node = typed.graph.node(id);
    const std::vector<TensorType>& types = inference.types(id);
    for (size_t i = 0; i < types.size() && i < node.output_descs.size(); ++i) {
      Describe(types[i], node.output_descs[i]);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i]) Describe(inference.type(*node.inputs[i]), node.input_descs[i]);
    }
  }
  return typed;
}

Model KeptGraph(const Model& typed, const std::vector<NodeId>& kept,
                const std::function<const Tensor*(Value)>& folded) {
  Copier copier(typed.graph, folded);
  for (const NodeId id : kept) copier.Copy(id);
  Model model;
  model.name = typed.name;
  model.version = typed.version;
  model.custom_version = typed.custom_version;
  model.subgraphs = typed.subgraphs;
  model.attrs = typed.attrs;
  model.opaque = typed.opaque;
  model.path = typed.path;
  model.graph = copier.Take();
  return model;
}

}  // namespace npumesh
