// OperatorOrder: where operators stand in a graph, by their keys: what runs before what, and whose
// results an operator sees.
#ifndef NPUMESH_GRAPH_COMPARE_SOURCES_OPERATOR_ORDER_H_
#define NPUMESH_GRAPH_COMPARE_SOURCES_OPERATOR_ORDER_H_

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/compare/sources/tensor_source.h"
#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// By its name alone: those of HCCL, and calls of torch.distributed in dumps of msProbe.
bool IsCollectiveType(std::string_view type);

class OperatorOrder {
 public:
  // Topological order of the main graph, otherwise the file's (Graph::StableOrder). Error: kCorrupt
  // for a cycle.
  static Result<OperatorOrder> FromGraph(const Graph& graph, const OpRegistry& registry);
  // The order of a source, without edges: everything sees what ran before it.
  static OperatorOrder FromSource(const TensorSource& source);

  // False for an order without edges.
  bool has_edges() const { return has_edges_; }
  // Place of an operator, or -1 when the order does not know it.
  int PlaceOf(std::string_view key) const;
  bool IsCollective(std::string_view key) const;

  // `keys` by place, those that are not known after them, in the order given.
  std::vector<std::string> Sorted(std::vector<std::string> keys) const;

  // True when one of `others` is an ancestor of `key`. Without edges: when one stands before it.
  bool Sees(std::string_view key, const std::set<std::string>& others) const;

 private:
  struct Entry {
    std::string key;
    std::vector<int> producers;  // places
    bool collective = false;
  };
  std::vector<Entry> entries_;  // by place
  std::map<std::string, int, std::less<>> places_;
  bool has_edges_ = false;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_SOURCES_OPERATOR_ORDER_H_
