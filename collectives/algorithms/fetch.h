// Fetch: how rows of AllGather and AllToAll copy blocks in the window, straight from the buffers of
// the members that have them.
#ifndef NPUMESH_COLLECTIVES_ALGORITHMS_FETCH_H_
#define NPUMESH_COLLECTIVES_ALGORITHMS_FETCH_H_

#include <cstddef>
#include <cstdint>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {

// Where what a member has for this rank begins.
using SourceFn = const std::byte* (*)(const Call&, const Members&, int peer);

// In a buffer with a block for each rank. Every rank knows where equal blocks lie; the meeting
// knows where listed ones lie.
inline const std::byte* BlockFrom(const Call& call, const Members& members, int peer) {
  if (!call.send_at.empty()) return members.block_of(peer);
  return members.send_of(peer) + call.send_block_at(members.rank);
}

// Copies one block to its place in the receive buffer. `output`: OutputBytes of the call.
template <SourceFn kSource>
void FetchFrom(int peer, const Call& call, const Members& members, uint64_t output) {
  const uint64_t bytes = call.recv_block_bytes(peer);
  if (bytes == 0) return;
  CopyBlock(call.recv + call.recv_block_at(peer), kSource(call, members, peer), bytes, output);
}

// From all members. Each rank begins with itself and its right neighbour, so that they do not all
// read the same one.
template <SourceFn kSource>
Status FetchFromAll(const Call& call, Members& members) {
  const uint64_t output = OutputBytes(call, members.size);
  for (int k = 0; k < members.size; ++k) {
    FetchFrom<kSource>((members.rank + k) % members.size, call, members, output);
  }
  return Status();
}

// From the members of this node. REQUIRES: Facts::hierarchical.
template <SourceFn kSource>
void FetchFromNode(const Call& call, const Members& members) {
  const uint64_t output = OutputBytes(call, members.size);
  for (const int peer : members.hierarchy->neighbours()) {
    FetchFrom<kSource>(peer, call, members, output);
  }
}

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_ALGORITHMS_FETCH_H_
