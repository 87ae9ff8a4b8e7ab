// PartChoice: which static parts of a graph one compilation can use. The first compilation of a
// graph chooses them; every compilation checks which are still what they were made from.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ENGINE_PLAN_PART_CHOICE_H_
#define NPUMESH_GRAPH_ENGINE_PLAN_PART_CHOICE_H_

#include <set>
#include <vector>

#include "graph/engine/analyse/graph_analysis.h"
#include "graph/engine/plan/static_parts.h"

namespace npumesh {

class PartChoice {
 public:
  // Both must outlive it.
  PartChoice(const GraphAnalysis& graph, GroupProvider* groups);

  // Finds the static operators if this compilation chooses the parts. REQUIRES: the nodes are
  // ordered. Errors as StaticOperators.
  Status FindStaticOperators();

  // The node belongs to a part that was chosen by a compilation before this one.
  bool Keeps(NodeId id) const;

  // The parts that fit this compilation, in their order; they belong to the shared StaticParts.
  // Chooses them in the first compilation. REQUIRES: types and fusions are known.
  std::vector<StaticPart*> Parts();

 private:
  using Fusions = std::vector<std::vector<NodeId>>;  // by fused step: its nodes

  void ChooseFirst(const Fusions& fusions);
  // Tells later compilations what inference found for static nodes.
  void Remember();
  // Operators that the next compilation computes anew, although they are static perhaps: something
  // that they are made from is not.
  std::set<NodeId> ComputedAnew() const;
  // Static, and its result is a constant of every plan.
  bool Folds(NodeId id) const;
  // By part: the storages of its nodes that others read.
  std::vector<std::set<Value>> StoragesReadOutside(const std::vector<StaticPart>& parts) const;
  bool Fits(const StaticPart& part, const Fusions& fusions,
            const std::set<Value>& read_outside) const;

  const GraphAnalysis& graph_;
  GroupProvider* groups_;
  StaticParts* shared_;       // null: nothing is shared
  bool chooses_ = false;      // as the first compilation of the graph
  std::vector<bool> static_;  // by node id, then
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_PLAN_PART_CHOICE_H_
