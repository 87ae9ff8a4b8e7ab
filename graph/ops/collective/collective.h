// What the operators that meet other ranks share: collectives over a group of ranks.
//
// A communicator is asked for when the kernel is prepared, which is collective over the group.
// Every call carries the name of its node, which stands in the messages of all ranks. bool travels
// as int8.
#ifndef NPUMESH_GRAPH_OPS_COLLECTIVE_COLLECTIVE_H_
#define NPUMESH_GRAPH_OPS_COLLECTIVE_COLLECTIVE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/communicator.h"
#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh::hcom {

// A plan that meets the node's group.
struct Meeting : Planned {
  // From Meet, or MeetGroup.
  std::string node;
  Communicator* group = nullptr;
};

// The Prepare of operators whose attribute "group" names the group. Collective over the group when
// it is first asked for. Errors: kUnsupported in a graph without other ranks.
Status Meet(const OpContext& op, Meeting* plan);
// The same for the group that `attribute` names.
Status MeetGroup(const OpContext& op, std::string_view attribute, Meeting* plan);

// The operator of a signature, as Define makes it, that meets other ranks.
template <auto PlanFn, auto RunFn, auto PrepareFn = Meet>
Operator Collective(std::string_view signature, CollectiveTrait trait = {},
                    std::vector<std::string_view> value_inputs = {}) {
  Operator op = Define<PlanFn, RunFn, PrepareFn>(signature);
  op.collective = std::move(trait);
  op.value_inputs = std::move(value_inputs);
  return op;
}

// One that moves or reduces data and computes nothing besides.
template <auto PlanFn, auto RunFn>
Operator PureCollective(std::string_view signature, CollectiveTrait trait = {},
                        std::vector<std::string_view> value_inputs = {}) {
  trait.pure = true;
  return Collective<PlanFn, RunFn>(signature, std::move(trait), std::move(value_inputs));
}

// The ranks of a group, and this one among them.
struct Ring {
  int64_t ranks = 1, rank = 0;
};

// What plans read. All object to what does not fit.

// The node's group, which `attribute` names and of which this rank must be a member; this rank
// alone after an objection. Not collective.
Ring RingOf(const OpContext& op, Check& check, std::string_view attribute = "group");

// A collective on one tensor.
struct Call : Meeting {
  DataType wire = DataType::kUndefined;
  uint64_t count = 0;  // elements of the input
  ReduceOp reduction = ReduceOp::kSum;
  int rank = 0;  // the root, or the other rank of a message
};

// The call for a tensor.
Call CallFor(const TensorType& x, Check& check);

// Fusion joins collectives on hardware; here it changes nothing but must make sense.
// `by_gradients`: the operator knows fusion 1.
void CheckFusion(const OpContext& op, Check& check, bool by_gradients = false);

// The attribute "reduction".
ReduceOp Reduction(const OpContext& op, Check& check);

// The dtype on the wire; kUnsupported for what collectives cannot carry.
DataType WireType(DataType dtype, Check& check);

// The shape of "x" with its first dimension divided by the ranks of the group.
Shape DividedByRanks(const OpContext& op, Check& check);

uint64_t Count(const TensorType& type);

}  // namespace npumesh::hcom

#endif  // NPUMESH_GRAPH_OPS_COLLECTIVE_COLLECTIVE_H_
