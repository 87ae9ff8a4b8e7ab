#include "graph/session/core_budgets.h"

#include "graph/passes/analysis/node_error.h"
#include "graph/passes/analysis/reachability.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

constexpr int kVectorCoreTimeout = 507034;
constexpr std::string_view kDevices = "ascend910b1";  // what npumesh's say they are

struct Budget {
  NodeId node = kNoNode;
  int64_t cores = 0;
  std::string stream;        // empty: the default one
  std::vector<bool> needed;  // by node id: what runs before it
};

// The numbers are texts, as TorchAir writes them.
int64_t CoresOf(const Node& node) {
  constexpr std::string_view kCores = "_op_vectorcore_num";
  const Result<int64_t> cores = ParseInt(node.StringAttr(kCores, "0"), 0, 1 << 20, kCores);
  return cores.ok() ? *cores : 0;
}

bool MayMeet(const Budget& a, const Budget& b) {
  return a.stream != b.stream && !a.needed[static_cast<size_t>(b.node)] &&
         !b.needed[static_cast<size_t>(a.node)];
}

}  // namespace

Status CheckCoreBudgets(const BoundGraph& bound, NodeWatch& card) {
  const Chip& chip = *card.findings().card().chip;
  const std::optional<int64_t> most = chip.Number("vector_cores");
  if (!most) return Status();
  std::vector<Budget> earlier;
  Status first;
  for (const Node& node : bound.graph().nodes()) {
    const Operator* const op = bound.op(node.id);
    if (node.removed || op == nullptr || !op->collective || CoresOf(node) == 0) continue;
    Budget budget{.node = node.id,
                  .cores = CoresOf(node),
                  .stream = node.StringAttr("_user_stream_label", ""),
                  .needed = NodesBefore(bound, node.id)};
    for (const Budget& other : earlier) {
      if (other.cores + budget.cores <= *most || !MayMeet(other, budget)) continue;
      CardFinding finding;
      finding.rule = "collective-cores";
      finding.where = fmt::format("node \"{}\" ({})", node.name, node.type);
      finding.node = node.name;
      finding.text = fmt::format(
          "it may run beside \"{}\", which is on another stream, and each keeps its vector cores "
          "until all ranks came: {} + {} > {}, a deadlock",
          bound.node(other.node).name, other.cores, budget.cores, *most);
      finding.code = kVectorCoreTimeout;
      finding.mend = "give them fewer cores (limit_core_num), or let one need the other";
      finding.source = "TorchAir, deadlock_check and core limits; vllm-ascend#14296";
      const Status status = card.Add(std::move(finding));
      if (first.ok()) first = AtNode(node, status);
    }
    earlier.push_back(std::move(budget));
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
