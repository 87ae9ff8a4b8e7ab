// AllToAll, AllToAllV and AllToAllVC.
//
//   direct        in the window every rank fetches its block from each member, whose meeting line
//                 says where it lies. Reads and writes what it receives.
//   hierarchical  the same in the node; blocks between nodes go straight from rank to rank.
#include <array>
#include <cstring>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

void Fetch(const Call& call, const Members& members, int peer) {
  const uint64_t bytes = call.recv_bytes[static_cast<size_t>(peer)];
  if (bytes == 0) return;
  std::memcpy(call.recv + call.recv_at[static_cast<size_t>(peer)], members.block_of(peer), bytes);
}

Status Direct(const Call& call, Members& members) {
  for (int k = 0; k < members.size; ++k) Fetch(call, members, (members.rank + k) % members.size);
  return Status();
}

Status Hierarchical(const Call& call, Members& members) {
  Mail mail(members);
  for (int r = 0; r < members.size; ++r) {
    const auto i = static_cast<size_t>(r);
    if (members.layers->is_near(r)) continue;
    mail.Send(r, call.send + call.send_at[i], call.send_bytes[i]);
    mail.Receive(r, call.recv + call.recv_at[i], call.recv_bytes[i]);
  }
  NPUMESH_RETURN_IF_ERROR(mail.Deliver());
  for (const int peer : members.layers->neighbours()) Fetch(call, members, peer);
  return Status();
}

constexpr std::array<Algorithm, 4> kTable = {{
    {"direct", UnlessInWindow, Direct},
    {"hierarchical", UnlessLayered, Hierarchical, nullptr, true},
    {"mpi", NoObjection, MpiAllToAll},
    {"reference", NoObjection, ReferenceAllToAll},
}};

}  // namespace

std::span<const Algorithm> AllToAllTable() {
  return kTable;
}

}  // namespace npumesh
