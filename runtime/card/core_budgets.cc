#include "runtime/card/core_budgets.h"

namespace npumesh {
namespace {

constexpr int kVectorCoreTimeout = 507034;

}  // namespace

std::optional<CardFinding> FindCoresOfBoth(const Chip& chip, const CoreBudget& earlier,
                                           const CoreBudget& later, std::string_view mend) {
  const std::optional<int64_t> most = chip.Number("vector_cores");
  if (!most || earlier.vector_cores + later.vector_cores <= *most) return std::nullopt;
  CardFinding finding;
  finding.rule = "collective-cores";
  finding.where = later.where;
  finding.node = later.node;
  finding.text = fmt::format(
      "it may run beside {}, which is on another stream, and each keeps its vector cores until all "
      "ranks came: {} + {} > {}, a deadlock",
      earlier.where, earlier.vector_cores, later.vector_cores, *most);
  finding.code = kVectorCoreTimeout;
  finding.mend = fmt::format("give them fewer cores ({}), or let one wait for the other", mend);
  finding.source = "TorchAir, deadlock_check and core limits; vllm-ascend#14296";
  return finding;
}

}  // namespace npumesh
