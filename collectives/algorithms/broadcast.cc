// Broadcast in the window: everybody copies from the root. Reads and writes N a rank, none at the
// root.
#include <array>
#include <cstring>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

Status Direct(const Call& call, Members& members) {
  if (members.rank != call.root && call.count != 0) {
    std::memcpy(call.recv, members.send_of(call.root), call.bytes());
  }
  return Status();
}

constexpr std::array<Algorithm, 3> kTable = {{
    {"direct", UnlessInWindow, Direct},
    {"mpi", NoObjection, MpiBroadcast},
    {"reference", NoObjection, ReferenceBroadcast},
}};

}  // namespace

std::span<const Algorithm> BroadcastTable() {
  return kTable;
}

}  // namespace npumesh
