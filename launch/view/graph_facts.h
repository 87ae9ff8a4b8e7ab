// GraphFacts: what a person wants to know about a graph before running it.
#ifndef NPUMESH_LAUNCH_VIEW_GRAPH_FACTS_H_
#define NPUMESH_LAUNCH_VIEW_GRAPH_FACTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"
#include "runtime/base/text/json.h"

namespace npumesh {

struct PortFacts {
  int64_t index = 0;
  std::string name;
  TensorType type;   // with unknown dimensions
  bool ref = false;  // updated in place
};

// Collectives of one type in one group.
struct CollectiveFacts {
  int count = 0;
  uint64_t bytes = 0;  // of the inputs whose type is known
  int unknown = 0;     // inputs whose type only a run knows
};

struct GraphFacts {
  std::string name;
  size_t nodes = 0;
  size_t edges = 0;
  // Type and number of nodes, most frequent first.
  std::vector<std::pair<std::string, int>> operators;
  std::vector<std::string> unknown;  // types that npumesh cannot run
  std::vector<PortFacts> inputs;
  std::vector<PortFacts> outputs;
  int parameters = 0;
  uint64_t parameter_bytes = 0;
  std::map<std::string, uint64_t> files;  // external weights: path as written, bytes
  std::map<std::string, std::map<std::string, CollectiveFacts>> collectives;  // group, type
  std::vector<std::pair<std::string, size_t>> subgraphs;                      // name, nodes
};

// Facts of the main graph; operators, parameters and collectives include the subgraphs.
// `collective_inputs` comes from CollectiveInputs (launch/view/collective_sizes.h) and stands above
// what the file declares.
GraphFacts Examine(const Model& model, const OpRegistry& registry,
                   const std::map<NodeId, TensorType>& collective_inputs = {});

std::string ToText(const GraphFacts& facts);
nlohmann::json ToJsonObject(const GraphFacts& facts);

// "1.5 KiB", "3 B"
std::string HumanBytes(uint64_t bytes);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_GRAPH_FACTS_H_
