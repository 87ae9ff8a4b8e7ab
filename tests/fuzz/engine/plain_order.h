// Which bytes the readers of a value see whose storage is overwritten: the rule of docs/engine.md,
// written down once more.
//
// A storage is all values that views and in-place outputs connect. Its writers w1 .. wk have an
// order, and a node stands at the level i of a storage when w_i is the last of them before it.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_PLAIN_ORDER_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_PLAIN_ORDER_H_

#include <map>
#include <vector>

#include "graph/ir/graph.h"

namespace npumesh::fuzz {

// By node id: the nodes directly behind it.
using Successors = std::vector<std::vector<NodeId>>;

// By node id: reached from `start`; `start` itself only through a circle.
std::vector<bool> ReachedFrom(NodeId start, const Successors& edges);

// Data and control edges.
Successors GraphEdges(const Graph& graph);

class PlainOrder {
 public:
  // REQUIRES: graph.Verify() is OK.
  explicit PlainOrder(const Graph& graph);

  // The value at the bottom: an input, a constant, or what an operator computes.
  Value RootOf(Value value) const;
  // The lowest view of the chain above a live name; `value` itself when it is a live name.
  Value PinOf(Value value) const;
  bool HasWriters(Value root) const { return writers_.count(root) > 0; }
  // All nodes, in an order that keeps data edges, control edges and the order of writers.
  const std::vector<NodeId>& nodes() const { return nodes_; }
  // How many writers of the storage stand before the node; all of them for NetOutput.
  int LevelOf(NodeId node, Value root) const;
  const Successors& edges() const { return edges_; }

 private:
  void AddWriterOrder();
  void Sort();

  const Graph& graph_;
  Successors edges_;
  std::vector<NodeId> nodes_;
  std::map<Value, std::vector<NodeId>> writers_;       // by root
  std::map<NodeId, std::vector<bool>> behind_writer_;  // by writer, then node id
};

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_PLAIN_ORDER_H_
