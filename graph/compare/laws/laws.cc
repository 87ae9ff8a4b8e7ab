#include "graph/compare/laws/laws.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "graph/compare/laws/same_node.h"
#include "graph/compare/sources/tensor_source.h"
#include "graph/io/weights.h"
#include "graph/passes/analysis/bound_graph.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

// What decides whether the tensors of two ranks are equal: ranks with equal signatures, as numbers,
// hold equal tensors.
using Signature = std::vector<int>;

constexpr int kAlone = -2;  // followed by the rank: equal to no rank

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() &&
         (a.data() == b.data() || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

// Whether the value that feeds input `index` of the node stays with its rank.
bool StaysAtHome(const Node& node, size_t index, const CollectiveTrait& trait) {
  const auto& own = trait.own_inputs;
  return std::find(own.begin(), own.end(), node.input_descs[index].name) != own.end();
}

class Analyst {
 public:
  Analyst(const RankGraphs& graphs, const OpRegistry& registry, const InputClasses& inputs)
      : graphs_(graphs), registry_(registry), inputs_(inputs) {}

  Result<LawTable> Run() {
    NPUMESH_RETURN_IF_ERROR(CollectKeys());
    for (bool progress = true; progress;) {
      progress = false;
      for (const std::string& key : keys_) {
        if (classes_.count(key) > 0 || !Ready(key)) continue;
        NPUMESH_RETURN_IF_ERROR(Resolve(key));
        progress = true;
      }
    }
    for (const std::string& key : keys_) AddLaws(key);
    return std::move(table_);
  }

 private:
  Status CollectKeys() {
    std::set<std::string> known;
    nodes_.resize(graphs_.models.size());
    for (size_t rank = 0; rank < graphs_.models.size(); ++rank) {
      const Graph& graph = graphs_.models[rank]->graph;
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.StableOrder());
      for (const NodeId id : order) {
        const Node& node = graph.node(id);
        if (node.removed || IsNetOutput(node)) continue;
        const std::string key = OperatorKey(node.name);
        nodes_[rank][key] = &node;
        if (known.insert(key).second) keys_.push_back(key);
        FindWritten(graph, node);
      }
    }
    return Status();
  }

  // A RefData that an operator overwrites has no single value.
  void FindWritten(const Graph& graph, const Node& node) {
    const Operator* const op = registry_.Find(node.type);
    if (op == nullptr || op->in_place.empty()) return;
    for (const std::optional<Value>& input : node.inputs) {
      if (input && IsRefData(graph.node(input->node))) {
        written_.insert(OperatorKey(graph.node(input->node).name));
      }
    }
  }

  const Node* NodeAt(int rank, const std::string& key) const {
    const auto& nodes = nodes_[static_cast<size_t>(rank)];
    const auto node = nodes.find(key);
    return node == nodes.end() ? nullptr : node->second;
  }

  std::string KeyOf(int rank, NodeId id) const {
    return OperatorKey(graphs_.models[static_cast<size_t>(rank)]->graph.node(id).name);
  }

  // All that the node reads is resolved, on every rank.
  bool Ready(const std::string& key) const {
    for (int rank = 0; rank < graphs_.size(); ++rank) {
      const Node* const node = NodeAt(rank, key);
      if (node == nullptr) continue;
      for (const std::optional<Value>& input : node->inputs) {
        if (input && classes_.count(KeyOf(rank, input->node)) == 0) return false;
      }
    }
    return true;
  }

  Status Resolve(const std::string& key) {
    RankClasses& classes = classes_[key];
    if (const Node* input = AnyNode(key); IsInputNode(*input)) {
      classes = written_.count(key) > 0 ? Alone(key) : inputs_(key);
      return Status();
    }
    std::vector<Signature> signatures;
    for (int rank = 0; rank < graphs_.size(); ++rank) {
      NPUMESH_ASSIGN_OR_RETURN(Signature signature, SignatureOf(rank, key));
      signatures.push_back(std::move(signature));
    }
    weights_.erase(key);
    for (size_t rank = 0; rank < signatures.size(); ++rank) {
      const auto first = std::find(signatures.begin(), signatures.end(), signatures[rank]);
      const bool absent = signatures[rank].empty();
      classes.push_back(absent ? -1 : static_cast<int>(first - signatures.begin()));
    }
    return Status();
  }

  const Node* AnyNode(const std::string& key) const {
    for (int rank = 0; rank < graphs_.size(); ++rank) {
      if (const Node* node = NodeAt(rank, key)) return node;
    }
    return nullptr;  // never: keys come from nodes
  }

  RankClasses Alone(const std::string& key) const {
    RankClasses classes;
    for (int rank = 0; rank < graphs_.size(); ++rank) {
      classes.push_back(NodeAt(rank, key) == nullptr ? -1 : rank);
    }
    return classes;
  }

  // Empty: the rank does not have the node.
  Result<Signature> SignatureOf(int rank, const std::string& key) {
    const Node* const node = NodeAt(rank, key);
    if (node == nullptr) return Signature();
    if (IsWeightNode(*node)) return WeightSignature(rank, *node);
    const Operator* const op = registry_.Find(node->type);
    if (op != nullptr && op->collective) return CollectiveSignature(rank, key, *node, *op);
    if (op == nullptr || !op->pure) return Signature{kAlone, rank};
    return FunctionSignature(rank, key, *node, op->schema);
  }

  // The lowest rank whose weight of this name has the same bytes.
  Result<Signature> WeightSignature(int rank, const Node& node) {
    const std::string key = OperatorKey(node.name);
    NPUMESH_ASSIGN_OR_RETURN(Tensor mine,
                             LoadWeight(node, graphs_.models[static_cast<size_t>(rank)]->path));
    std::vector<Tensor>& seen = weights_[key];
    seen.resize(static_cast<size_t>(rank) + 1);
    seen.back() = std::move(mine);
    const auto first = std::find_if(seen.begin(), seen.end(), [&](const Tensor& other) {
      return other.dtype() != DataType::kUndefined && SameBytes(other, seen.back());
    });
    return Signature{static_cast<int>(first - seen.begin())};
  }

  // Which function, and for each input: which tensor, of which class.
  Signature FunctionSignature(int rank, const std::string& key, const Node& node,
                              const OpSchema& schema) {
    int function = rank;
    for (int lower = rank - 1; lower >= 0; --lower) {
      const Node* const other = NodeAt(lower, key);
      if (other != nullptr && SameFunction(*other, node, schema)) function = lower;
    }
    Signature signature = {function};
    for (const std::optional<Value>& input : node.inputs) {
      if (!input) {
        signature.push_back(-1);
        continue;
      }
      signature.push_back(NumberOf(KeyOf(rank, input->node)));
      signature.push_back(input->port);
      signature.push_back(ClassOf(rank, KeyOf(rank, input->node)));
    }
    return signature;
  }

  // Ranks whose outputs are equal have equal signatures: the classes of what travels from all
  // members, or from the source, and of what each member adds itself.
  Result<Signature> CollectiveSignature(int rank, const std::string& key, const Node& node,
                                        const Operator& op) {
    const CollectiveTrait& trait = *op.collective;
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<int> members,
                             MembersOfGroup(GroupOf(node, op), graphs_));
    const bool from_one = !trait.source.empty();
    if (!trait.leaves_equal && !from_one) return Signature{kAlone, rank};
    const auto source = static_cast<size_t>(node.IntAttr(trait.source, 0));
    Signature signature = {from_one ? 1 : 0};
    for (size_t i = 0; i < members.size(); ++i) {
      if (from_one && i != source) continue;
      const Node* const member = NodeAt(members[i], key);
      if (member == nullptr) return Signature{kAlone, rank};
      for (size_t input = 0; input < member->inputs.size(); ++input) {
        if (StaysAtHome(*member, input, trait)) continue;
        AddClass(members[i], member->inputs[input], signature);
      }
    }
    for (size_t input = 0; input < node.inputs.size(); ++input) {
      if (StaysAtHome(node, input, trait)) AddClass(rank, node.inputs[input], signature);
    }
    return signature;
  }

  void AddClass(int rank, const std::optional<Value>& input, Signature& signature) const {
    if (input) signature.push_back(ClassOf(rank, KeyOf(rank, input->node)));
  }

  int ClassOf(int rank, const std::string& key) const {
    return classes_.at(key)[static_cast<size_t>(rank)];
  }

  // A number for a key, the same on all ranks.
  int NumberOf(const std::string& key) {
    return numbers_.emplace(key, static_cast<int>(numbers_.size())).first->second;
  }

  void AddLaws(const std::string& key) {
    const Node& node = *AnyNode(key);
    if (IsWeightNode(node)) return;
    const auto known = classes_.find(key);
    const auto outputs = static_cast<int>(std::max<size_t>(node.output_descs.size(), 1));
    for (int output = 0; output < outputs; ++output) {
      Law law{key, node.type, output, known != classes_.end() ? known->second : Alone(key)};
      FindAssembly(node, output, law);
      table_.push_back(std::move(law));
    }
  }

  const Operator* CollectiveOf(const Node& node) const {
    const Operator* const op = registry_.Find(node.type);
    return op != nullptr && op->collective ? op : nullptr;
  }

  void FindAssembly(const Node& node, int output, Law& law) const {
    const Operator* const maker = CollectiveOf(node);
    if (maker != nullptr && output == 0 && maker->collective->gives != Assembly::kNone) {
      law.assembly = maker->collective->gives;
      law.group = GroupOf(node, *maker);
      return;
    }
    const Graph* const graph = GraphOf(node);
    for (const Node& reader : graph->nodes()) {
      const bool reads = !reader.removed && !reader.inputs.empty() && reader.inputs[0] &&
                         *reader.inputs[0] == Value{node.id, output};
      if (!reads) continue;
      const Operator* const taker = CollectiveOf(reader);
      if (taker == nullptr || taker->collective->takes == Assembly::kNone) continue;
      law.assembly = taker->collective->takes;
      law.group = GroupOf(reader, *taker);
      law.reduction = reader.StringAttr(taker->collective->reduction, "");
    }
  }

  const Graph* GraphOf(const Node& node) const {
    for (size_t rank = 0; rank < nodes_.size(); ++rank) {
      const auto mine = nodes_[rank].find(OperatorKey(node.name));
      if (mine != nodes_[rank].end() && mine->second == &node) return &graphs_.models[rank]->graph;
    }
    return &graphs_.models[0]->graph;
  }

  const RankGraphs& graphs_;
  const OpRegistry& registry_;
  const InputClasses& inputs_;
  std::vector<std::map<std::string, const Node*>> nodes_;  // by rank, by key
  std::vector<std::string> keys_;                          // topological, of all ranks
  std::set<std::string> written_;
  std::map<std::string, RankClasses> classes_;
  std::map<std::string, std::vector<Tensor>> weights_;  // by key, by rank, while being compared
  std::map<std::string, int> numbers_;
  LawTable table_;
};

}  // namespace

bool Law::binds() const {
  for (size_t rank = 0; rank < classes.size(); ++rank) {
    if (classes[rank] >= 0 && classes[rank] != static_cast<int>(rank)) return true;
  }
  return false;
}

Result<LawTable> DeriveLaws(const RankGraphs& graphs, const OpRegistry& registry,
                            const InputClasses& inputs) {
  return Analyst(graphs, registry, inputs).Run();
}

std::string ToText(const Law& law) {
  std::map<int, std::vector<int>> classes;
  for (size_t rank = 0; rank < law.classes.size(); ++rank) {
    if (law.classes[rank] >= 0) classes[law.classes[rank]].push_back(static_cast<int>(rank));
  }
  std::vector<std::string> texts;
  for (const auto& [lowest, ranks] : classes) {
    if (ranks.size() > 1) texts.push_back(RangeText(ranks));
  }
  if (!texts.empty()) return fmt::format("equal on ranks {}", fmt::join(texts, " and "));
  const std::string group = law.group.empty() ? "all ranks" : "group " + law.group;
  if (law.assembly == Assembly::kConcatenate) {
    return fmt::format("pieces along axis 0 ({})", group);
  }
  if (law.assembly == Assembly::kReduce)
    return fmt::format("partial {} ({})", law.reduction, group);
  return "free";
}

}  // namespace npumesh
