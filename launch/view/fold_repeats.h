// Folds the layers of a model that repeat: the first of them stays, and one node stands for the
// others.
#ifndef NPUMESH_LAUNCH_VIEW_FOLD_REPEATS_H_
#define NPUMESH_LAUNCH_VIEW_FOLD_REPEATS_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"

namespace npumesh {

// The type of a node that stands for others. Its name says how many and which:
// "layers 1 .. 23: 38 operators each, as above".
inline constexpr std::string_view kFoldedType = "(repeats)";

struct FoldedStretch {
  std::string node;          // in the folded graph
  std::vector<NodeId> like;  // in the whole graph: the operators that are shown
  size_t copies = 0;         // that are folded
};

struct FoldedGraph {
  Graph graph;
  std::vector<FoldedStretch> stretches;
};

// `graph` with stretches of operators that follow each other at least three times folded. Copies
// are alike in the types of their operators and in what these read of the copy and of the one
// before. Without such stretches it is a copy. Error: kCorrupt for a cycle.
Result<FoldedGraph> FoldRepeats(const Graph& graph);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_FOLD_REPEATS_H_
