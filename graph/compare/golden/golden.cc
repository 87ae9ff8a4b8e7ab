#include "graph/compare/golden/golden.h"

#include <algorithm>
#include <set>

#include "graph/compare/measures/pattern.h"
#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {
namespace {

bool IsCollective(const Node& node, const OpRegistry& registry) {
  const Operator* const op = registry.Find(node.type);
  return op != nullptr ? op->collective.has_value() : node.type.starts_with("Hcom");
}

// A view that nothing tells to change the shape, as Identity.
bool PassesOn(const Node& node, const OpRegistry& registry) {
  const Operator* const op = registry.Find(node.type);
  return op != nullptr && op->view && op->schema.inputs.size() == 1 && op->schema.attrs.empty();
}

// What both graphs have in common: no constants, no collectives, no Identity after them.
Result<std::vector<const Node*>> ComputingNodes(const Graph& graph, const OpRegistry& registry) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.StableOrder());
  std::vector<const Node*> nodes;
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    const bool skipped = node.removed || PassesOn(node, registry) || IsNetOutput(node) ||
                         IsWeightNode(node) || IsCollective(node, registry);
    if (!skipped) nodes.push_back(&node);
  }
  return nodes;
}

bool SameTypes(const std::vector<const Node*>& a, const std::vector<const Node*>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Node* x, const Node* y) { return x->type == y->type; });
}

Counterparts ByName(const std::vector<const Node*>& sharded,
                    const std::vector<const Node*>& whole) {
  std::map<std::string, std::string> types;
  for (const Node* node : whole) types[OperatorKey(node->name)] = node->type;
  Counterparts counterparts;
  for (const Node* node : sharded) {
    const std::string key = OperatorKey(node->name);
    const auto same = types.find(key);
    if (same != types.end() && same->second == node->type) counterparts[key].key = key;
  }
  return counterparts;
}

// The form of what a reducing collective takes; kNone for a product.
Sharding::Kind ReducedBy(const Node& collective, const Operator& op) {
  using Kind = Sharding::Kind;
  const std::string reduction = collective.StringAttr(op.collective->reduction, "");
  if (reduction == Name(ReduceOp::kSum)) return Kind::kSum;
  if (reduction == Name(ReduceOp::kMax)) return Kind::kMax;
  return reduction == Name(ReduceOp::kMin) ? Kind::kMin : Kind::kNone;
}

// A sum over ranks is what one rank has before the sum.
void AddSums(const Graph& sharded, const OpRegistry& registry, Counterparts& counterparts) {
  for (const Node& node : sharded.nodes()) {
    const Operator* const op = node.removed ? nullptr : registry.Find(node.type);
    const bool sums = op != nullptr && op->collective && op->collective->leaves_equal &&
                      op->collective->takes == Assembly::kReduce;
    if (!sums || node.inputs.empty()) continue;
    std::optional<Value> source = node.inputs[0];
    while (source && source->port == 0) {
      const Node& producer = sharded.node(source->node);
      const auto known = counterparts.find(OperatorKey(producer.name));
      if (known != counterparts.end()) {
        known->second.reduced = ReducedBy(node, *op);
        counterparts[OperatorKey(node.name)] = {known->second.key, Sharding::Kind::kNone, true};
        break;
      }
      source = PassesOn(producer, registry) ? producer.inputs[0] : std::nullopt;
    }
  }
}

// The kind of mistake that explains a row that differs; empty: none of the known ones.
std::string PatternText(const GoldenRow& row, const std::vector<Tensor>& ranks, const Tensor& whole,
                        const Allowance& allowance) {
  const std::optional<MeasuredPair> pair = MeasuredBy(row.fit, ranks, whole);
  if (!pair) return "";
  return ToText(PatternOf(pair->mine, pair->expected, allowance), pair->mine.shape());
}

bool HasOutput(const TensorSource& source, const std::string& key, int output) {
  const SourceOperator* const op = source.Find(key);
  return op != nullptr && std::binary_search(op->outputs.begin(), op->outputs.end(), output);
}

Result<std::vector<Tensor>> LoadAll(const RankSources& ranks, const std::string& key, int output) {
  std::vector<Tensor> tensors;
  for (const TensorSource* source : ranks) {
    if (source == nullptr || !HasOutput(*source, key, output)) return std::vector<Tensor>();
    NPUMESH_ASSIGN_OR_RETURN(Tensor tensor, source->Load(key, Side::kOutput, output));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

class WholeComparer {
 public:
  WholeComparer(const RankSources& ranks, const TensorSource& whole,
                const Counterparts& counterparts, const OperatorOrder& order,
                const CompareOptions& options)
      : ranks_(ranks),
        whole_(whole),
        counterparts_(counterparts),
        order_(order),
        options_(options) {}

  Result<GoldenReport> Run() {
    std::vector<std::string> keys;
    for (const auto& [key, counterpart] : counterparts_) keys.push_back(key);
    for (const std::string& key : order_.Sorted(std::move(keys))) {
      const CounterpartInWhole& counterpart = counterparts_.at(key);
      const SourceOperator* const golden = whole_.Find(counterpart.key);
      if (golden == nullptr) continue;
      for (const int output : golden->outputs) {
        NPUMESH_RETURN_IF_ERROR(CompareOutput(key, counterpart, *golden, output));
      }
    }
    if (!report_.rows.empty()) return std::move(report_);
    return Error(Code::kInvalidArgument,
                 "the graphs have no operator in common whose outputs can be compared; is {} the "
                 "unsharded graph of the same model?",
                 whole_.title());
  }

 private:
  Status CompareOutput(const std::string& key, const CounterpartInWhole& counterpart,
                       const SourceOperator& golden, int output) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> tensors, LoadAll(ranks_, key, output));
    if (tensors.empty()) return Status();
    NPUMESH_ASSIGN_OR_RETURN(const Tensor expected, whole_.Load(golden.key, Side::kOutput, output));
    const Allowance allowance = options_.For(key, expected);
    GoldenRow row = CompareWithWhole(tensors, expected, allowance,
                                     output == 0 ? counterpart.reduced : Sharding::Kind::kNone);
    const SourceOperator& mine = *ranks_.front()->Find(key);
    row.key = key;
    row.name = mine.name;
    row.type = mine.type;
    row.whole_key = golden.key;
    row.reduces = counterpart.reduces;
    row.output = output;
    if (row.fit.sharding.kind == Sharding::Kind::kNone) {
      report_.not_comparable.push_back(row.name);
      return Status();
    }
    if (row.standing != Standing::kSame) {
      if (report_.first < 0) row.pattern = PatternText(row, tensors, expected, allowance);
      NoteDifference(row);
    }
    report_.rows.push_back(std::move(row));
    return Status();
  }

  void NoteDifference(GoldenRow& row) {
    if (order_.Sees(row.key, differing_)) row.standing = Standing::kConsequence;
    differing_.insert(row.key);
    if (report_.first < 0) report_.first = static_cast<int>(report_.rows.size());
  }

  const RankSources& ranks_;
  const TensorSource& whole_;
  const Counterparts& counterparts_;
  const OperatorOrder& order_;
  const CompareOptions& options_;
  GoldenReport report_;
  std::set<std::string> differing_;
};

}  // namespace

Result<Counterparts> FindCounterparts(const Graph& sharded, const Graph& whole,
                                      const OpRegistry& registry) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<const Node*> mine, ComputingNodes(sharded, registry));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<const Node*> theirs, ComputingNodes(whole, registry));
  Counterparts counterparts;
  if (SameTypes(mine, theirs)) {
    for (size_t i = 0; i < mine.size(); ++i) {
      counterparts[OperatorKey(mine[i]->name)].key = OperatorKey(theirs[i]->name);
    }
  } else {
    counterparts = ByName(mine, theirs);
  }
  AddSums(sharded, registry, counterparts);
  return counterparts;
}

GoldenRow CompareWithWhole(const std::vector<Tensor>& ranks, const Tensor& whole,
                           const Allowance& allowance, Sharding::Kind reduced) {
  GoldenRow row;
  row.whole = whole.type();
  row.fit = FitShards(ranks, whole, allowance, reduced);
  if (row.fit.sharding.kind != Sharding::Kind::kNone && !row.fit.same()) {
    row.standing = Standing::kOrigin;
  }
  return row;
}

Result<GoldenReport> CompareRanksWithWhole(const RankSources& ranks, const TensorSource& whole,
                                           const Counterparts& counterparts,
                                           const OperatorOrder& order,
                                           const CompareOptions& options) {
  return WholeComparer(ranks, whole, counterparts, order, options).Run();
}

}  // namespace npumesh
