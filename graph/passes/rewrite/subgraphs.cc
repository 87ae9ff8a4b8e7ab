#include "graph/passes/rewrite/subgraphs.h"

#include <array>
#include <set>
#include <string>

#include "graph/passes/analysis/bound_graph.h"
#include "graph/passes/analysis/node_error.h"

namespace npumesh {
namespace {

constexpr std::string_view kParentIndex = "_parent_node_index";

struct UseOfType {
  std::string_view type;
  SubgraphUse use;
};

constexpr std::array kUses = {
    UseOfType{"PartitionedCall", SubgraphUse::kCall},
    UseOfType{"StatefulPartitionedCall", SubgraphUse::kCall},
    UseOfType{"If", SubgraphUse::kIf},
    UseOfType{"StatelessIf", SubgraphUse::kIf},
    UseOfType{"_If", SubgraphUse::kIf},
    UseOfType{"Case", SubgraphUse::kCase},
    UseOfType{"StatelessCase", SubgraphUse::kCase},
    UseOfType{"While", SubgraphUse::kWhile},
    UseOfType{"StatelessWhile", SubgraphUse::kWhile},
    UseOfType{"_While", SubgraphUse::kWhile},
};

// Inputs of the parent that come before those that subgraphs may number by `index`.
int64_t FirstDataInput(const Node& parent) {
  const SubgraphUse use = SubgraphUseOf(parent.type);
  return use == SubgraphUse::kIf || use == SubgraphUse::kCase ? 1 : 0;
}

int64_t DeclaredParentInput(const Node& parent, const Node& data) {
  return data.IntAttr(kParentIndex, data.IntAttr("index", 0) + FirstDataInput(parent));
}

int64_t DeclaredParentOutput(const TensorDesc& desc, size_t position) {
  const auto attr = desc.attrs.find(std::string(kParentIndex));
  const auto* index = attr == desc.attrs.end() ? nullptr : attr->second.get<int64_t>();
  return index != nullptr ? *index : static_cast<int64_t>(position);
}

Status CheckCount(const Node& node) {
  const size_t seen = node.subgraphs.size();
  const auto expect = [&](bool fits, std::string_view expected) {
    if (fits) return Status();
    return Error(Code::kCorrupt, "it has {} subgraphs, expected {}", seen, expected);
  };
  switch (SubgraphUseOf(node.type)) {
    case SubgraphUse::kCall:
      return expect(seen == 1, "one");
    case SubgraphUse::kIf:
      return expect(seen == 2, "two: then and else");
    case SubgraphUse::kWhile:
      return expect(seen == 2, "two: condition and body");
    case SubgraphUse::kCase:
      return expect(seen >= 1, "one for each branch");
    case SubgraphUse::kNone:
      break;
  }
  return Status();
}

Status CheckInputs(const Node& node, const Graph& graph) {
  for (const Node& inner : graph.nodes()) {
    if (inner.removed) continue;
    if (IsRefData(inner)) {
      return Error(Code::kUnsupported,
                   "subgraph \"{}\": \"{}\" is a RefData; only the main graph can have them",
                   graph.name(), inner.name);
    }
    if (!IsData(inner)) continue;
    const int64_t input = DeclaredParentInput(node, inner);
    if (input >= 0 && input < static_cast<int64_t>(node.inputs.size())) continue;
    return Error(Code::kCorrupt, "subgraph \"{}\": \"{}\" takes input {}, but the node has {}",
                 graph.name(), inner.name, input, node.inputs.size());
  }
  return Status();
}

// Every output of the node is made by exactly one output of the subgraph.
Status CheckOutputs(const Node& node, const Graph& graph) {
  const Node& sink = graph.node(graph.NetOutput());
  std::set<int64_t> made;
  for (size_t i = 0; i < sink.inputs.size(); ++i) {
    const int64_t output = DeclaredParentOutput(sink.input_descs[i], i);
    const bool fits = output >= 0 && output < static_cast<int64_t>(node.output_descs.size());
    if (fits && sink.inputs[i] && made.insert(output).second) continue;
    return Error(Code::kCorrupt,
                 "subgraph \"{}\": its output {} is output {} of the node, which has {}, each made "
                 "once",
                 graph.name(), i, output, node.output_descs.size());
  }
  if (made.size() == node.output_descs.size()) return Status();
  return Error(Code::kCorrupt, "subgraph \"{}\": it makes {} outputs of {}", graph.name(),
               made.size(), node.output_descs.size());
}

// The condition of a While makes one output.
Status CheckCondition(const Graph& graph) {
  const Node& sink = graph.node(graph.NetOutput());
  if (sink.inputs.size() == 1 && sink.inputs[0]) return Status();
  return Error(Code::kCorrupt, "subgraph \"{}\": a condition has one output, seen {}", graph.name(),
               sink.inputs.size());
}

class SubgraphChecker {
 public:
  explicit SubgraphChecker(const Model& model) : model_(model) {}

  Status Visit(const Graph& graph) {
    if (done_.count(&graph) > 0) return Status();
    if (!open_.insert(&graph).second) {
      return Error(Code::kCorrupt, "graph \"{}\" contains itself", graph.name());
    }
    for (const Node& node : graph.nodes()) {
      if (node.removed || SubgraphUseOf(node.type) == SubgraphUse::kNone) continue;
      NPUMESH_RETURN_IF_ERROR(AtNode(node, VisitNode(node)));
    }
    open_.erase(&graph);
    done_.insert(&graph);
    return Status();
  }

 private:
  Status VisitNode(const Node& node) {
    NPUMESH_RETURN_IF_ERROR(CheckCount(node));
    for (size_t i = 0; i < node.subgraphs.size(); ++i) {
      const Graph* graph = model_.FindSubgraph(node.subgraphs[i]);
      if (graph == nullptr) {
        return Error(Code::kCorrupt, "the model has no subgraph \"{}\"", node.subgraphs[i]);
      }
      NPUMESH_RETURN_IF_ERROR(
          graph->Verify().WithContext(fmt::format("subgraph \"{}\"", graph->name())));
      if (graph->NetOutput() == kNoNode) {
        return Error(Code::kCorrupt, "subgraph \"{}\" has no NetOutput", graph->name());
      }
      NPUMESH_RETURN_IF_ERROR(CheckInputs(node, *graph));
      const bool condition = SubgraphUseOf(node.type) == SubgraphUse::kWhile && i == 0;
      NPUMESH_RETURN_IF_ERROR(condition ? CheckCondition(*graph) : CheckOutputs(node, *graph));
      NPUMESH_RETURN_IF_ERROR(Visit(*graph));
    }
    return Status();
  }

  const Model& model_;
  std::set<const Graph*> open_;
  std::set<const Graph*> done_;
};

}  // namespace

SubgraphUse SubgraphUseOf(std::string_view type) {
  for (const UseOfType& use : kUses) {
    if (use.type == type) return use.use;
  }
  return SubgraphUse::kNone;
}

int ParentInput(const Node& parent, const Node& data) {
  return static_cast<int>(DeclaredParentInput(parent, data));
}

std::vector<int> ParentOutputs(const Graph& subgraph) {
  std::vector<int> outputs;
  const Node& sink = subgraph.node(subgraph.NetOutput());
  for (size_t i = 0; i < sink.inputs.size(); ++i) {
    outputs.push_back(static_cast<int>(DeclaredParentOutput(sink.input_descs[i], i)));
  }
  return outputs;
}

std::vector<const Graph*> ReachableGraphs(const Model& model) {
  std::vector<const Graph*> graphs = {&model.graph};
  std::set<const Graph*> seen = {&model.graph};
  for (size_t next = 0; next < graphs.size(); ++next) {
    for (const Node& node : graphs[next]->nodes()) {
      if (node.removed) continue;
      for (const std::string& name : node.subgraphs) {
        const Graph* graph = model.FindSubgraph(name);
        if (graph != nullptr && seen.insert(graph).second) graphs.push_back(graph);
      }
    }
  }
  return graphs;
}

Status CheckSubgraphs(const Model& model) {
  return SubgraphChecker(model).Visit(model.graph);
}

}  // namespace npumesh
