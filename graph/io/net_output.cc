#include "graph/io/net_output.h"

#include "graph/ir/node_draft.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

// "node:port", split at the last colon.
Result<Value> ParseRecord(const Graph& graph, std::string_view record) {
  const size_t colon = record.rfind(':');
  const NodeId node = graph.Find(record.substr(0, colon));
  const auto what = fmt::format("graph \"{}\" output \"{}\"", graph.name(), record);
  if (colon == std::string_view::npos || node == kNoNode) {
    return Error(Code::kCorrupt, "{}: no such node", what);
  }
  const auto ports = static_cast<int64_t>(graph.node(node).output_descs.size());
  const Result<int64_t> port = ParseInt(record.substr(colon + 1), 0, ports - 1, what);
  if (!port.ok()) return Error(Code::kCorrupt, "{}", port.status().message());
  return Value{node, static_cast<int>(*port)};
}

}  // namespace

Status AddMissingNetOutput(Graph* graph) {
  if (graph->NetOutput() != kNoNode || graph->output_records().empty()) return Status();
  Node sink = MakeNode({.type = "NetOutput", .name = "NetOutput", .outputs = {}});
  for (const std::string& record : graph->output_records()) {
    NPUMESH_ASSIGN_OR_RETURN(const Value value, ParseRecord(*graph, record));
    AddInput(*graph, fmt::format("input{}", sink.inputs.size()), value, sink);
  }
  return graph->Add(std::move(sink)).status();
}

}  // namespace npumesh
