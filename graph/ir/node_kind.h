// Nodes that are the frame of a graph rather than operators: inputs, weights and ends, by their GE
// types.
#ifndef NPUMESH_GRAPH_IR_NODE_KIND_H_
#define NPUMESH_GRAPH_IR_NODE_KIND_H_

#include <string_view>

#include "graph/ir/graph.h"

namespace npumesh {

// The ends of a graph.
inline constexpr std::string_view kDataNode = "Data";
inline constexpr std::string_view kRefDataNode = "RefData";
inline constexpr std::string_view kNetOutputNode = "NetOutput";

// An input that its caller feeds.
inline bool IsData(const Node& node) {
  return node.type == kDataNode;
}
// An input that is updated in place and keeps its content from step to step.
inline bool IsRefData(const Node& node) {
  return node.type == kRefDataNode;
}
inline bool IsInputNode(const Node& node) {
  return IsData(node) || IsRefData(node);
}

// A weight whose bytes lie in a file of their own.
inline bool IsFileConstant(const Node& node) {
  return node.type == "FileConstant";
}
inline bool IsWeightNode(const Node& node) {
  return node.type == "Const" || node.type == "Constant" || IsFileConstant(node);
}

inline bool IsNetOutput(const Node& node) {
  return node.type == kNetOutputNode;
}

// By type, as dumps name it too: an input or the output.
inline bool IsGraphEnd(std::string_view type) {
  return type == kDataNode || type == kRefDataNode || type == kNetOutputNode;
}

// Nodes that are not looked up in the registry. NoOp only joins control edges.
inline bool IsFurniture(const Node& node) {
  return IsInputNode(node) || IsWeightNode(node) || IsNetOutput(node) || node.type == "NoOp";
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IR_NODE_KIND_H_
