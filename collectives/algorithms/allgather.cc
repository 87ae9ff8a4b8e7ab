// AllGather in the window: every rank copies every block from its owner, starting with its right
// neighbour's so that the ranks do not all read the same one. Reads and writes n*N a rank.
#include <array>
#include <cstring>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

Status Direct(const Call& call, Members& members) {
  const uint64_t bytes = call.bytes();
  for (int k = 0; k < members.size; ++k) {
    const int peer = (members.rank + k) % members.size;
    std::byte* block = call.recv + static_cast<uint64_t>(peer) * bytes;
    const std::byte* source = members.send_of(peer);
    if (source != block && bytes != 0) std::memmove(block, source, bytes);
  }
  return Status();
}

constexpr std::array<Algorithm, 3> kTable = {{
    {"direct", UnlessInWindow, Direct},
    {"mpi", NoObjection, MpiAllGather},
    {"reference", NoObjection, ReferenceAllGather},
}};

}  // namespace

std::span<const Algorithm> AllGatherTable() {
  return kTable;
}

}  // namespace npumesh
