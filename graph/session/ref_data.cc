#include "graph/session/ref_data.h"

#include <set>

#include "graph/passes/analysis/bound_graph.h"
#include "graph/passes/analysis/reachability.h"
#include "graph/passes/analysis/value_flow.h"

namespace npumesh {

void MarkRefData(Model& model, const OpRegistry& registry) {
  std::set<NodeId> written;
  {
    const BoundGraph bound(model.graph, registry);
    const std::vector<bool> deciding =
        ShapeDecidingInputs(bound, NeededNodes(bound, nullptr, DeadNodes::kKeep));
    for (const InPlaceWrite& write : bound.writes()) {
      const NodeId root = bound.StorageRoot(write.target).node;
      if (!deciding[static_cast<size_t>(root)]) written.insert(root);
    }
  }
  for (const NodeId id : written) {
    Node& node = model.graph.node(id);
    if (IsData(node)) node.type = "RefData";
  }
}

}  // namespace npumesh
