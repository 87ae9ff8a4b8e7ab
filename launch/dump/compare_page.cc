#include "launch/dump/compare_page.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/ir/node_kind.h"
#include "launch/dump/result_csv.h"
#include "launch/page/page.h"
#include "launch/report/json_parts.h"
#include "launch/view/drawing_json.h"
#include "launch/view/layered_layout.h"
#include "launch/view/node_detail.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr int kNearLevels = 3;  // above and below the operator to blame
constexpr size_t kMostNearNodes = 60;

std::string NumberText(double value) {
  return fmt::format("{:.9g}", value);
}

json RangeJson(const DifferingRange& range) {
  return {range.first, range.last};
}

json DifferenceJson(const TensorDifference& difference, const Shape& shape) {
  if (difference.samples.empty()) return {};
  const auto sample = [&shape](const DifferenceSample& one) {
    return json{{"at", PositionText(one.flat, shape)},
                {"mine", NumberText(one.mine)},
                {"golden", NumberText(one.golden)}};
  };
  return {{"samples", ListOf(difference.samples, sample)},
          {"rows", difference.rows},
          {"columns", difference.columns},
          {"map_rows", difference.map_rows},
          {"map_columns", difference.map_columns},
          {"map", difference.map},
          {"in_rows", RangeJson(difference.in_rows)},
          {"in_columns", RangeJson(difference.in_columns)}};
}

// The first measurement is the cosine similarity (kAlgorithms).
json TensorJson(const TensorRow& tensor) {
  const TensorDistance& d = tensor.distance;
  return {{"side", Name(tensor.side)},
          {"index", tensor.index},
          {"type", tensor.mine.ToString()},
          {"golden", tensor.golden.ToString()},
          {"reason", d.reason},
          {"pattern", OrNull(tensor.pattern)},
          {"elements", tensor.mine.shape.elements()},
          {"differing", d.differing},
          {"max_abs", d.max_abs},
          {"max_abs_at", PositionText(d.where, tensor.mine.shape)},
          {"max_ulp", d.max_ulp},
          {"cosine", tensor.measurements.empty() ? json() : json(tensor.measurements.front().text)},
          {"nan", {d.nan_x, d.nan_y}},
          {"inf", {d.inf_x, d.inf_y}},
          {"difference", DifferenceJson(tensor.difference, tensor.mine.shape)}};
}

json RowJson(const OperatorRow& row) {
  return {{"name", row.name},
          {"key", row.key},
          {"type", row.type},
          {"standing", Name(row.standing)},
          {"inputs_differ", row.inputs_differ},
          {"tensors", ListOf(row.tensors, TensorJson)}};
}

json SameJson(const OperatorRow& row) {
  double error = 0;
  for (const TensorRow& tensor : row.tensors) error = std::max(error, tensor.distance.max_abs);
  return {row.name, row.type, row.tensors.size(), error};
}

json RankJson(const RankComparison& one) {
  const Comparison& comparison = one.comparison;
  json rank = {{"rank", one.rank},
               {"step", OrNull(one.step)},
               {"mine", comparison.mine},
               {"golden", comparison.golden},
               {"only_mine", comparison.only_mine},
               {"only_golden", comparison.only_golden},
               {"first", comparison.First() == nullptr ? -1 : 0},
               {"rows", json::array()},
               {"same", json::array()}};
  for (const OperatorRow& row : comparison.rows) {
    if (row.differs()) {
      rank["rows"].push_back(RowJson(row));
    } else {
      rank["same"].push_back(SameJson(row));
    }
  }
  return rank;
}

// The graph with the types that the comparison saw, which stand on the edges of a drawing.
Graph WithTypes(const Graph& graph, const Comparison& comparison) {
  std::map<std::string, const OperatorRow*> rows;
  for (const OperatorRow& row : comparison.rows) rows[row.key] = &row;
  Graph typed = graph;
  for (const Node& node : graph.nodes()) {
    const auto row = rows.find(OperatorKey(node.name));
    if (node.removed || row == rows.end()) continue;
    std::vector<TensorDesc>& outputs = typed.node(node.id).output_descs;
    for (const TensorRow& tensor : row->second->tensors) {
      const auto index = static_cast<size_t>(tensor.index);
      if (tensor.side != Side::kOutput || index >= outputs.size()) continue;
      outputs[index].dtype = tensor.mine.dtype;
      outputs[index].shape = tensor.mine.shape;
    }
  }
  return typed;
}

// Which row of the page an operator has, and how it stands.
class Standings {
 public:
  explicit Standings(const Comparison& comparison) {
    int64_t differing = 0;
    for (const OperatorRow& row : comparison.rows) {
      rows_[row.key] = {Name(row.standing), row.differs() ? differing++ : -1};
    }
  }

  bool IsCompared(const Node& node) const { return rows_.contains(OperatorKey(node.name)); }

  // What a box of the drawing says of the comparison.
  json Standing(const Node& node) const {
    const auto row = rows_.find(OperatorKey(node.name));
    const bool seen = row != rows_.end();
    return {{"name", node.name},
            {"standing", seen ? row->second.first : "unseen"},
            {"row", seen ? row->second.second : -1}};
  }

 private:
  std::map<std::string, std::pair<std::string_view, int64_t>> rows_;  // by key
};

// The nodes at most kNearLevels above or below a centre. What was not compared, such as a Reshape,
// makes no level. Of many the nearest.
class Neighbourhood {
 public:
  Neighbourhood(const Graph& graph, const Standings& standings)
      : graph_(graph), standings_(standings), readers_(graph.nodes().size()) {
    for (const Node& node : graph.nodes()) {
      if (node.removed) continue;
      for (const NodeId id : Above(node.id)) readers_[static_cast<size_t>(id)].push_back(node.id);
    }
  }

  std::set<NodeId> Of(NodeId centre) {
    near_ = {centre};
    std::vector<NodeId> up = {centre}, down = {centre};
    for (int level = 0; level < kNearLevels; ++level) {
      up = NextLevel(std::move(up), [&](NodeId id) { return Above(id); });
      down =
          NextLevel(std::move(down), [&](NodeId id) { return readers_[static_cast<size_t>(id)]; });
    }
    return near_;
  }

 private:
  std::vector<NodeId> Above(NodeId id) const {
    std::vector<NodeId> found = graph_.node(id).controls;
    for (const std::optional<Value>& input : graph_.node(id).inputs) {
      if (input) found.push_back(input->node);
    }
    return found;
  }

  template <typename Neighbours>
  std::vector<NodeId> NextLevel(std::vector<NodeId> level, const Neighbours& neighbours) {
    std::vector<NodeId> next;
    for (size_t i = 0; i < level.size(); ++i) {  // grows
      for (const NodeId id : neighbours(level[i])) {
        if (IsWeightNode(graph_.node(id)) || near_.size() >= kMostNearNodes) continue;
        if (!near_.insert(id).second) continue;
        (standings_.IsCompared(graph_.node(id)) ? next : level).push_back(id);
      }
    }
    return next;
  }

  const Graph& graph_;
  const Standings& standings_;
  std::vector<std::vector<NodeId>> readers_;  // by node
  std::set<NodeId> near_;
};

json DrawingJson(const Drawing& drawing, const Graph& graph, const Standings& standings) {
  return DrawingJson(drawing,
                     [&](const Box& box) { return standings.Standing(graph.node(box.node)); });
}

NodeId NodeOf(const Graph& graph, const std::string& key) {
  for (const Node& node : graph.nodes()) {
    if (!node.removed && OperatorKey(node.name) == key) return node.id;
  }
  return kNoNode;
}

// What the graph says of the operators that differ, by name.
json DifferingNodes(const Graph& graph, const OpRegistry& registry, const Comparison& comparison) {
  const NodeDetails details(graph, registry);
  std::set<std::string> keys;
  for (const OperatorRow& row : comparison.rows) {
    if (row.differs() && keys.size() < kDetailedOperators) keys.insert(row.key);
  }
  json nodes = json::object();
  for (const Node& node : graph.nodes()) {
    const std::string key = OperatorKey(node.name);
    if (!node.removed && keys.contains(key)) nodes[key] = ToJsonObject(details.Of(node));
  }
  return nodes;
}

Result<json> GraphJson(const Graph& graph, const OpRegistry& registry, size_t rank,
                       const Comparison& comparison) {
  const Graph typed = WithTypes(graph, comparison);
  const Standings standings(comparison);
  NPUMESH_ASSIGN_OR_RETURN(const Drawing whole, LayOut(typed, registry));
  json object = {{"rank", rank},
                 {"name", graph.name()},
                 {"near", json()},
                 {"whole", DrawingJson(whole, typed, standings)},
                 {"nodes", DifferingNodes(typed, registry, comparison)}};
  const OperatorRow* const first = comparison.First();
  const NodeId centre = first == nullptr ? kNoNode : NodeOf(typed, first->key);
  if (centre == kNoNode) return object;
  const std::set<NodeId> shown = Neighbourhood(typed, standings).Of(centre);
  NPUMESH_ASSIGN_OR_RETURN(const Drawing near,
                           LayOut(typed, registry, [&](NodeId id) { return shown.contains(id); }));
  object["near"] = DrawingJson(near, typed, standings);
  return object;
}

json VerdictJson(const std::vector<RankComparison>& comparisons, int blamed) {
  if (blamed < 0) return {};
  const RankComparison& one = comparisons[static_cast<size_t>(blamed)];
  json verdict = {{"text", DistanceText(*one.comparison.First())}, {"cause", json()}};
  if (one.cause) verdict["cause"] = ToText(*one.cause, one.ranks, one.golden_ranks);
  verdict["called_at"] = one.called_at;
  return verdict;
}

// "the weight w2 differs" where that is the reason, else "MatMul_3 differs first".
std::string Culprit(const RankComparison& one) {
  if (one.cause && one.cause->kind == InputCause::Kind::kWeight) {
    return fmt::format("the weight {} differs", one.cause->name);
  }
  return fmt::format("{} differs first", one.comparison.First()->name);
}

}  // namespace

Result<std::string> ComparePageData(const std::vector<RankComparison>& comparisons, int blamed,
                                    const Graph* graph, const OpRegistry& registry,
                                    const PageOrigin& origin) {
  json data = {{"command", origin.command},
               {"version", origin.version},
               {"written", origin.written},
               {"lines", ListOf(comparisons, SummaryText)},
               {"verdict", VerdictJson(comparisons, blamed)},
               {"blamed", blamed},
               {"ranks", ListOf(comparisons, RankJson)},
               {"graph", json()}};
  if (graph != nullptr && !comparisons.empty()) {
    const auto shown = static_cast<size_t>(std::max(blamed, 0));
    NPUMESH_ASSIGN_OR_RETURN(data["graph"],
                             GraphJson(*graph, registry, shown, comparisons[shown].comparison));
  }
  return data.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<std::string> ComparePage(const std::vector<RankComparison>& comparisons, int blamed,
                                const Graph* graph, const OpRegistry& registry,
                                const PageOrigin& origin) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string data,
                           ComparePageData(comparisons, blamed, graph, registry, origin));
  std::string title = "npumesh dump compare: no operator differs";
  if (blamed >= 0) {
    const RankComparison& one = comparisons[static_cast<size_t>(blamed)];
    title = fmt::format("npumesh dump compare: rank {}: {}", one.rank, Culprit(one));
  }
  return HtmlPage({.title = title, .texts = CompareTexts(), .data = data, .draws = true});
}

}  // namespace npumesh
