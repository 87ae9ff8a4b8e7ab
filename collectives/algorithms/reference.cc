// The `reference` rows: what the collectives mean, in the plainest words. Every rank sends what it
// has to all others by messages and computes alone, rank 0 first. Inputs are copied, so in-place is
// safe.
#include <algorithm>
#include <cstring>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

// Sends block r of `mine` to member r and returns the blocks the members sent here, by group rank.
Result<std::vector<std::vector<std::byte>>> SwapAll(
    const Members& members, const std::vector<std::span<const std::byte>>& mine,
    const std::vector<uint64_t>& expected) {
  const auto n = static_cast<size_t>(members.size);
  const auto me = static_cast<size_t>(members.rank);
  std::vector<std::vector<std::byte>> blocks(n);
  blocks[me].assign(mine[me].begin(), mine[me].end());
  for (size_t k = 1; k < n; ++k) {
    const size_t to = (me + k) % n;
    const size_t from = (me + n - k) % n;
    blocks[from].resize(expected[from]);
    NPUMESH_RETURN_IF_ERROR(members.world.transport().Exchange(
        members.world_ranks[to], mine[to], members.world_ranks[from], blocks[from], members.tag,
        members.deadline()));
  }
  return blocks;
}

// Every rank gives `bytes` at `data` to every rank.
Result<std::vector<std::vector<std::byte>>> Share(const Members& members, const std::byte* data,
                                                  uint64_t bytes) {
  const auto n = static_cast<size_t>(members.size);
  return SwapAll(members, std::vector(n, std::span(data, bytes)), std::vector(n, bytes));
}

// Reduces in rank order: 16-bit floats are rounded once, as in the direct rows.
void ReduceBlocks(const Call& call, const std::vector<std::vector<std::byte>>& blocks) {
  std::vector<const void*> inputs;
  for (const auto& block : blocks) inputs.push_back(block.data());
  void* output = call.recv;
  FindReduce(call.dtype, call.op)(inputs.data(), static_cast<int>(inputs.size()), &output, 1,
                                  blocks[0].size() / *BytesOf(call.dtype, 1), false);
}

}  // namespace

Status ReferenceAllReduce(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(const auto blocks, Share(members, call.send, call.bytes()));
  ReduceBlocks(call, blocks);
  return Status();
}

Status ReferenceReduceScatter(const Call& call, Members& members) {
  const auto n = static_cast<size_t>(members.size);
  const uint64_t bytes = call.bytes();
  std::vector<std::span<const std::byte>> mine;
  for (size_t r = 0; r < n; ++r) mine.emplace_back(call.send + r * bytes, bytes);
  NPUMESH_ASSIGN_OR_RETURN(const auto blocks, SwapAll(members, mine, std::vector(n, bytes)));
  ReduceBlocks(call, blocks);
  return Status();
}

Status ReferenceAllGather(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(const auto blocks, Share(members, call.send, call.bytes()));
  std::byte* block = call.recv;
  for (const auto& from : blocks) block = std::copy(from.begin(), from.end(), block);
  return Status();
}

Status ReferenceBroadcast(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(const auto blocks, Share(members, call.recv, call.bytes()));
  const auto& from = blocks[static_cast<size_t>(call.root)];
  std::copy(from.begin(), from.end(), call.recv);
  return Status();
}

Status ReferenceReduce(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(const auto blocks, Share(members, call.send, call.bytes()));
  if (members.rank == call.root) ReduceBlocks(call, blocks);
  return Status();
}

Status ReferenceScatter(const Call& call, Members& members) {
  const auto n = static_cast<size_t>(members.size);
  const auto root = static_cast<size_t>(call.root);
  std::vector<std::span<const std::byte>> mine(n);
  for (size_t r = 0; members.rank == call.root && r < n; ++r) {
    mine[r] = std::span(call.send + r * call.bytes(), call.bytes());
  }
  std::vector<uint64_t> expected(n, 0);
  expected[root] = call.bytes();
  NPUMESH_ASSIGN_OR_RETURN(const auto blocks, SwapAll(members, mine, expected));
  std::copy(blocks[root].begin(), blocks[root].end(), call.recv);
  return Status();
}

Status ReferenceReduceScatterV(const Call& call, Members& members) {
  const auto n = static_cast<size_t>(members.size);
  std::vector<std::span<const std::byte>> mine;
  for (size_t r = 0; r < n; ++r) mine.emplace_back(call.send + call.send_at[r], call.send_bytes[r]);
  const std::vector<uint64_t> expected(call.recv_bytes.begin(), call.recv_bytes.end());
  NPUMESH_ASSIGN_OR_RETURN(const auto blocks, SwapAll(members, mine, expected));
  ReduceBlocks(call, blocks);
  return Status();
}

Status ReferenceAllToAll(const Call& call, Members& members) {
  std::vector<std::span<const std::byte>> mine;
  std::vector<uint64_t> expected;
  for (int r = 0; r < members.size; ++r) {
    mine.emplace_back(call.send + call.send_block_at(r), call.send_block_bytes(r));
    expected.push_back(call.recv_block_bytes(r));
  }
  NPUMESH_ASSIGN_OR_RETURN(const auto blocks, SwapAll(members, mine, expected));
  std::byte* out = call.recv;
  for (int r = 0; r < members.size; ++r) {
    const auto& block = blocks[static_cast<size_t>(r)];
    std::copy(block.begin(), block.end(), out + call.recv_block_at(r));
  }
  return Status();
}

}  // namespace npumesh
