// An algorithm library: two ways to do a collective that npumesh does not have.
//
//   npumesh launch -n 4 -- bench allreduce -b 64 -e 1M -f 16
//       --algorithm-library ./libdoubling_algorithm.so
//
//   doubling   AllReduce by messages in log2 n steps: each rank exchanges all it has with the
//              partner at distance 1, 2, 4, ..., and adds. Every rank adds the same pairs in the
//              same steps, so all have the same bits. For 2, 4, 8, ... ranks.
//   pushing    AllGather in shared memory: each rank stores its block into the buffers of all,
//              where npumesh's own row lets each fetch the blocks of the others.
#include <bit>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/algorithms/custom_algorithm.h"

namespace {

using npumesh::Call;
using npumesh::Circle;
using npumesh::CollectiveKind;
using npumesh::Facts;
using npumesh::Members;
using npumesh::Status;

// Looks at nothing but the facts, which are equal on all ranks.
std::string_view UnlessPowerOfTwo(const Facts& facts) {
  if (!facts.reduces) return "this type or operation has no reduction";
  return std::has_single_bit(static_cast<unsigned>(facts.size)) ? ""
                                                                : "it takes 2, 4, 8, ... ranks";
}

Status Doubling(const Call& call, Members& members) {
  if (call.count == 0) return Status();
  if (call.recv != call.send) std::memcpy(call.recv, call.send, call.bytes());
  const npumesh::CombineFn combine = npumesh::FindCombine(call.dtype, call.op);
  const std::span<std::byte> mine(call.recv, call.bytes());
  std::vector<std::byte> theirs(mine.size());
  const Circle circle(members);
  for (int distance = 1; distance < members.size; distance *= 2) {
    const int partner = members.rank ^ distance;
    NPUMESH_RETURN_IF_ERROR(circle.Step(partner, mine, partner, theirs));
    combine(theirs.data(), mine.data(), call.count);
  }
  return Status();
}

// All ranks have come, so their buffers can be written, and none leaves before all have written.
Status Pushing(const Call& call, Members& members) {
  const uint64_t bytes = call.bytes();
  for (int step = 0; step < members.size; ++step) {
    const int peer = (members.rank + step) % members.size;
    std::byte* const to = members.recv_of(peer) + static_cast<uint64_t>(members.rank) * bytes;
    npumesh::CopyBlock(to, call.send, bytes, bytes * static_cast<uint64_t>(members.size));
  }
  return Status();
}

}  // namespace

NPUMESH_ALGORITHM_LIBRARY(list) {
  list.Add(CollectiveKind::kAllReduce, {"doubling", UnlessPowerOfTwo, Doubling});
  list.Add(CollectiveKind::kAllGather, {"pushing", npumesh::UnlessInWindow, Pushing});
}
