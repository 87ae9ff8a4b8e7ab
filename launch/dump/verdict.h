// What comparisons found: in lines for a terminal, and for programs: `--json` of dump compare, dump
// laws and replay (docs/json.md).
#ifndef NPUMESH_LAUNCH_DUMP_VERDICT_H_
#define NPUMESH_LAUNCH_DUMP_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/compare/golden/golden.h"
#include "graph/compare/golden/golden_blame.h"
#include "graph/compare/laws/law_check.h"
#include "graph/compare/measures/comparison.h"
#include "graph/compare/replay/input_cause.h"
#include "graph/compare/replay/replay.h"
#include "launch/report/command_report.h"

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
  // Where the program called that operator (TensorSource::CalledAt); empty: unknown.
  std::string called_at;
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

// Verdict "same", "differ" or "sharded". `blamed` as for VerdictText, `out`: where the files are.
CommandReport CompareReport(const std::vector<RankComparison>& comparisons, int blamed,
                            const std::string& out);

// The laws of one step; `table` is listed when `list`. The first broken law makes the verdict
// "broken".
void NoteLaws(uint64_t step, const LawReport& laws, const LawTable& table, bool list,
              CommandReport& report);

// One step of a replay. Makes the verdict, which begins as "same", "not replayed" when operators
// should have been and were not, and "differ" when one differs.
void NoteReplayed(uint64_t step, const Replayed& replayed, CommandReport& report);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DUMP_VERDICT_H_
