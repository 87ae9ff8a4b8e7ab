// Laws: what the graphs of all ranks say about the tensors of different ranks.
//
// An abstract run of all graphs at once. The abstract value of a tensor is which ranks surely hold
// equal ones: weights with equal bytes, inputs that were equal, what a collective leaves equal
// everywhere (CollectiveTrait), and what equal operators compute from
// equal values. Everything else is free: shards of a tensor-parallel layer, for example, of which
// some are known to be pieces or partial sums of a whole because a collective puts them together.
#ifndef NPUMESH_GRAPH_COMPARE_LAWS_LAWS_H_
#define NPUMESH_GRAPH_COMPARE_LAWS_LAWS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/compare/laws/rank_graphs.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// By rank: the lowest rank that surely holds an equal tensor (a rank's own number when none below
// does); -1: the rank's graph does not have it.
using RankClasses = std::vector<int>;

struct Law {
  std::string key;   // operator
  std::string type;  // of the operator
  int output = 0;
  RankClasses classes;
  Assembly assembly = Assembly::kNone;  // how free tensors of several ranks belong together
  std::string group;                    // of the collective that puts them together
  std::string reduction;                // kReduce: "sum", ...

  // True when at least two ranks must hold equal tensors.
  bool binds() const;
};

// One law for each output of each operator and input of the main graphs, in topological order.
using LawTable = std::vector<Law>;

// Which ranks got equal values for a Data or RefData node; called with its key. Ranks that are not
// known to be equal are classes of their own.
using InputClasses = std::function<RankClasses(const std::string& key)>;

// Errors: those of LoadWeight and of MembersOfGroup, and kCorrupt for a graph with a cycle.
Result<LawTable> DeriveLaws(const RankGraphs& graphs, const OpRegistry& registry,
                            const InputClasses& inputs);

// "equal on ranks 0-3", "equal on ranks 0,1 and 2,3", "pieces along axis 0 (group tp)",
// "partial sum (group tp)", "free".
std::string ToText(const Law& law);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_LAWS_LAWS_H_
