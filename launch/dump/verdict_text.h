// What comparisons found, in lines for a terminal.
#ifndef NPUMESH_LAUNCH_DUMP_VERDICT_TEXT_H_
#define NPUMESH_LAUNCH_DUMP_VERDICT_TEXT_H_

#include <optional>
#include <string>
#include <vector>

#include "graph/compare/golden/golden.h"
#include "graph/compare/golden/golden_blame.h"
#include "graph/compare/laws/law_check.h"
#include "graph/compare/measures/comparison.h"
#include "graph/compare/replay/input_cause.h"

namespace npumesh {

// A comparison and which rank and step of "mine" it is about.
struct RankComparison {
  int rank = 0;
  std::string step;  // as the path says; empty: one step only
  Comparison comparison;
  // Of the jobs that dumped.
  int ranks = 1;
  int golden_ranks = 1;
  // What explains the first operator that differs; nullopt: it is to blame itself.
  std::optional<InputCause> cause;
};

// One line for each comparison, and a last one with the verdict: the first operator that differs,
// where, by how much, and that what follows is its consequence. `blamed`: index of the comparison
// to blame, -1: none differs.
std::string VerdictText(const std::vector<RankComparison>& comparisons, int blamed);

// "rank 2 step 0: 188 operators compared, first difference at MatMul_3 (MatMul), 41 differ after
// it"
std::string SummaryText(const RankComparison& one);

// "MatMul_3 (MatMul) output 0 float32[2,4]: 3 of 8 elements differ, max abs 2 at [1,1], 12 ULP,
// NaN 0 against 0, Inf 0 against 0"
std::string DistanceText(const OperatorRow& row);

// The laws that hold and the first that does not, with the rank that breaks it.
std::string LawsText(const LawReport& report);

// One line for each law: "norm:0 (RmsNorm)  equal on ranks 0-3".
std::string LawTableText(const LawTable& table);

// The verdict about N ranks against one: "rank 1 differs first: down (MatMulV2) output 0, partial
// sums: 12 elements differ, max abs 2", then what explains it, if that is known. Empty: no operator
// differs.
std::vector<std::string> GoldenVerdictLines(const GoldenReport& report, const GoldenBlame& blame);

// What was compared, "198 outputs compared with the unsharded graph", and the lines of the verdict.
std::string GoldenText(const std::string& compared, const std::vector<std::string>& verdict);
std::string GoldenHeading(const GoldenReport& report);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DUMP_VERDICT_TEXT_H_
