// AllGather and AllGatherV.
//
//   small         every rank copies its block into its slot, and all slots into its output. Reads
//                 n*N, writes (n+1)*N a rank; one synchronisation.
//   direct        in the window every rank copies every block from its owner, starting with its
//                 right neighbour's so that the ranks do not all read the same one. Reads and
//                 writes all blocks a rank.
//   hierarchical  direct for the blocks of this node; each of the others comes to one rank of the
//                 node, which copies it to its neighbours.
#include <array>
#include <cstring>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/fetch.h"
#include "collectives/algorithms/step_algorithms.h"

namespace npumesh {
namespace {

const std::byte* SendBufferOf(const Call&, const Members& members, int owner) {
  return members.send_of(owner);
}

Status SmallAllGather(const Call& call, Members& members) {
  const uint64_t bytes = call.bytes();
  for (int r = 0; r < members.size && bytes != 0; ++r) {
    std::byte* const to = call.recv + static_cast<uint64_t>(r) * bytes;
    const std::byte* const from = members.meeting.eager(r);
    if (to != from) std::memcpy(to, from, bytes);  // equal for the own block in place
  }
  return Status();
}

Status HierarchicalAllGather(const Call& call, Members& members) {
  FetchFromNode<SendBufferOf>(call, members);
  return RelayBlocks(
      call.send, members, [&](int r) { return call.recv_block_bytes(r); },
      [&](int r) { return call.recv_block_at(r); }, call.recv);
}

constexpr std::array<Algorithm, 8> kAllGathers = {{
    {"small", UnlessEager, SmallAllGather, Travel::kEager},
    {"direct", UnlessInWindow, FetchFromAll<SendBufferOf>, Travel::kInWindow},
    {"hierarchical", UnlessHierarchical, HierarchicalAllGather, Travel::kInBuffers, true},
    {"mpi", NoObjection, MpiAllGather},
    {"ring", NoObjection, StepAllGather<kRing>},
    {"H-D_R", NoObjection, StepAllGather<kHalvingDoubling>},
    {"NHR", NoObjection, StepAllGather<kNonuniformRing>},
    {"reference", NoObjection, ReferenceAllGather},
}};

// Every rank sends the same block to every rank, which is what these rows make of the arrays.
constexpr std::array<Algorithm, 4> kAllGatherVs = {{
    {"direct", UnlessInWindow, FetchFromAll<SendBufferOf>, Travel::kInWindow},
    {"hierarchical", UnlessHierarchical, HierarchicalAllGather, Travel::kInBuffers, true},
    {"mpi", NoObjection, MpiAllToAll},
    {"reference", NoObjection, ReferenceAllToAll},
}};

}  // namespace

std::span<const Algorithm> AllGatherTable() {
  return kAllGathers;
}

std::span<const Algorithm> AllGatherVTable() {
  return kAllGatherVs;
}

}  // namespace npumesh
