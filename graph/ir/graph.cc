#include "graph/ir/graph.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "graph/ir/node_kind.h"

namespace npumesh {

TensorDesc::TensorDesc() = default;
TensorDesc::TensorDesc(const TensorDesc&) = default;
TensorDesc::TensorDesc(TensorDesc&&) noexcept = default;
TensorDesc& TensorDesc::operator=(const TensorDesc&) = default;
TensorDesc& TensorDesc::operator=(TensorDesc&&) noexcept = default;
TensorDesc::~TensorDesc() = default;

Node::Node() = default;
Node::Node(const Node&) = default;
Node::Node(Node&&) noexcept = default;
Node& Node::operator=(const Node&) = default;
Node& Node::operator=(Node&&) noexcept = default;
Node::~Node() = default;

Graph::Graph() = default;
Graph::Graph(std::string name) : name_(std::move(name)) {}
Graph::Graph(const Graph&) = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(const Graph&) = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Model::Model() = default;
Model::Model(const Model&) = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(const Model&) = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

int Node::FindInput(std::string_view port_name) const {
  for (size_t i = 0; i < input_descs.size(); ++i) {
    if (input_descs[i].name == port_name) return static_cast<int>(i);
  }
  return -1;
}

const AttrValue* Node::FindAttr(std::string_view attr) const {
  const auto it = attrs.find(std::string(attr));
  return it == attrs.end() ? nullptr : &it->second;
}

int64_t Node::IntAttr(std::string_view attr, int64_t fallback) const {
  const AttrValue* value = FindAttr(attr);
  if (value == nullptr) return fallback;
  if (const auto* i = value->get<int64_t>()) return *i;
  if (const auto* b = value->get<bool>()) return *b ? 1 : 0;
  if (const auto* dt = value->get<DataTypeAttr>()) return dt->number;
  return fallback;
}

float Node::FloatAttr(std::string_view attr, float fallback) const {
  const AttrValue* value = FindAttr(attr);
  if (value == nullptr) return fallback;
  if (const auto* f = value->get<float>()) return *f;
  if (const auto* i = value->get<int64_t>()) return static_cast<float>(*i);
  return fallback;
}

bool Node::BoolAttr(std::string_view attr, bool fallback) const {
  return IntAttr(attr, fallback ? 1 : 0) != 0;
}

std::string Node::StringAttr(std::string_view attr, std::string_view fallback) const {
  const AttrValue* value = FindAttr(attr);
  if (value != nullptr) {
    if (const auto* s = value->get<std::string>()) return *s;
  }
  return std::string(fallback);
}

std::vector<int64_t> Node::IntsAttr(std::string_view attr) const {
  const AttrValue* value = FindAttr(attr);
  if (value == nullptr) return {};
  if (const auto* list = value->get<ListAttr>()) return list->i;
  if (const auto* i = value->get<int64_t>()) return {*i};
  return {};
}

Result<NodeId> Graph::Add(Node node) {
  const auto id = static_cast<NodeId>(nodes_.size());
  if (!by_name_.emplace(node.name, id).second) {
    return Error(Code::kInvalidArgument, "graph \"{}\": two nodes are named \"{}\"", name_,
                 node.name);
  }
  node.id = id;
  nodes_.push_back(std::move(node));
  return id;
}

NodeId Graph::Find(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? kNoNode : it->second;
}

Status Graph::Rename(NodeId id, std::string name) {
  Node& renamed = node(id);
  if (renamed.name == name) return Status();
  if (!by_name_.emplace(name, id).second) {
    return Error(Code::kInvalidArgument,
                 "graph \"{}\": node \"{}\" cannot be renamed to \"{}\", "
                 "which another node is called",
                 name_, renamed.name, name);
  }
  by_name_.erase(renamed.name);
  renamed.name = std::move(name);
  return Status();
}

void Graph::Remove(NodeId id) {
  Node& gone = node(id);
  by_name_.erase(gone.name);
  gone.removed = true;
  gone.inputs.clear();
  gone.controls.clear();
}

void Graph::ReplaceUses(Value from, Value to) {
  for (Node& reader : nodes_) {
    if (reader.removed) continue;
    for (std::optional<Value>& input : reader.inputs) {
      if (input == from) input = to;
    }
  }
}

NodeId Graph::NetOutput() const {
  for (const Node& node : nodes_) {
    if (!node.removed && IsNetOutput(node)) return node.id;
  }
  return kNoNode;
}

std::vector<NodeId> Graph::DataNodes() const {
  std::vector<NodeId> ids;
  for (const Node& node : nodes_) {
    if (!node.removed && (IsInputNode(node))) ids.push_back(node.id);
  }
  std::stable_sort(ids.begin(), ids.end(), [this](NodeId a, NodeId b) {
    return node(a).IntAttr("index", 0) < node(b).IntAttr("index", 0);
  });
  return ids;
}

Status Graph::Verify() const {
  int outputs = 0;
  for (const Node& node : nodes_) {
    if (node.removed) continue;
    const std::string who =
        fmt::format("graph \"{}\" node \"{}\" ({})", name_, node.name, node.type);
    if (IsNetOutput(node) && ++outputs > 1) {
      return Error(Code::kCorrupt, "{}: a second NetOutput; expected exactly one", who);
    }
    if (node.inputs.size() != node.input_descs.size()) {
      return Error(Code::kCorrupt, "{}: {} inputs but {} input descriptors", who,
                   node.inputs.size(), node.input_descs.size());
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const std::optional<Value>& input = node.inputs[i];
      if (!input) continue;
      const bool exists = input->node >= 0 && input->node < static_cast<NodeId>(nodes_.size()) &&
                          !nodes_[static_cast<size_t>(input->node)].removed;
      if (!exists) {
        return Error(Code::kCorrupt, "{}: input {} reads a node that does not exist", who, i);
      }
      const Node& producer = this->node(input->node);
      const auto ports = static_cast<int>(producer.output_descs.size());
      if (input->port < 0 || input->port >= ports) {
        return Error(Code::kCorrupt, "{}: input {} reads output {} of \"{}\", which has {}", who, i,
                     input->port, producer.name, ports);
      }
    }
    for (NodeId control : node.controls) {
      if (control < 0 || control >= static_cast<NodeId>(nodes_.size()) ||
          this->node(control).removed) {
        return Error(Code::kCorrupt, "{}: a control edge from a node that does not exist", who);
      }
    }
    for (const auto* descs : {&node.input_descs, &node.output_descs}) {
      for (const TensorDesc& desc : *descs) {
        if (!desc.shape) continue;
        if (Status status = desc.shape->Check(); !status.ok()) {
          return Error(Code::kCorrupt, "{}: port \"{}\": {}", who, desc.name, status.message());
        }
      }
    }
  }
  return StableOrder().status();
}

Result<std::vector<NodeId>> Graph::StableOrder() const {
  std::vector<int> waiting(nodes_.size(), 0);
  std::vector<std::vector<NodeId>> readers(nodes_.size());
  size_t alive = 0;
  const auto add_edge = [&](NodeId from, NodeId to) {
    readers[static_cast<size_t>(from)].push_back(to);
    ++waiting[static_cast<size_t>(to)];
  };
  for (const Node& node : nodes_) {
    if (node.removed) continue;
    ++alive;
    for (const std::optional<Value>& input : node.inputs) {
      if (input) add_edge(input->node, node.id);
    }
    for (NodeId control : node.controls) add_edge(control, node.id);
  }
  // The ready node that stands first in the file goes first.
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (const Node& node : nodes_) {
    if (!node.removed && waiting[static_cast<size_t>(node.id)] == 0) ready.push(node.id);
  }
  std::vector<NodeId> order;
  order.reserve(alive);
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (NodeId reader : readers[static_cast<size_t>(id)]) {
      if (--waiting[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  if (order.size() == alive) return order;
  for (const Node& node : nodes_) {
    if (!node.removed && waiting[static_cast<size_t>(node.id)] > 0) {
      return Error(Code::kCorrupt, "graph \"{}\" node \"{}\" ({}): stands on or behind a cycle",
                   name_, node.name, node.type);
    }
  }
  return Error(Code::kInternal, "graph \"{}\": order and nodes disagree", name_);
}

const Graph* Model::FindSubgraph(std::string_view wanted) const {
  for (const Graph& subgraph : subgraphs) {
    if (subgraph.name() == wanted) return &subgraph;
  }
  return nullptr;
}

}  // namespace npumesh
