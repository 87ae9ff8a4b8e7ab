#include "graph/passes/analysis/node_error.h"

#include "graph/ir/node_origin.h"

namespace npumesh {

Status AtNode(std::string_view name, std::string_view type, std::string_view origin,
              const Status& status) {
  if (status.ok() || std::string_view(status.message()).starts_with(WhoIs(name, type, ""))) {
    return status;
  }
  return status.WithContext(WhoIs(name, type, origin));
}

Status AtNode(const Node& node, const Status& status) {
  if (status.ok()) return status;
  return AtNode(node.name, node.type, NodeOrigin(node), status);
}

}  // namespace npumesh
