// What comparisons found, for programs: `--json` of dump compare, dump laws and replay
// (docs/json.md).
#ifndef NPUMESH_LAUNCH_DUMP_VERDICT_JSON_H_
#define NPUMESH_LAUNCH_DUMP_VERDICT_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/compare/replay/replay.h"
#include "launch/dump/verdict_text.h"
#include "launch/report/command_report.h"

namespace npumesh {

// Verdict "same", "differ" or "sharded". `blamed` as for VerdictText, `out`: where the files are.
CommandReport CompareReport(const std::vector<RankComparison>& comparisons, int blamed,
                            const std::string& out);

// The laws of one step; `table` is listed when `list`. Starts at verdict "hold", which the first
// broken law makes "broken".
void NoteLaws(uint64_t step, const LawReport& laws, const LawTable& table, bool list,
              CommandReport& report);

// One step of a replay. Verdicts "same", "not replayed" when operators should have been and were
// not, "differ"; over several steps the last of these.
void NoteReplayed(uint64_t step, const Replayed& replayed, CommandReport& report);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DUMP_VERDICT_JSON_H_
