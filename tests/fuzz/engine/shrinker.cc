#include "tests/fuzz/engine/shrinker.h"

#include <algorithm>
#include <map>
#include <set>

#include "tests/fuzz/engine/interpreter.h"

namespace npumesh::fuzz {
namespace {

// The graph without what nothing hangs on: nodes whose outputs are unused are dropped one by one
// by their own attempts, so only tombstones have to go.
Graph Compacted(const Graph& graph) {
  Graph made(graph.name());
  std::map<NodeId, NodeId> moved;
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    moved[node.id] = static_cast<NodeId>(moved.size());
  }
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    Node copy = node;
    for (std::optional<Value>& input : copy.inputs) {
      if (input) input->node = moved.at(input->node);
    }
    for (NodeId& control : copy.controls) control = moved.at(control);
    if (!made.Add(std::move(copy)).ok()) return graph;
  }
  return made;
}

bool IsRead(const Graph& graph, NodeId id) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const auto& input) { return input && input->node == id; });
  });
}

void DropControls(Graph& graph, NodeId from) {
  for (const Node& node : graph.nodes()) {
    std::vector<NodeId>& controls = graph.node(node.id).controls;
    controls.erase(std::remove(controls.begin(), controls.end(), from), controls.end());
  }
}

class Shrinking {
 public:
  Shrinking(FuzzCase failing, const StillFails& fails, int most_asked)
      : best_(std::move(failing)), fails_(fails), left_(most_asked) {}

  FuzzCase Run() {
    for (bool smaller = true; smaller && left_ > 0;) {
      smaller = DropSteps();
      smaller = DropOutputs() || smaller;
      smaller = DropControlEdges() || smaller;
      smaller = DropNodes() || smaller;
      smaller = DropInputs() || smaller;
      smaller = ShrinkDims() || smaller;
    }
    return best_;
  }

 private:
  // Keeps `smaller` when it is legal and still fails.
  bool Try(FuzzCase smaller) {
    if (left_ <= 0 || smaller.steps.empty() || !smaller.model.graph.Verify().ok()) return false;
    const std::vector<StepResult> plain = Interpret(smaller);
    if (plain.back().meaning == Meaning::kIllegal) return false;
    --left_;
    if (!fails_(smaller)) return false;
    best_ = std::move(smaller);
    return true;
  }

  bool DropSteps() {
    bool any = false;
    while (best_.steps.size() > 1) {
      FuzzCase smaller = best_;
      smaller.steps.pop_back();
      if (!Try(std::move(smaller))) break;
      any = true;
    }
    return any;
  }

  bool DropOutputs() {
    bool any = false;
    for (size_t i = Sink().inputs.size(); i-- > 0;) {
      if (Sink().inputs.size() == 1) break;
      FuzzCase smaller = best_;
      Node& sink = smaller.model.graph.node(smaller.model.graph.NetOutput());
      sink.inputs.erase(sink.inputs.begin() + static_cast<std::ptrdiff_t>(i));
      sink.input_descs.erase(sink.input_descs.begin() + static_cast<std::ptrdiff_t>(i));
      any = Try(std::move(smaller)) || any;
    }
    return any;
  }

  bool DropControlEdges() {
    bool any = false;
    for (size_t id = 0; id < best_.model.graph.nodes().size(); ++id) {
      const auto node = static_cast<NodeId>(id);
      for (size_t i = best_.model.graph.node(node).controls.size(); i-- > 0;) {
        FuzzCase smaller = best_;
        std::vector<NodeId>& controls = smaller.model.graph.node(node).controls;
        controls.erase(controls.begin() + static_cast<std::ptrdiff_t>(i));
        any = Try(std::move(smaller)) || any;
      }
    }
    return any;
  }

  // From the back, so that readers go before what they read.
  bool DropNodes() {
    bool any = false;
    for (size_t id = best_.model.graph.nodes().size(); id-- > 0;) {
      if (id >= best_.model.graph.nodes().size()) continue;
      const auto node = static_cast<NodeId>(id);
      const std::string& type = best_.model.graph.node(node).type;
      if (type == "NetOutput" || type == "Data" || type == "RefData") continue;
      any = DropNode(node) || any;
    }
    return any;
  }

  bool DropNode(NodeId id) {
    if (!IsRead(best_.model.graph, id)) return TryWithout(id, best_);
    if (best_.model.graph.node(id).type == "Const") return false;
    return TryFirstInput(id) || TryConstant(id);
  }

  bool TryWithout(NodeId id, FuzzCase smaller) {
    DropControls(smaller.model.graph, id);
    smaller.model.graph.Remove(id);
    smaller.model.graph = Compacted(smaller.model.graph);
    return Try(std::move(smaller));
  }

  // Readers read what the node read.
  bool TryFirstInput(NodeId id) {
    const Node& node = best_.model.graph.node(id);
    if (node.output_descs.size() != 1) return false;
    for (const std::optional<Value>& input : node.inputs) {
      if (!input) continue;
      FuzzCase smaller = best_;
      smaller.model.graph.ReplaceUses({id, 0}, *input);
      if (TryWithout(id, std::move(smaller))) return true;
    }
    return false;
  }

  // A constant of the value that the first step computes alone takes the place of the node.
  bool TryConstant(NodeId id) {
    if (best_.model.graph.node(id).output_descs.size() != 1) return false;
    FuzzCase probe = best_;
    Node& sink = probe.model.graph.node(probe.model.graph.NetOutput());
    sink.inputs.assign(1, Value{id, 0});
    sink.input_descs.resize(1);
    probe.steps.resize(1);
    const std::vector<StepResult> seen = Interpret(probe);
    if (seen[0].meaning != Meaning::kDecided || seen[0].outputs.empty()) return false;
    FuzzCase smaller = best_;
    Node& node = smaller.model.graph.node(id);
    node.type = "Const";
    node.attrs = {{"value", AttrValue::Value(ToTensor(seen[0].outputs[0]))}};
    node.inputs.clear();
    node.input_descs.clear();
    node.controls.clear();
    node.subgraphs.clear();
    return Try(std::move(smaller));
  }

  bool DropInputs() {
    bool any = false;
    for (size_t position = best_.model.graph.DataNodes().size(); position-- > 0;) {
      const NodeId id = best_.model.graph.DataNodes()[position];
      if (IsRead(best_.model.graph, id)) continue;
      FuzzCase smaller = best_;
      const auto at = static_cast<std::ptrdiff_t>(position);
      for (std::vector<Tensor>& fed : smaller.steps) fed.erase(fed.begin() + at);
      std::vector<int> parameters;
      for (const int parameter : smaller.parameters) {
        if (parameter != at) parameters.push_back(parameter - (parameter > at ? 1 : 0));
      }
      smaller.parameters = parameters;
      any = TryWithout(id, std::move(smaller)) || any;
    }
    return any;
  }

  // Every extent of one size becomes a smaller one, wherever it stands.
  bool ShrinkDims() {
    bool any = false;
    for (int64_t extent = 14; extent > 1; --extent) {
      for (int64_t smaller = 1; smaller < extent; ++smaller) {
        if (!Has(extent)) break;
        if (!TryExtent(extent, smaller)) continue;
        any = true;
        break;
      }
    }
    return any;
  }

  bool Has(int64_t extent) const {
    for (const Tensor& fed : best_.steps[0]) {
      const Extents& dims = fed.shape().dims();
      if (std::count(dims.begin(), dims.end(), extent) > 0) return true;
    }
    return false;
  }

  bool TryExtent(int64_t from, int64_t to) {
    FuzzCase smaller = best_;
    std::map<const std::byte*, Tensor> known;  // parameters stay one tensor
    for (std::vector<Tensor>& fed : smaller.steps) {
      for (Tensor& tensor : fed) {
        if (tensor.dtype() == DataType::kUndefined) continue;
        const auto found = known.find(tensor.data());
        Tensor cut = found != known.end() ? found->second : Cut(tensor, from, to);
        if (tensor.data() != nullptr) known.emplace(tensor.data(), cut);
        tensor = std::move(cut);
      }
    }
    for (const Node& node : best_.model.graph.nodes()) {
      Node& changed = smaller.model.graph.node(node.id);
      if (node.type == "Const") {
        PlainTensor value = FromTensor(Cut(ToTensor(ConstantOf(node)), from, to));
        if (value.rank() == 1 && IsWholeType(value.dtype)) {
          std::replace(value.v.begin(), value.v.end(), Number(from), Number(to));
        }
        changed.attrs["value"] = AttrValue::Value(ToTensor(value));
      }
      ReplaceExtent(changed.input_descs, from, to);
      ReplaceExtent(changed.output_descs, from, to);
    }
    return Try(std::move(smaller));
  }

  static void ReplaceExtent(std::vector<TensorDesc>& descs, int64_t from, int64_t to) {
    for (TensorDesc& desc : descs) {
      if (!desc.shape) continue;
      Extents dims = desc.shape->dims();
      std::replace(dims.begin(), dims.end(), from, to);
      desc.shape = Shape(dims);
    }
  }

  static Tensor Cut(const Tensor& tensor, int64_t from, int64_t to) {
    const PlainTensor x = FromTensor(tensor);
    Extents dims = x.dims;
    std::replace(dims.begin(), dims.end(), from, to);
    const Extents strides = StridesOf(x.dims);
    return ToTensor(Arranged(x, dims, [&](const Extents& at) { return OffsetOf(at, strides); }));
  }

  const Node& Sink() const { return best_.model.graph.node(best_.model.graph.NetOutput()); }

  FuzzCase best_;
  const StillFails& fails_;
  int left_;
};

}  // namespace

FuzzCase Shrink(FuzzCase failing, const StillFails& fails, int most_asked) {
  return Shrinking(std::move(failing), fails, most_asked).Run();
}

}  // namespace npumesh::fuzz
