#include "graph/session/ref_data.h"

#include <set>

#include "graph/passes/bound_graph.h"

namespace npumesh {

void MarkRefData(Model& model, const OpRegistry& registry) {
  std::set<NodeId> written;
  {
    const BoundGraph bound(model.graph, registry);
    for (const InPlaceWrite& write : bound.writes()) {
      written.insert(bound.StorageRoot(write.target).node);
    }
  }
  for (const NodeId id : written) {
    Node& node = model.graph.node(id);
    if (node.type == "Data") node.type = "RefData";
  }
}

}  // namespace npumesh
