// Storages: the memory that several values of a graph share, who overwrites it, and in which order.
//
// A storage is everything that views and in-place outputs connect. Its root is the value at the
// bottom: an input, a constant or the output of an operator. The root and the in-place outputs are
// names of the storage: reading one shows what the storage holds at that moment. A view is a
// reader instead: its value is what it saw at its own place (docs/engine.md, "Overwriting").
//
// Order: data edges, control edges, then writers of one storage in the stable order of the graph
// (Graph::StableOrder).
//
// Thread-safety: const members may be called from several threads.
#ifndef NPUMESH_GRAPH_PASSES_ANALYSIS_STORAGES_H_
#define NPUMESH_GRAPH_PASSES_ANALYSIS_STORAGES_H_

#include <map>
#include <optional>
#include <vector>

#include "graph/passes/analysis/bound_graph.h"

namespace npumesh {

struct StorageWriter {
  NodeId node = kNoNode;
  int input = 0;         // of the node: its target
  Value result;          // the in-place output
  bool has_port = true;  // false: the operator updates the input and no output shows it
};

// Writers of one storage in their order. `Level` n is the storage after n writes.
struct Storage {
  Value root;
  std::vector<StorageWriter> writers;
  std::vector<std::vector<bool>> after;  // by writer, by node id: runs after the writer
};

class Storages {
 public:
  // `graph` must outlive it. Error (kInvalidArgument): one node overwrites a storage twice; names
  // both inputs.
  static Result<Storages> Of(const BoundGraph& graph);

  bool empty() const { return storages_.empty(); }
  // The overwritten storage that the value lives in; null: no node overwrites it.
  const Storage* Find(Value value) const;

  // How many writers run before the node; all of them for NetOutput.
  int Level(const Storage& storage, NodeId id) const;
  // The level at which a view saw the value; nullopt for a name of the storage, which shows the
  // level of its reader.
  std::optional<int> SeenLevel(const Storage& storage, Value value) const;

  // True when `to` runs after `from`, or is the same node.
  bool Reaches(NodeId from, NodeId to) const;
  // From now on `to` runs after `from`. REQUIRES: !Reaches(to, from).
  void AddEdge(NodeId from, NodeId to);

 private:
  explicit Storages(const BoundGraph& graph);
  Status CollectWriters();
  void AddGraphEdges();
  Status OrderWriters();
  // By node id: `from` and what runs after it.
  std::vector<bool> From(NodeId from) const;

  const BoundGraph* graph_;
  std::vector<std::vector<NodeId>> successors_;  // by node id
  std::map<Value, Storage> storages_;            // by root
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_PASSES_ANALYSIS_STORAGES_H_
