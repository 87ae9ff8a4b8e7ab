// GraphScope: the names of one ONNX graph, and the walk over its nodes.
//
// The body of a branch or loop is a separate graph for us; what it reads of the graphs around it
// becomes an input of it (a capture). The body of a function is written where it is called.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ONNX_GRAPH_SCOPE_H_
#define NPUMESH_GRAPH_ONNX_GRAPH_SCOPE_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/onnx/graph_emitter.h"
#include "graph/onnx/lowering.h"
#include "graph/onnx/onnx_model.h"

namespace npumesh {

class GraphScope {
 public:
  // A value of the graph around, and the input that stands for it in this one.
  struct Capture {
    Value outer;
    Value inner;
  };

  // A separate graph, called `name`, that sees the names of `outer`, or null. All must outlive
  // the scope.
  GraphScope(const OnnxModel& model, const OpRegistry& registry, GraphScope* outer,
             std::string name);
  // A subgraph of `outer`.
  GraphScope(GraphScope& outer, std::string name)
      : GraphScope(outer.model_, outer.registry_, &outer, std::move(name)) {}
  // Nodes that are written into the graph of `host`; they see its names if `sees_host`.
  GraphScope(GraphScope& host, bool sees_host);

  GraphEmitter& emitter() { return *emitter_; }
  const OnnxModel& model() const { return model_; }
  // Operator sets of the nodes: those of the model, or of the function.
  void set_opsets(const std::map<std::string, int64_t>& opsets) { opsets_ = &opsets; }

  void Define(const std::string& name, OnnxValue value) { values_[name] = std::move(value); }
  // What a name stands for; nullopt: nothing that was made until now.
  std::optional<OnnxValue> Find(const std::string& name);
  // The value in this graph that stands for a value of the graph around.
  Value CaptureOf(Value outer);
  // The same, but an input also for a constant.
  Value CaptureInput(Value outer);
  const std::vector<Capture>& captures() const { return captures_; }

  // `name` could not be made, and a mistake says why: nodes that read it are left out.
  void Break(const std::string& name) { broken_.insert(name); }

  // Initialisers and nodes of `graph`; its inputs are defined already, or have initialisers. After
  // a mistake the nodes that do not hang on it are walked as well. All mistakes.
  std::vector<Status> Mistakes(const OnnxGraph& graph);
  // The same; the emitter has all mistakes as one then.
  void Walk(const OnnxGraph& graph);
  // What the outputs of `graph` stand for. Error: one was never made.
  std::vector<OnnxValue> OutputsOf(const OnnxGraph& graph);
  // A name for a graph below node `who` that no other graph has.
  std::string GraphName(const std::string& below);

 private:
  // The graph around this one. REQUIRES: a subgraph.
  GraphEmitter& Around() { return outer_->emitter(); }
  // WalkNode, or a mistake more in `mistakes`, for which what it makes is broken.
  void TryNode(const OnnxNode& node, std::vector<Status>& mistakes);
  void WalkNode(const OnnxNode& node);
  // Whether `name` is one that could not be made.
  bool IsBroken(const std::string& name) const;
  bool ReadsBroken(const OnnxNode& node) const;
  // Error: `name` was made before.
  void DefineOutput(const OnnxNode& node, const std::string& name, OnnxValue value);
  void Call(const OnnxFunction& function, const OnnxNode& node,
            std::vector<std::optional<OnnxValue>> operands);
  const OnnxFunction* FunctionOf(const OnnxNode& node) const;
  std::vector<std::optional<OnnxValue>> OperandsOf(const OnnxNode& node);
  // The element type of each operand that is a tensor of known type; kUndefined otherwise.
  std::vector<DataType> DtypesOf(const std::vector<std::optional<OnnxValue>>& operands) const;
  void TakeHints(const OnnxGraph& graph);
  void HintType(const std::string& name);

  const OnnxModel& model_;
  const OpRegistry& registry_;
  GraphScope* outer_;  // whose names are seen; null: none
  GraphScope* host_;   // whose graph is written into; null: a separate graph
  std::unique_ptr<GraphEmitter> own_;
  GraphEmitter* emitter_;
  const std::map<std::string, int64_t>* opsets_;
  std::map<std::string, OnnxValue> values_;    // made here
  std::map<std::string, OnnxValue> borrowed_;  // of graphs around, as they are called here
  std::set<std::string> broken_;
  std::map<std::string, const OnnxType*> hints_;
  std::vector<Capture> captures_;
  int depth_ = 0;
  std::shared_ptr<int> calls_;  // of functions that may still be put in the place of nodes
  int graphs_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_GRAPH_SCOPE_H_
