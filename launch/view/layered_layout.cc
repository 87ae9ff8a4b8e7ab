#include "launch/view/layered_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {
namespace {

constexpr double kCharWidth = 7;
constexpr double kBoxHeight = 38;
constexpr double kPadding = 12;
constexpr double kGapX = 24;
constexpr double kGapY = 46;
constexpr double kMargin = 20;
constexpr int kSweeps = 6;
constexpr size_t kMostSubtitle = 36;

BoxKind KindOf(const Node& node, const OpRegistry& registry) {
  if (IsInputNode(node)) return BoxKind::kInput;
  if (IsNetOutput(node)) return BoxKind::kOutput;
  const Operator* op = registry.Find(node.type);
  if (op == nullptr) return IsFurniture(node) ? BoxKind::kOperator : BoxKind::kUnknown;
  return op->collective ? BoxKind::kCollective : BoxKind::kOperator;
}

std::string Subtitle(const Graph& graph, const Node& node) {
  const auto parameters =
      std::count_if(node.inputs.begin(), node.inputs.end(), [&](const std::optional<Value>& input) {
        return input && IsWeightNode(graph.node(input->node));
      });
  std::string text = node.name;
  if (text.size() > kMostSubtitle) text = ".." + text.substr(text.size() - kMostSubtitle + 2);
  if (parameters > 0) text += fmt::format(" +{}p", parameters);
  return text;
}

class Layout {
 public:
  Layout(const Graph& graph, const OpRegistry& registry) : graph_(graph), registry_(registry) {}

  Result<Drawing> Run() {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.StableOrder());
    AddBoxes(order);
    AddEdges();
    AssignLayers();
    for (int sweep = 0; sweep < kSweeps; ++sweep) Sweep(sweep % 2 == 0);
    Place();
    return std::move(drawing_);
  }

 private:
  void AddBoxes(const std::vector<NodeId>& order) {
    box_of_.assign(graph_.nodes().size(), kNone);
    for (const NodeId id : order) {
      const Node& node = graph_.node(id);
      if (node.removed || IsWeightNode(node)) continue;
      Box box{id, KindOf(node, registry_), node.type, Subtitle(graph_, node)};
      const size_t longest = std::max(box.title.size(), box.subtitle.size());
      box.width = kCharWidth * static_cast<double>(longest) + 2 * kPadding;
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
    drawing_.edges.push_back({box, to, control, std::move(label)});
  }

  // Boxes stand in topological order, so one pass finds the longest path to each.
  void AssignLayers() {
    layer_of_.assign(drawing_.boxes.size(), 0);
    above_.resize(drawing_.boxes.size());
    below_.resize(drawing_.boxes.size());
    for (const Edge& edge : drawing_.edges) {  // sorted by `to`
      layer_of_[edge.to] = std::max(layer_of_[edge.to], layer_of_[edge.from] + 1);
      above_[edge.to].push_back(edge.from);
      below_[edge.from].push_back(edge.to);
    }
    const size_t layers =
        drawing_.boxes.empty() ? 0 : *std::max_element(layer_of_.begin(), layer_of_.end()) + 1;
    layers_.resize(layers);
    for (size_t box = 0; box < drawing_.boxes.size(); ++box) {
      layers_[layer_of_[box]].push_back(box);
    }
    place_in_layer_.resize(drawing_.boxes.size());
    for (const auto& layer : layers_) Number(layer);
  }

  void Number(const std::vector<size_t>& layer) {
    for (size_t i = 0; i < layer.size(); ++i) {
      place_in_layer_[layer[i]] =
          (static_cast<double>(i) + 0.5) / static_cast<double>(layer.size());
    }
  }

  // Sorts each layer by the mean place of its neighbours in the layers before (or after) it.
  void Sweep(bool down) {
    for (size_t step = 0; step < layers_.size(); ++step) {
      std::vector<size_t>& layer = layers_[down ? step : layers_.size() - 1 - step];
      std::vector<double> wanted(drawing_.boxes.size());
      for (const size_t box : layer) {
        const std::vector<size_t>& neighbours = down ? above_[box] : below_[box];
        double sum = 0;
        for (const size_t neighbour : neighbours) sum += place_in_layer_[neighbour];
        wanted[box] = neighbours.empty() ? place_in_layer_[box]
                                         : sum / static_cast<double>(neighbours.size());
      }
      std::stable_sort(layer.begin(), layer.end(),
                       [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
      Number(layer);
    }
  }

  double WidthOf(const std::vector<size_t>& layer) const {
    double width = kGapX * static_cast<double>(layer.size() - 1);
    for (const size_t box : layer) width += drawing_.boxes[box].width;
    return width;
  }

  void Place() {
    double widest = 0;
    for (const auto& layer : layers_) widest = std::max(widest, WidthOf(layer));
    double y = kMargin;
    for (const auto& layer : layers_) {
      double x = kMargin + (widest - WidthOf(layer)) / 2;
      for (const size_t box : layer) {
        drawing_.boxes[box].x = x;
        drawing_.boxes[box].y = y;
        x += drawing_.boxes[box].width + kGapX;
      }
      y += kBoxHeight + kGapY;
    }
    drawing_.width = widest + 2 * kMargin;
    drawing_.height = y - kGapY + kMargin;
  }

  static constexpr size_t kNone = static_cast<size_t>(-1);
  const Graph& graph_;
  const OpRegistry& registry_;
  Drawing drawing_;
  std::vector<size_t> box_of_;  // by node
  std::vector<size_t> layer_of_;
  std::vector<std::vector<size_t>> above_, below_, layers_;
  std::vector<double> place_in_layer_;  // in (0, 1)
};

}  // namespace

Result<Drawing> LayOut(const Graph& graph, const OpRegistry& registry) {
  return Layout(graph, registry).Run();
}

}  // namespace npumesh
