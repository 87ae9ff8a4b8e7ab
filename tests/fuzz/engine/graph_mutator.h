// Changes models the way broken exporters and attackers do; equal seeds give equal changes. The
// result has the structure of a graph (Graph::Verify), but need not mean anything.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_GRAPH_MUTATOR_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_GRAPH_MUTATOR_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "tests/fuzz/engine/dice.h"

namespace npumesh::fuzz {

class GraphMutator {
 public:
  explicit GraphMutator(uint64_t seed);

  // One to four changes: attributes of extreme values, constants of extreme values, edges to other
  // values, descriptors of other types, nodes twice or gone, types changed for registered ones,
  // control edges. `did` says in words what was changed.
  Model Mutate(Model model, std::string& did);

 private:
  bool Change(Graph& graph, std::string& did);
  bool ChangeAttribute(Graph& graph, std::string& did);
  bool ChangeConstant(Graph& graph, std::string& did);
  bool ChangeEdge(Graph& graph, std::string& did);
  bool ChangeDescriptor(Graph& graph, std::string& did);
  bool ChangeType(Graph& graph, std::string& did);
  bool CopyNode(Graph& graph, std::string& did);
  bool DropNode(Graph& graph, std::string& did);
  bool AddControl(Graph& graph, std::string& did);

  NodeId AnyNode(const Graph& graph);
  int64_t Extreme();
  AttrValue ExtremeOf(const AttrValue& value);

  Dice dice_;
  std::vector<std::string> types_;  // registered
};

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_GRAPH_MUTATOR_H_
