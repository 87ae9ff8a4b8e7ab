// GraphEmitter: writes nodes of ours and knows, while it does, the types of all values and the
// small values that constants decide.
//
// Mistakes are remembered: after the first one everything written is ignored, and Finish reports
// it. So a translation reads without error handling; what depends on a type asks `ok()` first.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ONNX_GRAPH_EMITTER_H_
#define NPUMESH_GRAPH_ONNX_GRAPH_EMITTER_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/graph_builder.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// An attribute of a node; a data type as the int that older producers write.
struct NodeAttr : GraphBuilder::Attr {
  NodeAttr(std::string name, AttrValue value) : pair(std::move(name), std::move(value)) {}
  NodeAttr(std::string name, bool value) : NodeAttr(std::move(name), AttrValue::Bool(value)) {}
  NodeAttr(std::string name, int64_t value) : NodeAttr(std::move(name), AttrValue::Int(value)) {}
  NodeAttr(std::string name, int value) : NodeAttr(std::move(name), int64_t{value}) {}
  NodeAttr(std::string name, DataType value)
      : NodeAttr(std::move(name), static_cast<int64_t>(value)) {}
  NodeAttr(std::string name, float value) : NodeAttr(std::move(name), AttrValue::Float(value)) {}
  NodeAttr(std::string name, std::string value)
      : NodeAttr(std::move(name), AttrValue::String(std::move(value))) {}
  NodeAttr(std::string name, const char* value) : NodeAttr(std::move(name), std::string(value)) {}
  NodeAttr(std::string name, std::vector<int64_t> value)
      : NodeAttr(std::move(name), AttrValue::Ints(std::move(value))) {}
};

class GraphEmitter {
 public:
  // What a node reads, in the order of its operator's ports; nullopt: nothing. A list of tensors
  // takes what the ports after it leave, and has no gaps.
  using Inputs = std::vector<std::optional<Value>>;
  using Attrs = std::vector<NodeAttr>;

  // `registry` must outlive the emitter.
  GraphEmitter(std::string name, const OpRegistry& registry);

  const std::string& name() const { return name_; }
  const OpRegistry& registry() const { return registry_; }

  // Fails for a type with more elements than can be counted.
  Value Data(std::string name, const TensorType& type);
  Value Const(const Tensor& value, std::string name = {});
  // A node of any type; returns its output 0. Its output types are inferred, and its values
  // computed when all of its inputs are known and the results are small. Errors: the operator has
  // no port for an input; it refuses its inputs.
  Value Op(const std::string& type, const Inputs& inputs, const Attrs& attrs, std::string name,
           int outputs = 1);
  // A node that runs the graphs of `models`; the types of its outputs are `types`.
  Value Call(const std::string& type, const Inputs& inputs, std::vector<Model> models,
             std::string name, const std::vector<TensorType>& types);

  // dtype kUndefined and unknown rank where nothing is known.
  const TensorType& type(Value value) const;
  // The value where constants decide it and it is small; otherwise null.
  const Tensor* constant(Value value) const;
  // "\"z\" (If)": the node that makes `value`, for messages.
  std::string NameOf(Value value) const;
  // Why the type of `value` is not known: "the type of "z" (If) is not known before ..". REQUIRES:
  // it is kUndefined.
  std::string WhyUnknown(Value value) const;
  // The value of a constant of any size; null: the value is made by a node.
  const Tensor* stored(Value value) const;
  // The node that makes `value`; null: none does yet.
  const Node* maker(Value value) const {
    return value.node < 0 ? nullptr : &builder_.graph().node(value.node);
  }
  // Tells what inference cannot see; what is known already stays.
  void Hint(Value value, const TensorType& type);

  bool ok() const { return failure_.ok(); }
  const Status& failure() const { return failure_; }
  // Remembers a mistake, unless there is one already.
  void Fail(const Status& failure);
  // The mistake, which is forgotten: the next nodes are written again.
  Status TakeFailure();
  // From now on a node that refuses its inputs stays in the graph, which fails there when it runs.
  // TakeFailure gives Unsaid() (mistakes.h) for it, and these have the first such node and what all
  // of them said.
  void KeepMisfits() { keeps_misfits_ = true; }
  const std::optional<Value>& misfit() const { return misfit_; }
  const std::vector<Status>& misfits() const { return misfits_; }
  // Puts "`who`: " before the mistake, unless it names a place already.
  void AddContext(const std::string& who);

  // The graph with these outputs; the emitter is empty afterwards.
  Result<Model> Finish(const std::vector<Value>& outputs);

 private:
  struct Known {
    std::vector<TensorType> types;  // by port
    std::vector<Tensor> constants;  // by port, or empty
    // Of output 0: sizes of a shape, -1 for an open one, on their way through nodes that move
    // elements.
    std::optional<Tensor> sizes;
    std::optional<Tensor> stored;  // of a constant
  };
  Known& Remember(Value value, std::vector<TensorType> types);
  void DeclareTypes(Value value);
  // A node whose inputs have the names of the operator's ports. Errors: there are too many; one of
  // a list is left out.
  Value Write(const Operator& op, const Inputs& inputs, const Attrs& attrs, std::string name,
              int outputs);
  Status Infer(const Node& node, const Operator& op, Known& known);
  // Where inputs have no rank, or values that decide shapes are not known: the dtypes of the
  // outputs, which do not hang on them, by the first shapes of equal sizes and values of equal
  // elements that the operator accepts.
  void InferDtypes(const Operator& op, const OpContext& context, Known& known) const;
  void Fold(const Operator& op, OpContext context, Known& known) const;
  // What is known of sizes that the node hands on, where some of them are open.
  void FoldSizes(const Node& node, const Operator& op, OpContext context, Known& known) const;

  std::string name_;
  const OpRegistry& registry_;
  GraphBuilder builder_;
  std::vector<Known> known_;  // by node id
  Status failure_;
  bool placed_ = false;  // the failure names the node of the file
  bool keeps_misfits_ = false;
  bool fits_not_ = false;  // the failure is that of a misfit
  std::optional<Value> misfit_;
  std::vector<Status> misfits_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_GRAPH_EMITTER_H_
