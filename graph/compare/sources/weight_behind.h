// The weight behind an input of an operator, through what is computed from it before a graph runs.
#ifndef NPUMESH_GRAPH_COMPARE_SOURCES_WEIGHT_BEHIND_H_
#define NPUMESH_GRAPH_COMPARE_SOURCES_WEIGHT_BEHIND_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace npumesh {

// Follows first inputs from `value` to a Const or FileConstant. Null: it is not known before the
// graph runs. `constant`: as ConstantNodes (replay.h).
const Node* WeightBehind(const Graph& graph, const std::vector<bool>& constant, Value value);

// The file of a weight as people know it: "rank_2/arg7_1", the last two parts of a relative path.
// Empty: its bytes are in the graph.
std::string WeightFileName(const Node& weight);

// "arg7_1 (rank_2/arg7_1)".
std::string WeightText(const Node& weight);

// The node of an operator's key, or null.
const Node* FindByKey(const Graph& graph, const std::string& key);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_SOURCES_WEIGHT_BEHIND_H_
