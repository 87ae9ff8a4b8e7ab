// The summary of a graph's operators: `debug.fx_summary` of type "csv".
#ifndef NPUMESH_GRAPH_DUMP_WRITER_FX_SUMMARY_H_
#define NPUMESH_GRAPH_DUMP_WRITER_FX_SUMMARY_H_

#include <string>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"

namespace npumesh {

// The text: a byte order mark, the header, and a row for each operator type in the order of their
// first node: type, kind ("ascend_ir"), whether the registry has it, calls, and the input and
// output types that occur, as "N次：..." each. Inputs and outputs of the graph are no operators.
std::string FxSummary(const Graph& graph, const OpRegistry& registry);

// Writes "{folder}/summary_rank_{rank}_pid_{pid}_ts_{time}.csv", time in UTC with microseconds.
// Returns the path.
Result<std::string> WriteFxSummary(const Graph& graph, const OpRegistry& registry,
                                   const std::string& folder, int rank,
                                   FileSystem& fs = RealFileSystem());

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_WRITER_FX_SUMMARY_H_
