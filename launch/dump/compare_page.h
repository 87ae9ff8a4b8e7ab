// One self-contained HTML page that shows a comparison (launch/page/page.h). It opens at the
// operator to blame: where in its tensor it differs, what stands around it in the graph, and every
// operator that differs, the blamed rank first.
#ifndef NPUMESH_LAUNCH_DUMP_COMPARE_PAGE_H_
#define NPUMESH_LAUNCH_DUMP_COMPARE_PAGE_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "launch/dump/verdict.h"
#include "launch/page/page.h"

namespace npumesh {

// How many operators of a rank a page shows in detail: CompareOptions::detailed of its comparisons.
inline constexpr int kDetailedOperators = 32;

// `graph`: of the rank to blame, else of the first; null: the page has tables only. `blamed`: index
// of the comparison to blame, -1: none differs. Error: kCorrupt for a graph with a cycle.
Result<std::string> ComparePage(const std::vector<RankComparison>& comparisons, int blamed,
                                const Graph* graph, const OpRegistry& registry,
                                const PageOrigin& origin = {});

// What compare.js reads, one JSON object:
//   command, version, written   as PageOrigin
//   lines    list: one sentence for each comparison
//   verdict  {text, cause (or null)} of the rank to blame; null: none differs
//   blamed   index of `ranks`, or -1
//   ranks    list of {rank, step (or null), mine, golden, only_mine, only_golden, first, rows,
//            same}; rows, in topological order, are the operators that differ: {name, type,
//            standing, inputs_differ, tensors}; same: lists of name, type, number of tensors,
//            largest error that was allowed; first: index of rows, or -1
//   graph    null, or {rank (index of `ranks`), name, near, whole}: drawings, near null when
//            no operator of the graph is to blame. A drawing is {width, height, boxes: {x, y, w, h,
//            type, name, sub, kind, standing, row (of ranks[rank].rows; -1), out, dead},
//            edges: {from, to (indexes of boxes), d, control, label}}
// A tensor is {side, index, type, golden, reason, elements, differing, max_abs, max_abs_at,
// max_ulp, cosine, nan and inf (of both sides), difference}; difference is null or {samples: {at,
// mine, golden}, rows, columns, map_rows, map_columns, map, in_rows, in_columns}. Numbers that JSON
// has no word for are texts.
Result<std::string> ComparePageData(const std::vector<RankComparison>& comparisons, int blamed,
                                    const Graph* graph, const OpRegistry& registry,
                                    const PageOrigin& origin);

// compare.html, compare.css and compare.js, embedded when npumesh is built.
PageTexts CompareTexts();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DUMP_COMPARE_PAGE_H_
