#include "tests/fuzz/engine/interpreter.h"

#include <algorithm>

#include "tests/fuzz/engine/plain_order.h"

namespace npumesh::fuzz {
namespace {

constexpr int kMostTurns = 50;

bool IsInput(const Node& node) {
  return node.type == "Data" || node.type == "RefData";
}

// One run of one graph: the bytes of each storage at each level.
class GraphRun {
 public:
  GraphRun(const Model& model, const Graph& graph, Dice* noise)
      : model_(model), graph_(graph), order_(graph), noise_(noise) {}

  Meaning Run(const std::vector<const PlainTensor*>& inputs) {
    const std::vector<NodeId> data = graph_.DataNodes();
    for (size_t i = 0; i < data.size(); ++i) Produce({data[i], 0}, *inputs[i]);
    for (const NodeId id : order_.nodes()) {
      const Node& node = graph_.node(id);
      if (IsInput(node) || node.type == "NetOutput") continue;
      if (!RunNode(node)) {
        refused_ = node.name;
        return unsure_ ? Meaning::kUnknown : Meaning::kIllegal;
      }
    }
    return Meaning::kDecided;
  }

  const std::string& refused() const { return refused_; }

  PlainTensors Outputs() const {
    PlainTensors outputs;
    const Node& sink = graph_.node(graph_.NetOutput());
    for (const auto& input : sink.inputs) outputs.push_back(Read(sink.id, *input));
    return outputs;
  }

  // A RefData after the last writer.
  PlainTensor Final(NodeId input) const { return levels_.at({input, 0}).back(); }

 private:
  // A live name shows its storage at the level of its reader, a view at that of the lowest view.
  PlainTensor Read(NodeId reader, Value value) const {
    const Value root = order_.RootOf(value), pin = order_.PinOf(value);
    const NodeId at = IsView(value) ? pin.node : reader;
    return Named(value, levels_.at(root)[static_cast<size_t>(order_.LevelOf(at, root))]);
  }

  // The target of a writer is an address: what it sees there is what the writer before it left.
  PlainTensor ReadTarget(const Node& writer) const {
    const Value target = *writer.inputs[0];
    return Named(target, levels_.at(order_.RootOf(target)).back());
  }

  // The bytes of a storage under the type of a value that lives there.
  PlainTensor Named(Value value, const PlainTensor& bytes) const {
    const TensorType& type = types_.at(value);
    PlainTensor named = Reinterpreted(bytes, type.dtype);
    named.dims = type.shape.dims();
    return named;
  }

  bool IsView(Value value) const {
    const auto op = PlainOps().find(graph_.node(value.node).type);
    return op != PlainOps().end() && op->second.view;
  }

  bool RunNode(const Node& node) {
    if (node.type == "Const") {
      Produce({node.id, 0}, ConstantOf(node));
      return true;
    }
    const auto op = PlainOps().find(node.type);
    const bool writes = op != PlainOps().end() && op->second.writes;
    PlainTensors read;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const std::optional<Value>& input = node.inputs[i];
      read.push_back(!input             ? PlainTensor()
                     : writes && i == 0 ? ReadTarget(node)
                                        : Read(node.id, *input));
      unsure_ = unsure_ || read.back().trust == Trust::kUnsure;
    }
    std::vector<const PlainTensor*> inputs;
    for (size_t i = 0; i < read.size(); ++i) {
      inputs.push_back(node.inputs[i] ? &read[i] : nullptr);
    }
    std::optional<PlainTensors> outputs = ComputeNode(model_, node, inputs, noise_);
    if (!outputs || outputs->size() < node.output_descs.size()) return false;
    for (size_t port = 0; port < outputs->size(); ++port) {
      Produce({node.id, static_cast<int>(port)}, std::move((*outputs)[port]));
    }
    return true;
  }

  // A root begins its storage, a writer adds a level, a view is a name only.
  void Produce(Value value, PlainTensor content) {
    types_[value] = {content.dtype, Shape(content.dims)};
    if (!IsView(value)) levels_[order_.RootOf(value)].push_back(std::move(content));
  }

  const Model& model_;
  const Graph& graph_;
  const PlainOrder order_;
  Dice* noise_;
  std::map<Value, PlainTensors>
      levels_;  // by root: the bytes before the first writer, after it ...
  std::map<Value, TensorType> types_;
  std::string refused_;
  bool unsure_ = false;
};

// ---- subgraphs ----

using Pointers = std::vector<const PlainTensor*>;

std::optional<PlainTensors> RunSubgraph(const Model& model, const std::string& name,
                                        const Pointers& inputs, Dice* noise) {
  const Graph* graph = model.FindSubgraph(name);
  if (graph == nullptr || graph->DataNodes().size() > inputs.size()) return std::nullopt;
  GraphRun run(model, *graph, noise);
  if (run.Run(inputs) != Meaning::kDecided) return std::nullopt;
  return run.Outputs();
}

Pointers PointersTo(const PlainTensors& tensors) {
  Pointers pointers;
  for (const PlainTensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

bool IsTrue(const PlainTensor& condition) {
  return condition.rank() == 0 ? condition.at(0) != 0 : condition.count() > 0;
}

std::optional<PlainTensors> Loop(const Model& model, const Node& node, const Pointers& inputs,
                                 Dice* noise) {
  PlainTensors variables;
  for (const PlainTensor* input : inputs) variables.push_back(*input);
  for (int turn = 0; turn < kMostTurns; ++turn) {
    const auto go = RunSubgraph(model, node.subgraphs[0], PointersTo(variables), noise);
    if (!go) return std::nullopt;
    if (!IsTrue((*go)[0])) return variables;
    const auto next = RunSubgraph(model, node.subgraphs[1], PointersTo(variables), noise);
    if (!next) return std::nullopt;
    variables = *next;
  }
  return std::nullopt;
}

std::optional<PlainTensors> RunControlFlow(const Model& model, const Node& node,
                                           const Pointers& inputs, Dice* noise) {
  if (node.type == "PartitionedCall") {
    return RunSubgraph(model, node.subgraphs[0], inputs, noise);
  }
  if (node.type == "While") return Loop(model, node, inputs, noise);
  const Pointers rest(inputs.begin() + 1, inputs.end());
  const auto branches = static_cast<int64_t>(node.subgraphs.size());
  int64_t branch = node.type == "If" ? (IsTrue(*inputs[0]) ? 0 : 1) : inputs[0]->integer(0);
  if (branch < 0 || branch >= branches) branch = branches - 1;
  return RunSubgraph(model, node.subgraphs[static_cast<size_t>(branch)], rest, noise);
}

// ---- trust ----

void Judge(PlainTensor& output, const Pointers& inputs, bool steady, Dice* noise) {
  for (const PlainTensor* input : inputs) {
    if (input != nullptr) output.trust = std::max(output.trust, input->trust);
  }
  const bool rough = output.trust == Trust::kRough;
  if (rough && (!steady || !IsFloat(output.dtype))) output.trust = Trust::kUnsure;
  if (!rough || noise == nullptr || !IsFloat(output.dtype)) return;
  for (Number& x : output.v) {
    const auto units = static_cast<Number>(noise->Between(-4, 4));
    x = RoundTo(output.dtype, x * (1 + units * EpsilonOf(output.dtype)));
  }
}

}  // namespace

bool IsControlFlow(const std::string& type) {
  return type == "If" || type == "Case" || type == "While" || type == "PartitionedCall";
}

PlainTensor ConstantOf(const Node& node) {
  const AttrValue* value = node.FindAttr("value");
  const TensorAttr* tensor = value == nullptr ? nullptr : value->get<TensorAttr>();
  if (tensor == nullptr) return PlainTensor();
  return FromTensor(Tensor::FromShared({tensor->desc->dtype, tensor->desc->shape.value_or(Shape())},
                                       tensor->data));
}

std::optional<PlainTensors> ComputeNode(const Model& model, const Node& node,
                                        const std::vector<const PlainTensor*>& inputs,
                                        Dice* noise) {
  if (IsControlFlow(node.type)) return RunControlFlow(model, node, inputs, noise);
  const auto op = PlainOps().find(node.type);
  if (op == PlainOps().end()) return std::nullopt;
  std::optional<PlainTensors> outputs = op->second.compute({node, inputs});
  if (!outputs) return std::nullopt;
  // Which numbers are read of a shape does not matter.
  const Pointers judged = op->second.asks_type ? Pointers() : inputs;
  for (PlainTensor& output : *outputs) Judge(output, judged, op->second.steady, noise);
  return outputs;
}

std::vector<StepResult> Interpret(const FuzzCase& fuzzed, Dice* noise) {
  std::vector<StepResult> results;
  const Graph& graph = fuzzed.model.graph;
  const std::vector<NodeId> data = graph.DataNodes();
  std::map<int, PlainTensor> held;
  for (const std::vector<Tensor>& fed : fuzzed.steps) {
    PlainTensors inputs;
    for (size_t i = 0; i < data.size(); ++i) {
      const bool keeps = fed[i].dtype() == DataType::kUndefined;
      inputs.push_back(keeps ? held[static_cast<int>(i)] : FromTensor(fed[i]));
    }
    GraphRun run(fuzzed.model, graph, noise);
    StepResult result;
    result.meaning = run.Run(PointersTo(inputs));
    result.node = run.refused();
    const bool decided = result.meaning == Meaning::kDecided;
    for (size_t i = 0; decided && i < data.size(); ++i) {
      if (graph.node(data[i]).type != "RefData") continue;
      result.refs[static_cast<int>(i)] = run.Final(data[i]);
      result.refs[static_cast<int>(i)].dims = inputs[i].dims;
    }
    if (decided) result.outputs = run.Outputs();
    held = result.refs;
    results.push_back(std::move(result));
    if (!decided) break;
  }
  return results;
}

}  // namespace npumesh::fuzz
