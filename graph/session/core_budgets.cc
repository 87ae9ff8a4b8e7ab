#include "graph/session/core_budgets.h"

#include "graph/passes/analysis/node_error.h"
#include "graph/passes/analysis/reachability.h"
#include "runtime/base/text/parse.h"
#include "runtime/card/core_budgets.h"

namespace npumesh {
namespace {

constexpr std::string_view kDevices = "ascend910b1";  // what npumesh's say they are

struct NodeBudget {
  NodeId id = kNoNode;
  CoreBudget budget;
  std::string stream;        // empty: the default one
  std::vector<bool> needed;  // by node id: what runs before it
};

// The numbers are texts, as TorchAir writes them.
int64_t CoresOf(const Node& node) {
  constexpr std::string_view kCores = "_op_vectorcore_num";
  const Result<int64_t> cores = ParseInt(node.StringAttr(kCores, "0"), 0, 1 << 20, kCores);
  return cores.ok() ? *cores : 0;
}

bool MayMeet(const NodeBudget& a, const NodeBudget& b) {
  return a.stream != b.stream && !a.needed[static_cast<size_t>(b.id)] &&
         !b.needed[static_cast<size_t>(a.id)];
}

}  // namespace

Status CheckCoreBudgets(const BoundGraph& bound, NodeWatch& card) {
  std::vector<NodeBudget> earlier;
  Status first;
  for (const Node& node : bound.graph().nodes()) {
    const Operator* const op = bound.op(node.id);
    if (node.removed || op == nullptr || !op->collective || CoresOf(node) == 0) continue;
    const std::string where = fmt::format("node \"{}\" ({})", node.name, node.type);
    NodeBudget here{.id = node.id,
                    .budget = {where, node.name, CoresOf(node)},
                    .stream = node.StringAttr("_user_stream_label", ""),
                    .needed = NodesBefore(bound, node.id)};
    for (const NodeBudget& other : earlier) {
      if (!MayMeet(other, here)) continue;
      auto finding = FindCoresOfBoth(*card.findings().card().chip, other.budget, here.budget,
                                     "limit_core_num");
      if (!finding) continue;
      const Status status = card.Add(*std::move(finding));
      if (first.ok()) first = AtNode(node, status);
    }
    earlier.push_back(std::move(here));
  }
  return first;
}

Result<std::shared_ptr<NodeWatch>> DeadlockWatch(bool says) {
  NPUMESH_ASSIGN_OR_RETURN(Card card, Card::FromProcess());
  if (card) return std::shared_ptr<NodeWatch>();
  NPUMESH_ASSIGN_OR_RETURN(card.chip, Chips().Find(kDevices));
  static const auto* const kNoRules = new CardRules();  // never destroyed: watches may outlive main
  return std::make_shared<NodeWatch>(card, says, *kNoRules);
}

}  // namespace npumesh
