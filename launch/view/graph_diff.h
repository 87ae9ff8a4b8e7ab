// GraphDiff: what two graphs say differently, node by node.
#ifndef NPUMESH_LAUNCH_VIEW_GRAPH_DIFF_H_
#define NPUMESH_LAUNCH_VIEW_GRAPH_DIFF_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

struct NodeDifference {
  std::string node;
  std::string type;  // in the first graph that has it
  std::string text;  // "value is 0.4, there 0.353553"; several are joined by "; "
};

struct GraphDiff {
  size_t nodes_here = 0;
  size_t nodes_there = 0;
  size_t common = 0;  // nodes of equal names
  std::vector<NodeDifference> differences;
};

// Nodes of equal names in graphs of equal places (main, or of equal names) are compared: operator,
// attributes with their defaults, inputs, types, and the elements of weights. What changes nothing
// that is computed is not. Weights that cannot be read differ.
GraphDiff DiffGraphs(const Model& here, const Model& there, const OpRegistry& registry);

// A line for each node that differs, and one that counts them. `here` and `there` name the files.
std::string ToText(const GraphDiff& diff, const std::string& here, const std::string& there);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_GRAPH_DIFF_H_
