// Graph, Node, Model: the graph in memory, independent of any file format.
//
// A node's inputs are values, that is outputs of other nodes; control edges only order execution.
// Node ids are positions in `Graph::nodes()` and stay valid until `Compact`; a removed node leaves
// a tombstone. Collectives of one group run in node order even where no edge orders them.
//
// Thread-safety: concurrent reads are safe; writing needs exclusive access.
#ifndef NPUMESH_GRAPH_IR_GRAPH_H_
#define NPUMESH_GRAPH_IR_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/ir/attr_value.h"
#include "graph/ir/shape.h"
#include "runtime/base/status.h"

namespace npumesh {

using NodeId = int32_t;
inline constexpr NodeId kNoNode = -1;

// Output number `port` of node `node`.
struct Value {
  NodeId node = kNoNode;
  int port = 0;
  bool operator==(const Value&) const = default;
  auto operator<=>(const Value&) const = default;
};

// What a file says about a port. For intermediates the shape is absent and the dtype is not to be
// trusted: inference decides.
struct TensorDesc {
  TensorDesc();
  TensorDesc(const TensorDesc&);
  TensorDesc(TensorDesc&&) noexcept;
  TensorDesc& operator=(const TensorDesc&);
  TensorDesc& operator=(TensorDesc&&) noexcept;
  ~TensorDesc();

  std::string name;  // port name; from the descriptor or from the node's name tables
  DataType dtype = DataType::kUndefined;
  std::optional<Shape> shape;  // absent is not scalar
  std::string layout = "ND";
  std::string device_type;  // "NPU", "CPU" or empty
  AttrMap attrs;
  // Serialised TensorDescriptor that holds all other fields, unknown ones included.
  std::string opaque;
};

// Copied and destroyed by graph.cc, because every file that does it itself compiles longer; so are
// descriptors, graphs and models.
struct Node {
  Node();
  Node(const Node&);
  Node(Node&&) noexcept;
  Node& operator=(const Node&);
  Node& operator=(Node&&) noexcept;
  ~Node();

  NodeId id = kNoNode;
  std::string name;
  std::string type;
  // One entry for each data port; nullopt: unconnected.
  std::vector<std::optional<Value>> inputs;
  std::vector<NodeId> controls;         // predecessors without data
  std::vector<TensorDesc> input_descs;  // as many as inputs
  std::vector<TensorDesc> output_descs;
  AttrMap attrs;                       // without the name tables
  std::vector<std::string> subgraphs;  // names in the Model
  // Serialised OpDef that holds all other fields, unknown ones included.
  std::string opaque;
  bool removed = false;

  // Port index of an input by name; -1: no such input.
  int FindInput(std::string_view port_name) const;

  const AttrValue* FindAttr(std::string_view attr) const;
  // The attribute as the type asked for, or `fallback` when it is absent or of another kind. Ints
  // are accepted where a bool or dtype is expected, as older producers write them.
  int64_t IntAttr(std::string_view attr, int64_t fallback) const;
  float FloatAttr(std::string_view attr, float fallback) const;
  bool BoolAttr(std::string_view attr, bool fallback) const;
  std::string StringAttr(std::string_view attr, std::string_view fallback) const;
  std::vector<int64_t> IntsAttr(std::string_view attr) const;  // empty when absent
};

class Graph {
 public:
  Graph();
  explicit Graph(std::string name);
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  // Includes tombstones; `removed` tells.
  const std::vector<Node>& nodes() const { return nodes_; }
  Node& node(NodeId id) { return nodes_[static_cast<size_t>(id)]; }
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }

  // Adds a node; its name must be unique (kInvalidArgument names it). Sets its id.
  Result<NodeId> Add(Node node);
  // The node with this name, or kNoNode.
  NodeId Find(std::string_view name) const;
  // Renames; kInvalidArgument when the name is taken.
  Status Rename(NodeId id, std::string name);
  // Removes a node without readers. REQUIRES: no value of it is an input or control of another
  // node.
  void Remove(NodeId id);
  // Lets every reader of `from` read `to` instead.
  void ReplaceUses(Value from, Value to);

  // The only NetOutput node, found by type; kNoNode without one.
  NodeId NetOutput() const;
  // Data and RefData nodes, sorted by attribute `index` (then node order).
  std::vector<NodeId> DataNodes() const;

  AttrMap& attrs() { return attrs_; }
  const AttrMap& attrs() const { return attrs_; }
  // `graph.output` records of a file ("node:port"); normally empty.
  std::vector<std::string>& output_records() { return output_records_; }
  const std::vector<std::string>& output_records() const { return output_records_; }
  std::string& opaque() { return opaque_; }
  const std::string& opaque() const { return opaque_; }

  // Structure only: edges in range, ports match descriptors, names unique, no cycle. The error
  // names node, port and what was expected.
  Status Verify() const;

  // Nodes in an order in which every producer stands before its readers, otherwise in node order
  // (the order of the file, kept where it is valid: StableRDFS). Error: kCorrupt names a node of a
  // cycle.
  Result<std::vector<NodeId>> StableOrder() const;

 private:
  std::string name_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, NodeId> by_name_;
  AttrMap attrs_;
  std::vector<std::string> output_records_;
  std::string opaque_;
};

// A whole file: the main graph and the subgraphs its nodes name.
struct Model {
  Model();
  Model(const Model&);
  Model(Model&&) noexcept;
  Model& operator=(const Model&);
  Model& operator=(Model&&) noexcept;
  ~Model();

  std::string name;
  uint32_t version = 0;
  std::string custom_version;
  Graph graph;
  std::vector<Graph> subgraphs;
  AttrMap attrs;
  std::string opaque;
  // Where it came from, for messages and for weights beside it; empty for a model built in memory.
  std::string path;

  const Graph* FindSubgraph(std::string_view name) const;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IR_GRAPH_H_
