// Collectives that keep vector cores until the other ranks come: what a card says to two of them
// whose budgets together are more than it has.
#ifndef NPUMESH_RUNTIME_CARD_CORE_BUDGETS_H_
#define NPUMESH_RUNTIME_CARD_CORE_BUDGETS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/card/findings.h"

namespace npumesh {

struct CoreBudget {
  std::string where;  // node "a" (HcomAllReduce); HcclAllReduce on stream 5
  std::string node;   // its name; empty: of no node
  int64_t vector_cores = 0;
};

// Nothing where the chip has the cores of both, or says nothing of vector cores. `earlier`: as
// texts call it. `mend`: how a budget is made smaller.
// REQUIRES: neither of them waits for the other, and they are on different streams.
std::optional<CardFinding> FindCoresOfBoth(const Chip& chip, const CoreBudget& earlier,
                                           const CoreBudget& later, std::string_view mend);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_CARD_CORE_BUDGETS_H_
