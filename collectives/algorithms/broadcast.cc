// Broadcast.
//
//   small         the root copies its data into its slot, the others from there; one
//                 synchronisation.
//   direct        in the window every rank copies from the root. Reads and writes N a rank, none at
//                 the root.
//   hierarchical  direct on the root's node, whose ranks also send one slice each to the other
//                 nodes, straight from the root's memory; there the receiver of a slice copies it
//                 to its neighbours.
#include <array>
#include <cstring>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/step_algorithms.h"

namespace npumesh {
namespace {

Status SmallBroadcast(const Call& call, Members& members) {
  if (members.rank != call.root && call.count != 0) {
    std::memcpy(call.recv, members.meeting.eager(call.root), call.bytes());
  }
  return Status();
}

Status DirectBroadcast(const Call& call, Members& members) {
  if (members.rank != call.root && call.count != 0) {
    CopyBlock(call.recv, members.send_of(call.root), call.bytes(), call.bytes());
  }
  return Status();
}

// The ranks of the root's node own a slice each, which lies in the root's memory.
Status HierarchicalBroadcast(const Call& call, Members& members) {
  const Hierarchy& hierarchy = *members.hierarchy;
  const auto root_node = static_cast<size_t>(hierarchy.node_of[static_cast<size_t>(call.root)]);
  const uint64_t width = *BytesOf(call.dtype, 1);
  const auto slice = [&](int r) {
    if (hierarchy.node_of[static_cast<size_t>(r)] != static_cast<int>(root_node)) return Slice();
    return SliceOf(call.count, width, hierarchy.index_of[static_cast<size_t>(r)],
                   static_cast<int>(hierarchy.nodes[root_node].size()));
  };
  const std::byte* own = nullptr;
  if (hierarchy.is_near(call.root) && call.count != 0) {
    own = members.send_of(call.root) + slice(members.rank).begin * width;
    NPUMESH_RETURN_IF_ERROR(DirectBroadcast(call, members));
  }
  return RelayBlocks(
      own, members, [&](int r) { return slice(r).count * width; },
      [&](int r) { return slice(r).begin * width; }, call.recv);
}

constexpr std::array<Algorithm, 7> kBroadcasts = {{
    {"small", UnlessEager, SmallBroadcast, Travel::kEager},
    {"direct", UnlessInWindow, DirectBroadcast, Travel::kInWindow},
    {"hierarchical", UnlessHierarchical, HierarchicalBroadcast, Travel::kInBuffers, true},
    {"mpi", NoObjection, MpiBroadcast},
    {"H-D_R", NoObjection, TreeBroadcast},
    {"NHR", NoObjection, NonuniformRingBroadcast},
    {"reference", NoObjection, ReferenceBroadcast},
}};

}  // namespace

std::span<const Algorithm> BroadcastTable() {
  return kBroadcasts;
}

}  // namespace npumesh
