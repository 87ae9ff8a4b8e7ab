// AllToAll, AllToAllV and AllToAllVC.
//
//   small         AllToAll only: every rank copies its blocks into its slot and fetches its own
//                 from all slots; one synchronisation.
//   direct        in the window every rank fetches its block from each member, whose meeting line
//                 says where it lies. Reads and writes what it receives.
//   hierarchical  the same in the node; blocks between nodes go straight from rank to rank.
#include <array>
#include <cstring>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/fetch.h"

namespace npumesh {
namespace {

Status SmallAllToAll(const Call& call, Members& members) {
  const uint64_t bytes = call.bytes();
  const uint64_t mine = static_cast<uint64_t>(members.rank) * bytes;
  for (int r = 0; r < members.size && bytes != 0; ++r) {
    std::byte* const to = call.recv + static_cast<uint64_t>(r) * bytes;
    const std::byte* const from = members.meeting.eager(r) + mine;
    if (to != from) std::memcpy(to, from, bytes);  // equal for the own block in place
  }
  return Status();
}

Status HierarchicalAllToAll(const Call& call, Members& members) {
  Mail mail(members);
  for (int r = 0; r < members.size; ++r) {
    if (members.hierarchy->is_near(r)) continue;
    mail.Send(r, call.send + call.send_block_at(r), call.send_block_bytes(r));
    mail.Receive(r, call.recv + call.recv_block_at(r), call.recv_block_bytes(r));
  }
  NPUMESH_RETURN_IF_ERROR(mail.Deliver());
  FetchFromNode<BlockFrom>(call, members);
  return Status();
}

constexpr std::array<Algorithm, 5> kAllToAlls = {{
    {"small", UnlessEager, SmallAllToAll, Travel::kEager},
    {"direct", UnlessInWindow, FetchFromAll<BlockFrom>, Travel::kInWindow},
    {"hierarchical", UnlessHierarchical, HierarchicalAllToAll, Travel::kInBuffers, true},
    {"mpi", NoObjection, MpiAllToAll},
    {"reference", NoObjection, ReferenceAllToAll},
}};

}  // namespace

std::span<const Algorithm> AllToAllTable() {
  return kAllToAlls;
}

}  // namespace npumesh
