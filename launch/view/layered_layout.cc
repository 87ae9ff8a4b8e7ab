#include "launch/view/layered_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/passes/analysis/reachability.h"
#include "launch/view/fold_repeats.h"

namespace npumesh {
namespace {

constexpr double kCharWidth = 7;
constexpr double kOutputCharWidth = 6;
constexpr double kBoxHeight = 38;
constexpr double kPadding = 12;
constexpr double kGapX = 24;
constexpr double kBendGap = 8;  // beside an edge that passes a layer
constexpr double kGapY = 62;
constexpr double kMargin = 20;
constexpr int kSweeps = 6;
constexpr size_t kMostSubtitle = 36;
// Edges of more layers together run along the side of the drawing instead.
constexpr size_t kMostBends = 60'000;
// How much more a spot of the main chain stays where it is than one beside it.
constexpr double kChainWeight = 1e9;

BoxKind KindOf(const Node& node, const OpRegistry& registry) {
  if (node.type == kFoldedType) return BoxKind::kFolded;
  if (IsInputNode(node)) return BoxKind::kInput;
  if (IsNetOutput(node)) return BoxKind::kOutput;
  const Operator* op = registry.Find(node.type);
  if (op == nullptr) return IsFurniture(node) ? BoxKind::kOperator : BoxKind::kUnknown;
  return op->collective ? BoxKind::kCollective : BoxKind::kOperator;
}

std::string Subtitle(const Graph& graph, const Node& node) {
  const auto weights =
      std::count_if(node.inputs.begin(), node.inputs.end(), [&](const std::optional<Value>& input) {
        return input && IsWeightNode(graph.node(input->node));
      });
  std::string text = node.name == node.type ? "" : node.name;
  if (text.size() > kMostSubtitle) text = ".." + text.substr(text.size() - kMostSubtitle + 2);
  if (weights == 0) return text;
  return text +
         fmt::format("{}+{} weight{}", text.empty() ? "" : " ", weights, weights == 1 ? "" : "s");
}

// "layers 1 .. 23: 38 operators each, as above" fills both lines.
void NameFolded(const std::string& name, Box* box) {
  const size_t colon = name.find(": ");
  box->title = name.substr(0, colon);
  box->subtitle = colon == name.npos ? "" : name.substr(colon + 2);
  box->outputs.clear();
}

std::vector<std::string> OutputLines(const Node& node) {
  std::vector<std::string> lines;
  for (const TensorDesc& desc : node.output_descs) {
    if (!desc.shape || desc.dtype == DataType::kUndefined) continue;
    if (lines.size() == kMostOutputLines) {
      lines.back() += " ...";
      break;
    }
    lines.push_back(TensorType{desc.dtype, *desc.shape}.ToString());
  }
  return lines;
}

// Positions in a row that are next to the wanted ones by least squares, in the given order, each at
// least its distance after the one before (pool adjacent violators).
std::vector<double> Spread(const std::vector<double>& wanted, const std::vector<double>& distance,
                           const std::vector<double>& weight) {
  struct Pool {
    double sum, weight;
    size_t count;
    double mean() const { return sum / weight; }
  };
  std::vector<Pool> pools;
  double offset = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    offset += distance[i];
    pools.push_back({(wanted[i] - offset) * weight[i], weight[i], 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().weight += last.weight;
      pools.back().count += last.count;
    }
  }
  std::vector<double> placed;
  offset = 0;
  for (const Pool& pool : pools) {
    for (size_t k = 0; k < pool.count; ++k) {
      offset += distance[placed.size()];
      placed.push_back(pool.mean() + offset);
    }
  }
  return placed;
}

class Layout {
 public:
  Layout(const Graph& graph, const OpRegistry& registry, const std::function<bool(NodeId)>& shown)
      : graph_(graph), registry_(registry), shown_(shown) {}

  Result<Drawing> Run() {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.StableOrder());
    AddBoxes(order);
    AddEdges();
    AssignLayers();
    PullWeightsDown();
    AddSpots();
    FindChain();
    for (int sweep = 0; sweep < kSweeps; ++sweep) Sort(sweep % 2 == 0);
    Place();
    for (Edge& edge : drawing_.edges) Route(edge);
    FindBranches();
    return std::move(drawing_);
  }

 private:
  // A place in a layer: a box, or a bend where the edges of a box pass.
  struct Spot {
    size_t box = kNone;
    size_t layer = 0;
    double width = 0;
    double x = 0;  // of its middle
    std::vector<size_t> above, below;
    size_t chain_above = kNone;  // its neighbours in the main chain
    size_t chain_below = kNone;
  };

  void AddBoxes(const std::vector<NodeId>& order) {
    const std::vector<bool> needed = NeededNodes(BoundGraph(graph_, registry_));
    box_of_.assign(graph_.nodes().size(), kNone);
    for (const NodeId id : order) {
      const Node& node = graph_.node(id);
      if (node.removed || IsWeightNode(node) || (shown_ && !shown_(id))) continue;
      Box box{id, KindOf(node, registry_), node.type, Subtitle(graph_, node), OutputLines(node)};
      if (box.kind == BoxKind::kFolded) NameFolded(node.name, &box);
      box.dead = !needed[static_cast<size_t>(id)] && !IsInputNode(node);
      box.width = WidthFor(box);
      box.height = kBoxHeight;
      box_of_[static_cast<size_t>(id)] = drawing_.boxes.size();
      drawing_.boxes.push_back(std::move(box));
    }
  }

  void AddEdges() {
    for (size_t to = 0; to < drawing_.boxes.size(); ++to) {
      const Node& node = graph_.node(drawing_.boxes[to].node);
      for (size_t port = 0; port < node.inputs.size(); ++port) {
        const auto& input = node.inputs[port];
        if (!input) continue;
        AddEdge(input->node, to, false,
                fmt::format("{}:{} -> {}.{}", graph_.node(input->node).name, input->port, node.name,
                            node.input_descs[port].name));
      }
      for (const NodeId control : node.controls) {
        AddEdge(control, to, true,
                fmt::format("{} before {}", graph_.node(control).name, node.name));
      }
    }
  }

  void AddEdge(NodeId from, size_t to, bool control, std::string label) {
    const size_t box = box_of_[static_cast<size_t>(from)];
    if (box == kNone) return;
    drawing_.edges.push_back({box, to, control, std::move(label), {}, 0});
  }

  // Boxes stand in topological order and edges by `to`, so one pass finds the longest path to each.
  void AssignLayers() {
    layer_of_.assign(drawing_.boxes.size(), 0);
    for (const Edge& edge : drawing_.edges) {
      layer_of_[edge.to] = std::max(layer_of_[edge.to], layer_of_[edge.from] + 1);
    }
  }

  // Inputs, and what only weights feed, move down to their first reader.
  void PullWeightsDown() {
    const size_t count = drawing_.boxes.size();
    std::vector<size_t> lowest(count, kNone);
    std::vector<bool> fed(count, false);
    for (const Edge& edge : drawing_.edges) {
      if (drawing_.boxes[edge.from].kind == BoxKind::kInput || fed[edge.from]) fed[edge.to] = true;
    }
    // Edges by `to`, so from the last on all readers of a box stand where they stay.
    for (auto edge = drawing_.edges.rbegin(); edge != drawing_.edges.rend(); ++edge) {
      if (lowest[edge->to] != kNone && !fed[edge->to]) layer_of_[edge->to] = lowest[edge->to];
      lowest[edge->from] = std::min(lowest[edge->from], layer_of_[edge->to] - 1);
    }
    for (size_t box = 0; box < count; ++box) {
      if (lowest[box] != kNone && !fed[box]) layer_of_[box] = lowest[box];
    }
  }

  // A spot for each box, and a chain of bends below each box whose readers stand farther down.
  void AddSpots() {
    const size_t count = drawing_.boxes.size();
    std::vector<size_t> farthest(layer_of_);
    for (const Edge& edge : drawing_.edges) {
      farthest[edge.from] = std::max(farthest[edge.from], layer_of_[edge.to]);
    }
    for (size_t box = 0; box < count; ++box) {
      spots_.push_back({box, layer_of_[box], drawing_.boxes[box].width});
    }
    AddBends(farthest);
    for (const Edge& edge : drawing_.edges) {
      const size_t last = layer_of_[edge.to] - layer_of_[edge.from] - 1;
      if (last > 0 && bends_[edge.from].empty()) continue;
      Join(last == 0 ? edge.from : bends_[edge.from][last - 1], edge.to);
    }
    size_t layers = 0;
    for (const Spot& spot : spots_) layers = std::max(layers, spot.layer + 1);
    layers_.resize(layers);
    for (size_t spot = 0; spot < spots_.size(); ++spot) {
      layers_[spots_[spot].layer].push_back(spot);
    }
  }

  // The shortest chains first, while there is room.
  void AddBends(const std::vector<size_t>& farthest) {
    std::vector<size_t> order(drawing_.boxes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto bends = [&](size_t box) {
      return farthest[box] > layer_of_[box] ? farthest[box] - layer_of_[box] - 1 : 0;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return bends(a) < bends(b); });
    bends_.resize(drawing_.boxes.size());
    for (const size_t box : order) {
      if (spots_.size() - drawing_.boxes.size() + bends(box) > kMostBends) break;
      for (size_t k = 0; k < bends(box); ++k) {
        const size_t spot = spots_.size();
        spots_.push_back({kNone, layer_of_[box] + k + 1, 0});
        Join(k == 0 ? box : spot - 1, spot);
        bends_[box].push_back(spot);
      }
    }
  }

  // A longest path, from the last layer up. It becomes one straight column, or each layer of a
  // model would stand a little farther to the side than the one before.
  void FindChain() {
    if (layers_.empty()) return;
    size_t spot = layers_.back().front();
    for (const size_t each : layers_.back()) {
      if (spots_[each].above.size() > spots_[spot].above.size()) spot = each;
    }
    while (!spots_[spot].above.empty()) {
      const std::vector<size_t>& above = spots_[spot].above;
      const auto box = std::find_if(above.begin(), above.end(),
                                    [&](size_t each) { return spots_[each].box != kNone; });
      const size_t next = box != above.end() ? *box : above.front();
      spots_[spot].chain_above = next;
      spots_[next].chain_below = spot;
      spot = next;
    }
  }

  void Join(size_t above, size_t below) {
    spots_[above].below.push_back(below);
    spots_[below].above.push_back(above);
  }

  // Sorts each layer by the mean place of its neighbours in the layers before (or after) it.
  void Sort(bool down) {
    std::vector<double> place(spots_.size());
    const auto number = [&](const std::vector<size_t>& layer) {
      for (size_t i = 0; i < layer.size(); ++i) {
        place[layer[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(layer.size());
      }
    };
    for (const auto& layer : layers_) number(layer);
    for (size_t step = 0; step < layers_.size(); ++step) {
      std::vector<size_t>& layer = layers_[down ? step : layers_.size() - 1 - step];
      for (const size_t spot : layer) {
        place[spot] = MeanOf(down ? spots_[spot].above : spots_[spot].below, place, place[spot]);
      }
      std::stable_sort(layer.begin(), layer.end(),
                       [&](size_t a, size_t b) { return place[a] < place[b]; });
      number(layer);
    }
  }

  static double MeanOf(const std::vector<size_t>& spots, const std::vector<double>& values,
                       double none) {
    if (spots.empty()) return none;
    double sum = 0;
    for (const size_t spot : spots) sum += values[spot];
    return sum / static_cast<double>(spots.size());
  }

  // Between the middles of two neighbours.
  double DistanceOf(const Spot& left, const Spot& right) const {
    const bool boxes = left.box != kNone && right.box != kNone;
    return (left.width + right.width) / 2 + (boxes ? kGapX : kBendGap);
  }

  // Moves the spots of a layer towards their neighbours above or below.
  void Settle(const std::vector<size_t>& layer, bool down) {
    std::vector<double> wanted, distance, weight;
    for (size_t i = 0; i < layer.size(); ++i) {
      const Spot& spot = spots_[layer[i]];
      const std::vector<size_t>& neighbours = down ? spot.above : spot.below;
      distance.push_back(i == 0 ? 0 : DistanceOf(spots_[layer[i - 1]], spot));
      if (spot.chain_above != kNone || spot.chain_below != kNone) {
        const size_t next = down ? spot.chain_above : spot.chain_below;
        wanted.push_back(next == kNone ? spot.x : spots_[next].x);
        weight.push_back(kChainWeight);
        continue;
      }
      double sum = neighbours.empty() ? spot.x : 0;
      for (const size_t each : neighbours) sum += spots_[each].x;
      wanted.push_back(sum / static_cast<double>(std::max<size_t>(neighbours.size(), 1)));
      // Bends keep long edges straight.
      weight.push_back(neighbours.empty() ? 0.1 : spot.box == kNone ? 4 : 1);
    }
    const std::vector<double> placed = Spread(wanted, distance, weight);
    for (size_t i = 0; i < layer.size(); ++i) spots_[layer[i]].x = placed[i];
  }

  void Place() {
    for (const auto& layer : layers_) {
      for (size_t i = 1; i < layer.size(); ++i) {
        spots_[layer[i]].x =
            spots_[layer[i - 1]].x + DistanceOf(spots_[layer[i - 1]], spots_[layer[i]]);
      }
    }
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t step = 0; step < layers_.size(); ++step) {
        Settle(layers_[down ? step : layers_.size() - 1 - step], down);
      }
    }
    double left = 0, right = 0;
    for (size_t i = 0; i < spots_.size(); ++i) {
      left = std::min(i == 0 ? spots_[i].x : left, spots_[i].x - spots_[i].width / 2);
      right = std::max(i == 0 ? spots_[i].x : right, spots_[i].x + spots_[i].width / 2);
    }
    for (Spot& spot : spots_) {
      spot.x += kMargin - left;
      if (spot.box == kNone) continue;
      Box& box = drawing_.boxes[spot.box];
      box.x = spot.x - box.width / 2;
      box.y = TopOf(spot.layer);
    }
    drawing_.width = right - left + 2 * kMargin;
    drawing_.height = 2 * kMargin;
    // Below the last layer stand the types of its outputs.
    if (!layers_.empty()) drawing_.height = TopOf(layers_.size() - 1) + kBoxHeight + kGapY / 2;
  }

  static double TopOf(size_t layer) {
    return kMargin + static_cast<double>(layer) * (kBoxHeight + kGapY);
  }

  void Route(Edge& edge) const {
    const size_t first = layer_of_[edge.from];
    const size_t last = layer_of_[edge.to];
    edge.route.push_back({spots_[edge.from].x, TopOf(first) + kBoxHeight});
    const std::vector<size_t>& bends = bends_[edge.from];
    for (size_t layer = first + 1; layer < last; ++layer) {
      if (bends.empty()) break;
      const double x = spots_[bends[layer - first - 1]].x;
      edge.route.push_back({x, TopOf(layer)});
      edge.route.push_back({x, TopOf(layer) + kBoxHeight});
    }
    if (bends.empty() && last > first + 1) {  // along the side
      edge.route.push_back({kMargin / 2, TopOf(first + 1)});
      edge.route.push_back({kMargin / 2, TopOf(last - 1) + kBoxHeight});
    }
    edge.route.push_back({spots_[edge.to].x, TopOf(last)});
  }

  // The shorter edges of a box draw what the longer ones share with them.
  void FindBranches() {
    std::vector<Edge*> edges;
    for (Edge& edge : drawing_.edges) edges.push_back(&edge);
    std::stable_sort(edges.begin(), edges.end(), [](const Edge* a, const Edge* b) {
      return a->route.size() < b->route.size();
    });
    std::vector<size_t> drawn(drawing_.boxes.size(), 2);
    for (Edge* edge : edges) {
      if (bends_[edge->from].empty()) continue;
      edge->branch = drawn[edge->from] - 2;
      drawn[edge->from] = edge->route.size();
    }
  }

  static constexpr size_t kNone = static_cast<size_t>(-1);
  const Graph& graph_;
  const OpRegistry& registry_;
  const std::function<bool(NodeId)>& shown_;
  Drawing drawing_;
  std::vector<size_t> box_of_;              // by node
  std::vector<size_t> layer_of_;            // by box
  std::vector<Spot> spots_;                 // those of the boxes first
  std::vector<std::vector<size_t>> bends_;  // by box, from its layer down
  std::vector<std::vector<size_t>> layers_;
};

}  // namespace

double WidthFor(const Box& box) {
  double width = kCharWidth * static_cast<double>(std::max(box.title.size(), box.subtitle.size()));
  for (const std::string& line : box.outputs) {
    width = std::max(width, kOutputCharWidth * static_cast<double>(line.size()));
  }
  return width + 2 * kPadding;
}

Result<Drawing> LayOut(const Graph& graph, const OpRegistry& registry,
                       const std::function<bool(NodeId)>& shown) {
  return Layout(graph, registry, shown).Run();
}

std::string_view Name(BoxKind kind) {
  constexpr std::string_view kNames[] = {"input",   "output",   "collective",
                                         "unknown", "operator", "folded"};
  return kNames[static_cast<size_t>(kind)];
}

namespace {

Result<Drawing> LayOutFolded(const Graph& graph, const OpRegistry& registry, bool fold) {
  if (!fold) return LayOut(graph, registry);
  NPUMESH_ASSIGN_OR_RETURN(const FoldedGraph folded, FoldRepeats(graph));
  return LayOut(folded.graph, registry);
}

}  // namespace

Result<std::vector<Drawing>> LayOutModel(const Model& model, const OpRegistry& registry,
                                         bool fold) {
  NPUMESH_ASSIGN_OR_RETURN(Drawing main, LayOutFolded(model.graph, registry, fold));
  std::vector<Drawing> drawings;
  drawings.push_back(std::move(main));
  std::vector<const Graph*> graphs = {&model.graph};
  for (const Graph& graph : model.subgraphs) graphs.push_back(&graph);
  for (const Graph* graph : graphs) {
    for (const Node& node : graph->nodes()) {
      if (node.removed) continue;
      for (const std::string& name : node.subgraphs) {
        const Graph* const body = model.FindSubgraph(name);
        if (body == nullptr) continue;
        NPUMESH_ASSIGN_OR_RETURN(Drawing drawing, LayOutFolded(*body, registry, fold));
        drawing.title = fmt::format("{}, a body of {} ({})", name, node.name, node.type);
        drawings.push_back(std::move(drawing));
      }
    }
  }
  return drawings;
}

}  // namespace npumesh
