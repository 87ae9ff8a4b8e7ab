// Messages about nodes.
#ifndef NPUMESH_GRAPH_PASSES_ANALYSIS_NODE_ERROR_H_
#define NPUMESH_GRAPH_PASSES_ANALYSIS_NODE_ERROR_H_

#include <string_view>

#include "graph/ir/graph.h"
#include "runtime/base/status.h"

namespace npumesh {

// The error with `node "name" (Type): ` in front, unless it begins so already, as messages made
// with OpContext::Who do. `origin`: of the node, see NodeOrigin.
Status AtNode(std::string_view name, std::string_view type, std::string_view origin,
              const Status& status);

Status AtNode(const Node& node, const Status& status);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_ANALYSIS_NODE_ERROR_H_
