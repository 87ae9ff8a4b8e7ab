// Do the graphs of all ranks say the same, where they may be expected to?
//
// The ranks of one model have graphs of one form whose weights are different shards. What else
// differs is told: the value of an attribute or of a literal, an operator, an input. Some of it
// depends on the rank rightly, and must not be told: the rank's number and its groups, offsets and
// sizes of its part, values that every rank has for itself. So
// - truth values, texts and data types are told whenever they differ, floats when they are no
//   integers and the ranks do not all differ, integers when one rank, or a quarter of them,
//   deviates from all others and all shards have equal shapes;
// - graphs of another form are told when nearly all of it is the same; stages of a pipeline are not
//   compared.
#ifndef NPUMESH_GRAPH_EXPORT_GRAPH_MATCH_H_
#define NPUMESH_GRAPH_EXPORT_GRAPH_MATCH_H_

#include <map>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// What is compared of one node. Large constants are not: they are shards.
struct NodePortrait {
  std::string name;
  std::string type;
  std::vector<std::string> inputs;         // "node:port", empty for an absent one
  std::map<std::string, AttrValue> attrs;  // of the schema, absent ones by their defaults
  bool collective = false;
};

// What is compared of a rank's graphs; small beside them.
struct GraphPortrait {
  std::vector<NodePortrait> nodes;  // of the main graph, then of subgraphs
  std::vector<std::string> shapes;  // of inputs and weights
};
GraphPortrait PortraitOf(const Model& model, const OpRegistry& registry);

struct GraphMismatch {
  int rank = 0;      // whose graph deviates
  std::string text;  // node, what, on which ranks
};

// `portraits` by world rank. At most `most` mismatches, in node order; one more line counts the
// rest.
std::vector<GraphMismatch> MatchGraphs(const std::vector<GraphPortrait>& portraits,
                                       size_t most = 16);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_GRAPH_MATCH_H_
