// AllToAll and AllToAllV in the window: every rank fetches its block from each member, whose
// meeting line says where it lies. Reads and writes what it receives.
#include <array>
#include <cstring>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

Status Direct(const Call& call, Members& members) {
  for (int k = 0; k < members.size; ++k) {
    const int peer = (members.rank + k) % members.size;
    const uint64_t bytes = call.recv_bytes[static_cast<size_t>(peer)];
    if (bytes == 0) continue;
    std::memcpy(call.recv + call.recv_at[static_cast<size_t>(peer)],
                members.send_of(peer) + members.meeting.block_at(peer), bytes);
  }
  return Status();
}

constexpr std::array<Algorithm, 3> kTable = {{
    {"direct", UnlessInWindow, Direct},
    {"mpi", NoObjection, MpiAllToAll},
    {"reference", NoObjection, ReferenceAllToAll},
}};

}  // namespace

std::span<const Algorithm> AllToAllTable() {
  return kTable;
}

}  // namespace npumesh
