// Reduce: as AllReduce, with the root's output as the only one.
//
//   direct        rank r reduces slice r of all inputs in rank order and stores it into the root's
//                 output. Reads N, writes N/n a rank.
//   hierarchical  the ranks of the root's node own a slice each; operands of other nodes come as
//                 messages.
#include <array>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

Status DirectReduce(const Call& call, Members& members) {
  const uint64_t width = *BytesOf(call.dtype, 1);
  const Slice slice = SliceOf(call.count, width, members.rank, members.size);
  PerMember<const void*> inputs;
  for (int r = 0; r < members.size; ++r) {
    inputs.push_back(members.send_of(r) + slice.begin * width);
  }
  void* output = members.recv_of(call.root) + slice.begin * width;
  FindReduce(call.dtype, call.op)(inputs.data(), members.size, &output, 1, slice.count,
                                  call.bytes() > kStreamBytes);
  return Status();
}

Status HierarchicalReduce(const Call& call, Members& members) {
  const Hierarchy& hierarchy = *members.hierarchy;
  const int root_node = hierarchy.node_of[static_cast<size_t>(call.root)];
  const auto owners = static_cast<int>(hierarchy.nodes[static_cast<size_t>(root_node)].size());
  const uint64_t width = *BytesOf(call.dtype, 1);
  const auto slice = [&](int r) {
    if (hierarchy.node_of[static_cast<size_t>(r)] != root_node) return Slice();
    return SliceOf(call.count, width, hierarchy.index_of[static_cast<size_t>(r)], owners);
  };
  const uint64_t begin = slice(members.rank).begin;
  const Shares shares{
      [&](int owner) { return slice(owner).count; },
      [&](int owner) { return call.send + slice(owner).begin * width; },
      [&](int peer) { return members.send_of(peer) + begin * width; },
  };
  return GatherOperands(call, members, shares,
                        [&](const std::vector<const void*>& inputs, uint64_t at, uint64_t count) {
                          if (count == 0) return Status();
                          void* output = members.recv_of(call.root) + (begin + at) * width;
                          FindReduce(call.dtype, call.op)(inputs.data(), members.size, &output, 1,
                                                          count, false);
                          return Status();
                        });
}

constexpr std::array<Algorithm, 4> kReduces = {{
    {"direct", UnlessInWindow, DirectReduce, Travel::kInWindow},
    {"hierarchical", UnlessHierarchical, HierarchicalReduce, Travel::kInBuffers, true},
    {"mpi", NoObjection, MpiReduce},
    {"reference", NoObjection, ReferenceReduce},
}};

}  // namespace

std::span<const Algorithm> ReduceTable() {
  return kReduces;
}

}  // namespace npumesh
