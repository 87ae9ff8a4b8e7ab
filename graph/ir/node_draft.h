// NodeDraft: a node as it is written down, before a graph has it.
//
//   Node cast = MakeNode({.type = "Cast", .name = name, .inputs = {{"x", value}},
//                         .attrs = {{"dst_type", AttrValue::Type(dtype)}}});
//
// Thread-safety: may be called by several threads.
#ifndef NPUMESH_GRAPH_IR_NODE_DRAFT_H_
#define NPUMESH_GRAPH_IR_NODE_DRAFT_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"

namespace npumesh {

struct NodeDraft {
  std::string type;
  std::string name;
  std::vector<std::pair<std::string, Value>> inputs = {};  // by port
  std::vector<std::pair<std::string, AttrValue>> attrs = {};
  std::vector<std::string> outputs = {"y"};
  DataType dtype = DataType::kUndefined;  // of the outputs, where it is known
};

// Descriptors say no more than the draft does: inference decides types.
Node MakeNode(NodeDraft draft);

Node MakeConst(std::string name, const Tensor& value);

// `base`, or `base`_1, `base`_2 .. where nodes of `graph` have these names.
std::string FreshName(const Graph& graph, std::string_view base);

// One more input, whose descriptor starts as a copy of its producer's, as TorchAir writes graphs.
// REQUIRES: the producer is a node of `graph`.
void AddInput(const Graph& graph, std::string port, Value value, Node& node);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IR_NODE_DRAFT_H_
