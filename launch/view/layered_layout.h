// A drawing of a graph in layers: every edge points down, and few edges cross (Sugiyama, Tagawa,
// Toda 1981: longest-path layers, then barycenter sweeps).
#ifndef NPUMESH_LAUNCH_VIEW_LAYERED_LAYOUT_H_
#define NPUMESH_LAUNCH_VIEW_LAYERED_LAYOUT_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

enum class BoxKind { kInput, kOutput, kCollective, kUnknown, kOperator };

// One drawn node. Lengths in pixels, y grows downwards, (x, y) is the upper left corner.
struct Box {
  NodeId node = kNoNode;
  BoxKind kind = BoxKind::kOperator;
  std::string title;     // operator type
  std::string subtitle;  // node name, and how many parameters feed it
  std::string mark;      // a style class more, for pages that point something out
  std::string note;      // another line of the tooltip
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

struct Edge {
  size_t from = 0;  // index of a box
  size_t to = 0;
  bool control = false;
  std::string label;  // "Add:0 -> x1"
};

struct Drawing {
  std::vector<Box> boxes;
  std::vector<Edge> edges;
  double width = 0;
  double height = 0;
};

// Draws all nodes except parameters, which would hide the flow. Error: kCorrupt for a cycle.
Result<Drawing> LayOut(const Graph& graph, const OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_LAYERED_LAYOUT_H_
