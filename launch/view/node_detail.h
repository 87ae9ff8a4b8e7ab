// NodeDetail: all that a graph says of one node: what a person asks for when a name stands in a
// message, what `graph --json` lists and what its page shows at a click.
#ifndef NPUMESH_LAUNCH_VIEW_NODE_DETAIL_H_
#define NPUMESH_LAUNCH_VIEW_NODE_DETAIL_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "runtime/base/text/json.h"

namespace npumesh {

enum class AttrSource : uint8_t {
  kNode,     // the node says it
  kDefault,  // the node does not say it, and the operator then takes this
  kNote,     // bookkeeping: it changes nothing that is computed
};

struct AttrDetail {
  std::string name;
  std::string value;  // as signatures show it; of a tensor its type and first elements
  AttrSource source = AttrSource::kNode;
};

struct InputDetail {
  std::string port;
  std::string from;  // "node:output"; empty: not connected
  std::string type;  // of the producer's output, as far as the graph says it
};

struct OutputDetail {
  std::string port;
  std::string type;
  std::vector<std::string> readers;  // "node.port"
};

struct NodeDetail {
  std::string name;
  std::string type;
  std::string graph;  // the subgraph it stands in; empty: the main graph
  std::vector<AttrDetail> attributes;
  std::vector<InputDetail> inputs;
  std::vector<OutputDetail> outputs;
  std::vector<std::string> after;      // control edges: nodes that run before it
  std::vector<std::string> subgraphs;  // that it runs
  std::string file;                    // of a weight in a file: the path as stored
  std::string found;                   // where that file lies; empty: it is missing, or no file
  bool known = true;                   // npumesh has the operator
};

// Details of nodes of one graph. The types are those of the descriptors: after InferTypes
// (value_types.h) all that is known.
class NodeDetails {
 public:
  // Graph and registry must outlive the object. `path`: of the model's file, beside which weights
  // lie; `subgraph`: what the graph is called; empty for the main graph.
  NodeDetails(const Graph& graph, const OpRegistry& registry, std::string path = "",
              std::string subgraph = "");
  NodeDetail Of(const Node& node) const;

 private:
  std::vector<AttrDetail> AttributesOf(const Node& node) const;
  InputDetail InputOf(const Node& node, size_t index) const;

  const Graph& graph_;
  const OpRegistry& registry_;
  std::string path_;
  std::string subgraph_;
  std::vector<std::vector<std::vector<std::string>>> readers_;  // by node and output
};

// Details of every node, the main graph first, in the order of the file.
std::vector<NodeDetail> DetailsOf(const Model& model, const OpRegistry& registry);

// The node that is called `name`, of any graph of the model. Error (kNotFound) names the nearest.
Result<NodeDetail> FindDetail(const Model& model, const OpRegistry& registry,
                              std::string_view name);

std::string ToText(const NodeDetail& node);
nlohmann::json ToJsonObject(const NodeDetail& node);
inline void to_json(nlohmann::json& json, const NodeDetail& node) {
  json = ToJsonObject(node);
}

// The value of an attribute as ValueText (signature.h) has it, and of tensors and other structures
// what they hold, cut at some eighty characters.
std::string AttrText(const AttrValue& value);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_NODE_DETAIL_H_
