// A drawing of a graph in layers: every edge points down, no edge runs behind a box, and few edges
// cross (Sugiyama, Tagawa, Toda 1981: longest-path layers, one bend for each layer that an edge
// passes, barycenter sweeps). A longest path is one straight column.
#ifndef NPUMESH_LAUNCH_VIEW_LAYERED_LAYOUT_H_
#define NPUMESH_LAUNCH_VIEW_LAYERED_LAYOUT_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

enum class BoxKind { kInput, kOutput, kCollective, kUnknown, kOperator, kFolded };

// One drawn node. Lengths in pixels, y grows downwards, (x, y) is the upper left corner.
struct Box {
  NodeId node = kNoNode;
  BoxKind kind = BoxKind::kOperator;
  std::string title;     // operator type
  std::string subtitle;  // node name and how many weights feed it; empty: as the type
  // What stands below the box, on the edges that leave it: types of its outputs, as far as the
  // graph says them; more than kMostOutputLines end with "...".
  std::vector<std::string> outputs;
  bool dead = false;  // nothing needs it
  std::string mark;   // a style class more, for pages that point something out
  std::string note;   // another line of the tooltip
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

inline constexpr size_t kMostOutputLines = 2;

struct Point {
  double x = 0;
  double y = 0;
};

struct Edge {
  size_t from = 0;  // index of a box
  size_t to = 0;
  bool control = false;
  std::string label;  // "Add:0 -> x1"
  // From the lower side of `from` to the upper side of `to`. Odd lines lie in the gap between two
  // layers, even ones run straight down through a layer, where no box stands.
  std::vector<Point> route;
  // Edges of one box share their way down. What comes before this point of the route, an even one,
  // another edge draws.
  size_t branch = 0;
};

struct Drawing {
  std::string title;  // above it, when there are several
  std::vector<Box> boxes;
  std::vector<Edge> edges;
  double width = 0;
  double height = 0;
};

// "operator", "folded": the style class of a kind of box.
std::string_view Name(BoxKind kind);

// Draws all nodes that `shown` holds for (null: all) except weights, which would hide the flow.
// What only weights feed stands near its reader. Error: kCorrupt for a cycle.
Result<Drawing> LayOut(const Graph& graph, const OpRegistry& registry,
                       const std::function<bool(NodeId)>& shown = nullptr);

// The main graph, then each subgraph that a node has as its body, with that node's name as title.
// `fold`: repeated stretches of operators are one box each (fold_repeats.h). Error: kCorrupt for a
// cycle.
Result<std::vector<Drawing>> LayOutModel(const Model& model, const OpRegistry& registry,
                                         bool fold = true);

// The width that a box needs for its texts.
double WidthFor(const Box& box);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_LAYERED_LAYOUT_H_
