#include "collectives/hccl/creation/rank_table.h"
#include "runtime/base/text/printable.h"
#include "tests/fuzz/targets.h"

namespace npumesh::fuzz {

std::string CheckRankTable(std::string_view text) {
  RankTable table;
  const Verdict verdict = ParseRankTable(text, &table);
  if (!verdict.ok()) return FlawOf(Error(Code::kCorrupt, "{}", verdict.why));
  for (size_t i = 0; i < table.ranks.size(); ++i) {
    if (table.completed && table.ranks[i].rank != i) return "ranks that are not 0 to N-1";
  }
  return "";
}

}  // namespace npumesh::fuzz
