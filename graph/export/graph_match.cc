#include "graph/export/graph_match.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <set>

#include "graph/io/weights.h"
#include "graph/ir/node_kind.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/core/signature.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

// Constants with more integers are data, those with fewer are shapes, axes and offsets.
constexpr int64_t kMostIntegers = 64;
// Graphs that differ in more of their nodes are meant to differ.
constexpr double kAlikeOfTwo = 0.05;
constexpr double kAlikeOfMany = 0.25;

// ---- portraits ----

AttrValue FloatsOf(const std::vector<float>& values) {
  return values.size() == 1 ? AttrValue::Float(values[0]) : AttrValue::Floats(values);
}

template <typename T>
std::vector<T> ElementsAs(const Tensor& tensor) {
  std::vector<T> values(static_cast<size_t>(tensor.shape().elements()));
  if (!values.empty()) std::memcpy(values.data(), tensor.data(), values.size() * sizeof(T));
  return values;
}

// The value of a constant that stands in the graph and is no weight: one float, some integers.
std::optional<AttrValue> LiteralOf(const Node& node) {
  const AttrValue* const value = node.FindAttr("value");
  const TensorAttr* const stored = value == nullptr ? nullptr : value->get<TensorAttr>();
  if (stored == nullptr) return std::nullopt;
  const Shape shape = stored->desc->shape.value_or(Shape());
  if (!shape.is_static() || !shape.Check().ok()) return std::nullopt;
  const DataType dtype = stored->desc->dtype;
  const int64_t elements = shape.elements();
  if (elements > (dtype == DataType::kFloat ? 1 : kMostIntegers)) return std::nullopt;
  if (dtype != DataType::kFloat && dtype != DataType::kInt32 && dtype != DataType::kInt64) {
    return std::nullopt;
  }
  const Result<Tensor> tensor = LoadWeight(node, "");
  if (!tensor.ok()) return std::nullopt;
  if (dtype == DataType::kFloat) return FloatsOf(ElementsAs<float>(*tensor));
  if (dtype == DataType::kInt64) return AttrValue::Ints(ElementsAs<int64_t>(*tensor));
  const std::vector<int32_t> narrow = ElementsAs<int32_t>(*tensor);
  return AttrValue::Ints({narrow.begin(), narrow.end()});
}

// Names of graphs and, of collectives, of groups depend on the rank.
bool IsCompared(const Model& model, const AttrValue& value, bool collective) {
  const auto* const text = value.get<std::string>();
  if (text != nullptr) return !collective && model.FindSubgraph(*text) == nullptr;
  return value.get<NamedAttrs>() == nullptr && value.get<OpaqueAttr>() == nullptr &&
         value.get<TensorAttr>() == nullptr && value.get<TensorDescAttr>() == nullptr;
}

NodePortrait PortraitOf(const Model& model, const Graph& graph, const Node& node,
                        const OpRegistry& registry) {
  NodePortrait portrait;
  portrait.name = node.name;
  portrait.type = IsWeightNode(node) ? "Const" : node.type;
  for (const std::optional<Value>& input : node.inputs) {
    portrait.inputs.push_back(
        input ? fmt::format("{}:{}", graph.node(input->node).name, input->port) : "");
  }
  if (IsFurniture(node)) {
    std::optional<AttrValue> literal;
    if (IsWeightNode(node) && !IsFileConstant(node)) literal = LiteralOf(node);
    if (literal) portrait.attrs.emplace("value", *std::move(literal));
    return portrait;
  }
  const Operator* const op = registry.Find(node.type);
  if (op == nullptr) {
    for (const auto& [name, value] : node.attrs) {
      if (!IsBookkeeping(node, name)) portrait.attrs.emplace(name, value);
    }
  } else {
    portrait.collective = op->collective.has_value();
    for (const AttrSpec& spec : op->schema.attrs) {
      const AttrValue* const value = node.FindAttr(spec.name);
      if (value == nullptr && !spec.fallback) continue;
      portrait.attrs.emplace(spec.name, value != nullptr ? *value : *spec.fallback);
    }
  }
  std::erase_if(portrait.attrs, [&](const auto& attr) {
    return !IsCompared(model, attr.second, portrait.collective);
  });
  return portrait;
}

void AddGraph(const Model& model, const Graph& graph, const OpRegistry& registry,
              GraphPortrait* portrait) {
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    portrait->nodes.push_back(PortraitOf(model, graph, node, registry));
    if (!IsInputNode(node) && !IsWeightNode(node)) continue;
    std::string shape = node.output_descs.empty() || !node.output_descs[0].shape
                            ? ""
                            : node.output_descs[0].shape->ToString();
    if (IsFileConstant(node)) shape = Shape(node.IntsAttr("shape")).ToString();
    portrait->shapes.push_back(fmt::format("{} {}", node.name, shape));
  }
}

// ---- which differences are told ----

// An attribute of one node on the ranks that are compared.
struct RankValues {
  std::vector<int> ranks;
  std::vector<std::string> texts;
  std::vector<const AttrValue*> values;

  // Ranks by text, most ranks first.
  std::vector<std::pair<std::string, std::vector<int>>> Groups() const {
    std::map<std::string, std::vector<int>> by_text;
    for (size_t i = 0; i < ranks.size(); ++i) by_text[texts[i]].push_back(ranks[i]);
    std::vector<std::pair<std::string, std::vector<int>>> groups(by_text.begin(), by_text.end());
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
      return a.second.size() != b.second.size() ? a.second.size() > b.second.size()
                                                : a.second.front() < b.second.front();
    });
    return groups;
  }
};

enum class Sort { kFixed, kFraction, kCount };

// Floats that are integers count and index as integers do.
bool IsIntegral(const AttrValue& value) {
  const auto integral = [](float number) { return std::trunc(number) == number; };
  if (const auto* number = value.get<float>()) return integral(*number);
  const auto* const list = value.get<ListAttr>();
  return list != nullptr && !list->f.empty() &&
         std::all_of(list->f.begin(), list->f.end(), integral);
}

Sort SortOf(const RankValues& values) {
  const AttrValue& first = *values.values.front();
  const auto* const list = first.get<ListAttr>();
  if (first.get<float>() != nullptr || (list != nullptr && !list->f.empty())) {
    const bool integral = std::all_of(values.values.begin(), values.values.end(),
                                      [](const AttrValue* value) { return IsIntegral(*value); });
    return integral ? Sort::kCount : Sort::kFraction;
  }
  const bool counts = first.get<int64_t>() != nullptr || first.get<ListListInt>() != nullptr ||
                      (list != nullptr && list->b.empty() && list->s.empty() && list->dt.empty());
  return counts ? Sort::kCount : Sort::kFixed;
}

// A factor that is 1 on one end of the ranks and 0 on the others adds a bias once.
bool IsSwitch(const RankValues& values, const std::vector<int>& deviating) {
  for (const AttrValue* value : values.values) {
    const auto* const number = value->get<float>();
    if (number == nullptr || (*number != 0 && *number != 1)) return false;
  }
  return deviating.size() == 1 &&
         (deviating.front() == values.ranks.front() || deviating.front() == values.ranks.back());
}

// `even`: the shards of the ranks have equal shapes.
bool IsTold(const RankValues& values, bool even) {
  const auto groups = values.Groups();
  if (groups.size() < 2) return false;
  const size_t ranks = values.ranks.size();
  const size_t most = groups.front().second.size();
  switch (SortOf(values)) {
    case Sort::kFixed:
      return true;
    case Sort::kFraction:
      return ranks == 2 || most * 2 > ranks;
    case Sort::kCount:
      break;
  }
  if (!even || ranks < 3 || groups.size() > 2) return false;
  const std::vector<int>& deviating = groups.back().second;
  const bool few = deviating.size() == 1 || deviating.size() * 4 <= ranks;
  return few && !IsSwitch(values, deviating);
}

std::string Who(const NodePortrait& node) {
  return fmt::format("node \"{}\" ({})", node.name, node.type);
}

// "value is 0.4 on rank 1, 0.35 on ranks 0,2-3".
GraphMismatch Mismatch(const NodePortrait& node, const std::string& attr,
                       const RankValues& values) {
  auto groups = values.Groups();
  std::reverse(groups.begin(), groups.end());
  std::vector<std::string> parts;
  for (const auto& [text, ranks] : groups) {
    parts.push_back(fmt::format("{} on {}", text, RanksText(ranks)));
  }
  return {groups.front().second.front(),
          fmt::format("{}: {} is {}", Who(node), attr, fmt::join(parts, ", "))};
}

// ---- forms of graphs ----

using NodesByName = std::map<std::string, const NodePortrait*>;

NodesByName ByName(const GraphPortrait& portrait) {
  NodesByName nodes;
  for (const NodePortrait& node : portrait.nodes) nodes.emplace(node.name, &node);
  return nodes;
}

bool SameForm(const NodePortrait& a, const NodePortrait& b) {
  return a.type == b.type && a.inputs == b.inputs;
}

bool SameForm(const GraphPortrait& a, const GraphPortrait& b) {
  return a.nodes.size() == b.nodes.size() &&
         std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(),
                    [](const NodePortrait& x, const NodePortrait& y) {
                      return x.name == y.name && SameForm(x, y);
                    });
}

// Ranks whose graphs have one form, the largest class first.
std::vector<std::vector<int>> Classes(const std::vector<GraphPortrait>& portraits) {
  std::vector<std::vector<int>> classes;
  for (size_t rank = 0; rank < portraits.size(); ++rank) {
    const auto known =
        std::find_if(classes.begin(), classes.end(), [&](const std::vector<int>& ranks) {
          return SameForm(portraits[static_cast<size_t>(ranks.front())], portraits[rank]);
        });
    if (known == classes.end()) {
      classes.push_back({static_cast<int>(rank)});
    } else {
      known->push_back(static_cast<int>(rank));
    }
  }
  std::stable_sort(classes.begin(), classes.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return classes;
}

// How the nodes of one graph deviate from another's: a sentence for each.
std::vector<std::string> FormDifferences(const NodesByName& mine, const NodesByName& theirs,
                                         int rank, const std::string& others) {
  std::vector<std::string> texts;
  for (const auto& [name, node] : mine) {
    const auto other = theirs.find(name);
    if (other == theirs.end()) {
      texts.push_back(fmt::format("{} is on rank {} only", Who(*node), rank));
    } else if (other->second->type != node->type) {
      texts.push_back(fmt::format("node \"{}\" is a {} on rank {}, a {} on {}", name, node->type,
                                  rank, other->second->type, others));
    } else if (other->second->inputs != node->inputs) {
      texts.push_back(fmt::format("{} reads {} on rank {}, {} on {}", Who(*node),
                                  fmt::join(node->inputs, ", "), rank,
                                  fmt::join(other->second->inputs, ", "), others));
    }
  }
  for (const auto& [name, node] : theirs) {
    if (!mine.contains(name)) {
      texts.push_back(fmt::format("{} of {} is missing on rank {}", Who(*node), others, rank));
    }
  }
  return texts;
}

bool AnyCollective(const NodesByName& nodes, const NodesByName& others) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& each) {
    const auto other = others.find(each.first);
    return each.second->collective &&
           (other == others.end() || !SameForm(*other->second, *each.second));
  });
}

// One rank whose graph is nearly that of all others. What the first or the last rank has more or
// less than the others may be meant, and so may other collectives.
std::optional<GraphMismatch> OddForm(const std::vector<GraphPortrait>& portraits,
                                     const std::vector<std::vector<int>>& classes) {
  if (classes.size() != 2 || classes[1].size() != 1) return std::nullopt;
  const int rank = classes[1].front();
  const auto& odd = portraits[static_cast<size_t>(rank)];
  const auto& common = portraits[static_cast<size_t>(classes[0].front())];
  const bool at_end = rank == 0 || rank + 1 == static_cast<int>(portraits.size());
  if (at_end && odd.nodes.size() != common.nodes.size()) return std::nullopt;
  const NodesByName mine = ByName(odd);
  const NodesByName theirs = ByName(common);
  if (AnyCollective(mine, theirs) || AnyCollective(theirs, mine)) return std::nullopt;
  const std::vector<std::string> texts = FormDifferences(mine, theirs, rank, RanksText(classes[0]));
  const double alike = portraits.size() == 2 ? kAlikeOfTwo : kAlikeOfMany;
  const auto nodes = static_cast<double>(std::max(mine.size(), theirs.size()));
  if (texts.empty() || static_cast<double>(texts.size()) > alike * nodes) return std::nullopt;
  const std::string more =
      texts.size() == 1 ? "" : fmt::format("; and {} more nodes differ", texts.size() - 1);
  return GraphMismatch{rank, texts.front() + more};
}

bool SameShapes(const std::vector<GraphPortrait>& portraits, const std::vector<int>& ranks) {
  const GraphPortrait& first = portraits[static_cast<size_t>(ranks.front())];
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    return portraits[static_cast<size_t>(rank)].shapes == first.shapes;
  });
}

// The attribute of node number `node` on all `ranks`; nullopt: one has none.
std::optional<RankValues> ValuesOf(const std::vector<GraphPortrait>& portraits,
                                   const std::vector<int>& ranks, size_t node,
                                   const std::string& attr) {
  RankValues values;
  for (const int rank : ranks) {
    const auto& attrs = portraits[static_cast<size_t>(rank)].nodes[node].attrs;
    const auto found = attrs.find(attr);
    if (found == attrs.end()) return std::nullopt;
    values.ranks.push_back(rank);
    values.texts.push_back(ValueText(found->second));
    values.values.push_back(&found->second);
  }
  return values;
}

void MatchClass(const std::vector<GraphPortrait>& portraits, const std::vector<int>& ranks,
                std::vector<GraphMismatch>* found) {
  const GraphPortrait& first = portraits[static_cast<size_t>(ranks.front())];
  const bool even = SameShapes(portraits, ranks);
  for (size_t node = 0; node < first.nodes.size(); ++node) {
    for (const auto& [attr, value] : first.nodes[node].attrs) {
      const std::optional<RankValues> values = ValuesOf(portraits, ranks, node, attr);
      if (!values || !IsTold(*values, even)) continue;
      found->push_back(Mismatch(first.nodes[node], attr, *values));
    }
  }
}

}  // namespace

GraphPortrait PortraitOf(const Model& model, const OpRegistry& registry) {
  GraphPortrait portrait;
  AddGraph(model, model.graph, registry, &portrait);
  for (const Graph& graph : model.subgraphs) AddGraph(model, graph, registry, &portrait);
  return portrait;
}

std::vector<GraphMismatch> MatchGraphs(const std::vector<GraphPortrait>& portraits, size_t most) {
  std::vector<GraphMismatch> found;
  if (portraits.size() < 2) return found;
  const std::vector<std::vector<int>> classes = Classes(portraits);
  if (std::optional<GraphMismatch> odd = OddForm(portraits, classes)) {
    found.push_back(*std::move(odd));
  }
  for (const std::vector<int>& ranks : classes) {
    if (ranks.size() > 1) MatchClass(portraits, ranks, &found);
  }
  if (found.size() <= most) return found;
  const size_t more = found.size() - most;
  found.resize(most);
  found.push_back({found.back().rank, fmt::format("and {} more differences of attributes", more)});
  return found;
}

}  // namespace npumesh
