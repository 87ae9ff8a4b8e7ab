#include "launch/view/graph_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <map>

#include "graph/compare/measures/elements.h"
#include "graph/io/weights.h"
#include "graph/ir/node_kind.h"
#include "launch/view/node_detail.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

// A node of one of the two models.
struct Side {
  const Model* model = nullptr;
  const Node* node = nullptr;
  NodeDetail detail;
};

// By graph and name; the main graph first.
using Sides = std::map<std::pair<std::string, std::string>, Side>;

void AddSides(const Model& model, const Graph& graph, const OpRegistry& registry, Sides* sides) {
  const NodeDetails details(graph, registry, model.path,
                            &graph == &model.graph ? "" : graph.name());
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    NodeDetail detail = details.Of(node);
    const std::pair key(detail.graph, detail.name);
    sides->emplace(key, Side{&model, &node, std::move(detail)});
  }
}

Sides SidesOf(const Model& model, const OpRegistry& registry) {
  Sides sides;
  AddSides(model, model.graph, registry, &sides);
  for (const Graph& graph : model.subgraphs) AddSides(model, graph, registry, &sides);
  return sides;
}

// Attributes that say something, by name; where a weight lies is no difference.
std::map<std::string, std::string> Attributes(const Side& side) {
  std::map<std::string, std::string> attributes;
  if (IsWeightNode(*side.node)) return attributes;
  for (const AttrDetail& attr : side.detail.attributes) {
    if (attr.source != AttrSource::kNote) attributes.emplace(attr.name, attr.value);
  }
  return attributes;
}

std::string Or(const std::string& text, std::string_view otherwise) {
  return text.empty() ? std::string(otherwise) : text;
}

class NodeDiff {
 public:
  NodeDiff(const Side& here, const Side& there) : here_(here), there_(there) {}

  // Empty: nothing differs.
  std::string Text() {
    const bool weights = IsWeightNode(*here_.node) && IsWeightNode(*there_.node);
    if (here_.detail.type != there_.detail.type && !weights) {
      Say("it is", here_.detail.type, there_.detail.type);
    }
    DiffAttributes();
    DiffInputs();
    DiffOutputs();
    if (weights) DiffElements();
    return fmt::format("{}", fmt::join(texts_, "; "));
  }

 private:
  void Say(std::string_view what, const std::string& here, const std::string& there) {
    texts_.push_back(fmt::format("{} {}, there {}", what, here, there));
  }

  void DiffAttributes() {
    const auto here = Attributes(here_);
    const auto there = Attributes(there_);
    for (const auto& [name, value] : here) {
      const auto other = there.find(name);
      if (other != there.end() && other->second == value) continue;
      Say(name + " is", value, other == there.end() ? "absent" : other->second);
    }
    for (const auto& [name, value] : there) {
      if (!here.contains(name)) Say(name + " is", "absent", value);
    }
  }

  void DiffInputs() {
    const auto& here = here_.detail.inputs;
    const auto& there = there_.detail.inputs;
    if (here.size() != there.size()) {
      Say("it has", fmt::format("{} inputs", here.size()), fmt::format("{}", there.size()));
      return;
    }
    for (size_t i = 0; i < here.size(); ++i) {
      if (here[i].from == there[i].from) continue;
      Say(here[i].port + " comes from", Or(here[i].from, "no node"), Or(there[i].from, "no node"));
    }
  }

  // Of ends and weights only: inner types follow from these.
  void DiffOutputs() {
    if (!IsInputNode(*here_.node) || !IsInputNode(*there_.node)) return;
    const auto& here = here_.detail.outputs;
    const auto& there = there_.detail.outputs;
    if (here.empty() || there.empty() || here[0].type == there[0].type) return;
    Say("its type is", Or(here[0].type, "not known"), Or(there[0].type, "not known"));
  }

  void DiffElements() {
    const Result<Tensor> here = LoadWeight(*here_.node, here_.model->path);
    const Result<Tensor> there = LoadWeight(*there_.node, there_.model->path);
    if (!here.ok() || !there.ok()) {
      texts_.emplace_back((here.ok() ? there : here).status().message());
      return;
    }
    if (!(here->type() == there->type())) {
      return Say("it is", here->type().ToString(), there->type().ToString());
    }
    if (here->bytes() == 0 || std::memcmp(here->data(), there->data(), here->bytes()) == 0) return;
    CountElements(*here, *there);
  }

  void CountElements(const Tensor& here, const Tensor& there) {
    const uint64_t width = BitsOf(here.dtype()) / 8;
    if (width == 0 || !HasNumbers(here.dtype())) {
      texts_.emplace_back("its bytes differ");
      return;
    }
    const auto* const x = static_cast<const char*>(static_cast<const void*>(here.data()));
    const auto* const y = static_cast<const char*>(static_cast<const void*>(there.data()));
    uint64_t differing = 0;
    uint64_t first = 0;
    for (uint64_t at = 0; at < here.bytes(); at += width) {
      if (std::memcmp(x + at, y + at, width) == 0) continue;
      if (differing++ == 0) first = at / width;
    }
    texts_.push_back(fmt::format("{} of {} elements differ, first {}: {}", differing,
                                 here.elements(), first, Values(here, there, first)));
  }

  static std::string Values(const Tensor& here, const Tensor& there, uint64_t at) {
    const auto value = [at](const Tensor& tensor) {
      const Result<std::vector<double>> elements = ElementsOf(tensor);
      return elements.ok() ? fmt::format("{:.9g}", (*elements)[at]) : std::string("?");
    };
    return fmt::format("{}, there {}", value(here), value(there));
  }

  const Side& here_;
  const Side& there_;
  std::vector<std::string> texts_;
};

}  // namespace

GraphDiff DiffGraphs(const Model& here, const Model& there, const OpRegistry& registry) {
  GraphDiff diff;
  const Sides mine = SidesOf(here, registry);
  const Sides theirs = SidesOf(there, registry);
  diff.nodes_here = mine.size();
  diff.nodes_there = theirs.size();
  for (const auto& [key, side] : mine) {
    const auto other = theirs.find(key);
    std::string text = "is only here";
    if (other != theirs.end()) {
      ++diff.common;
      text = NodeDiff(side, other->second).Text();
    }
    if (text.empty()) continue;
    diff.differences.push_back({side.detail.name, side.detail.type, std::move(text)});
  }
  for (const auto& [key, side] : theirs) {
    if (mine.contains(key)) continue;
    diff.differences.push_back({side.detail.name, side.detail.type, "is only there"});
  }
  return diff;
}

std::string ToText(const GraphDiff& diff, const std::string& here, const std::string& there) {
  std::string text = fmt::format("here {}: {} nodes; there {}: {} nodes\n", Printable(here),
                                 diff.nodes_here, Printable(there), diff.nodes_there);
  for (const NodeDifference& node : diff.differences) {
    text += fmt::format("node \"{}\" ({}): {}\n", Quotable(node.node), Printable(node.type),
                        PrintableMessage(node.text));
  }
  if (diff.differences.empty()) return text + "no node differs\n";
  if (diff.common == 0) text += "no node of one graph has the name of a node of the other\n";
  const size_t count = diff.differences.size();
  return text + fmt::format("{} node{}\n", count, count == 1 ? " differs" : "s differ");
}

}  // namespace npumesh
