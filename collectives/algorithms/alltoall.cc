// AllToAll, AllToAllV and AllToAllVC.
//
//   small         AllToAll only: every rank copies its blocks into its slot and fetches its own
//   from
//                 all slots; one synchronisation.
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

Status Small(const Call& call, Members& members) {
  const uint64_t bytes = call.bytes();
  const uint64_t mine = static_cast<uint64_t>(members.rank) * bytes;
  for (int r = 0; r < members.size && bytes != 0; ++r) {
    std::memcpy(call.recv + static_cast<uint64_t>(r) * bytes, members.meeting.eager(r) + mine,
                bytes);
  }
  return Status();
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

constexpr std::array<Algorithm, 5> kTable = {{
    {"small", UnlessEager, Small, Travel::kEager},
    {"direct", UnlessInWindow, Direct},
    {"hierarchical", UnlessLayered, Hierarchical, Travel::kInBuffers, true},
    {"mpi", NoObjection, MpiAllToAll},
    {"reference", NoObjection, ReferenceAllToAll},
}};

}  // namespace

std::span<const Algorithm> AllToAllTable() {
  return kTable;
}

}  // namespace npumesh
