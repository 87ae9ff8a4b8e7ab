// What the files of the Hcom operators share: collectives over a group of ranks. HCCL
// reference 5.1.
//
// The communicator of a group is asked for when the kernel is made, which is collective over the
// group; every call carries the node's name, which stands in the messages of all ranks. bool
// travels as int8.
#ifndef NPUMESH_GRAPH_OPS_COLLECTIVE_H_
#define NPUMESH_GRAPH_OPS_COLLECTIVE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "collectives/communicator.h"
#include "graph/ops/op_registry.h"

namespace npumesh::hcom {

// The communicator of the node's group, which `attribute` names. Errors: kUnsupported in a graph
// without other ranks. Collective over the group when it is first asked for.
Result<Communicator*> GroupOf(const OpContext& op, std::string_view attribute = "group");

// Members of the node's group, of whom this rank must be one. Not collective.
Result<GroupProvider::Members> MembersOf(const OpContext& op, std::string_view attribute = "group");

// A rank of the group in an attribute. Error: kInvalidArgument when the group has no such member.
Result<int> RankIn(const OpContext& op, std::string_view attribute);

// Fusion joins collectives on hardware; here it changes nothing but must make sense.
// `by_gradients`: the operator knows fusion 1.
Status CheckFusion(const OpContext& op, bool by_gradients);

// The attribute "reduction".
Result<ReduceOp> Reduction(const OpContext& op);

// The dtype on the wire. Errors: kUnsupported for what collectives cannot carry.
Result<DataType> WireType(const OpContext& op, DataType dtype);

uint64_t Count(const TensorType& type);

void Add(OpRegistry& registry, OpSchema schema, CollectiveTrait trait, InferFn infer,
         MakeKernelFn make, std::vector<std::string_view> value_inputs = {});

// Parts of RegisterCollectiveOps.
void RegisterBlockOps(OpRegistry& registry);    // the AllToAll family and the V variants
void RegisterMessageOps(OpRegistry& registry);  // HcomSend, HcomReceive, DistributeBarrier

}  // namespace npumesh::hcom

#endif  // NPUMESH_GRAPH_OPS_COLLECTIVE_H_
