// SingleOperator: one operator with the descriptions of its tensors, as programs call it (aclop*)
// and as atc's --singleop makes models of it, and the graph that computes it.
#ifndef NPUMESH_GRAPH_OFFLINE_SINGLE_OPERATOR_H_
#define NPUMESH_GRAPH_OFFLINE_SINGLE_OPERATOR_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

struct OperatorTensor {
  TensorType type;  // dtype kUndefined: an optional tensor that is absent. -1: open dimensions
  std::string layout = "ND";
  // Of a private layout: the shape without padding; `type` is what lies in memory.
  Shape origin_shape;
  std::string origin_layout;  // empty: ND or NCHW
  std::string name;           // of an element of a list "x0", "x1"; otherwise free, may be empty
  std::string list;           // the dynamic port that it belongs to; empty: its place or name says
  Tensor value;               // a constant; default Tensor: each run brings it

  bool absent() const { return type.dtype == DataType::kUndefined; }
  bool constant() const { return value.dtype() != DataType::kUndefined; }
};

// Inputs and outputs stand in the order of the operator's ports; trailing optional ones may be
// left out.
struct SingleOperator {
  std::string type;
  std::vector<OperatorTensor> inputs;
  std::vector<OperatorTensor> outputs;
  AttrMap attrs;
};

struct OperatorGraph {
  Model model;
  std::vector<size_t> inputs;   // which of the operator's are inputs of the graph, in its order
  std::vector<size_t> outputs;  // which are outputs
};

// The graph with this operator alone. Errors: kUnsupported for a type that `registry` does not
// have, with similar names; kInvalidArgument for tensors that do not fit the ports, which it names.
Result<OperatorGraph> GraphOf(const SingleOperator& single, const OpRegistry& registry);

// Whether `made`, a graph of GraphOf that may have open dimensions, computes what `wanted`, another
// one, does: the same operator, attributes and constants, and types that fit.
bool Serves(const Model& made, const Model& wanted, const OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OFFLINE_SINGLE_OPERATOR_H_
