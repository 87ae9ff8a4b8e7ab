// One self-contained HTML page that shows a comparison: the verdict, the graph with the divergence
// drawn along it, and every operator in a table.
#ifndef NPUMESH_LAUNCH_DUMP_COMPARE_PAGE_H_
#define NPUMESH_LAUNCH_DUMP_COMPARE_PAGE_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "launch/dump/verdict_text.h"

namespace npumesh {

// `graph`: of the rank to blame, else of any; null: the page has tables only. No scripts, fonts or
// pictures from elsewhere; names are escaped. Error: kCorrupt for a graph with a
// cycle.
Result<std::string> ComparePage(const std::vector<RankComparison>& comparisons, int blamed,
                                const Graph* graph, const OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DUMP_COMPARE_PAGE_H_
