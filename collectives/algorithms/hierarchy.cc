#include "collectives/algorithms/hierarchy.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

// Memory for the operands of one round, over all distant members.
constexpr uint64_t kStagingBytes = uint64_t{16} << 20;

// Elements of a round.
uint64_t RoundCount(int size, uint64_t width) {
  const uint64_t bytes = kStagingBytes / static_cast<uint64_t>(size);
  return std::max<uint64_t>(bytes, 4096) / width;
}

}  // namespace

std::unique_ptr<Hierarchy> Hierarchy::Of(World& world, const std::string& name,
                                         const std::vector<int>& world_ranks, int rank) {
  auto hierarchy = std::make_unique<Hierarchy>();
  std::map<int, int> index;  // world's node -> ours
  for (size_t r = 0; r < world_ranks.size(); ++r) {
    const int world_node = world.node_of()[static_cast<size_t>(world_ranks[r])];
    const auto [it, added] = index.try_emplace(world_node, static_cast<int>(index.size()));
    if (added) hierarchy->nodes.emplace_back();
    std::vector<int>& node = hierarchy->nodes[static_cast<size_t>(it->second)];
    hierarchy->node_of.push_back(it->second);
    hierarchy->index_of.push_back(static_cast<int>(node.size()));
    node.push_back(static_cast<int>(r));
  }
  hierarchy->node = hierarchy->node_of[static_cast<size_t>(rank)];
  for (const std::vector<int>& node : hierarchy->nodes) {
    if (node.size() > Meeting::kMaxSlotRanks) return nullptr;
  }
  std::vector<int> neighbours;
  for (const int peer : hierarchy->neighbours()) {
    neighbours.push_back(world_ranks[static_cast<size_t>(peer)]);
  }
  hierarchy->meeting = Meeting::Of(world, name + " in node", neighbours);
  return hierarchy;
}

int Hierarchy::Counterpart(int peer, size_t to) const {
  const size_t index = static_cast<size_t>(index_of[static_cast<size_t>(peer)]);
  return nodes[to][index % nodes[to].size()];
}

Mail::Mail(const Members& members)
    : members_(members),
      out_(static_cast<size_t>(members.size)),
      in_(static_cast<size_t>(members.size)) {}

void Mail::Send(int peer, const std::byte* data, uint64_t bytes) {
  if (bytes != 0) out_[static_cast<size_t>(peer)].emplace_back(data, bytes);
}

void Mail::Receive(int peer, std::byte* data, uint64_t bytes) {
  if (bytes != 0) in_[static_cast<size_t>(peer)].emplace_back(data, bytes);
}

// Step k goes to the k-th on the right and comes from the k-th on the left. The i-th messages of a
// step wait for nothing but the i-th ones of the partners, so no circle of waiting can close.
Status Mail::Deliver() {
  const size_t n = out_.size();
  const auto me = static_cast<size_t>(members_.rank);
  for (size_t k = 1; k < n; ++k) {
    const size_t right = (me + k) % n;
    const size_t left = (me + n - k) % n;
    for (size_t i = 0; i < std::max(out_[right].size(), in_[left].size()); ++i) {
      const bool sends = i < out_[right].size();
      const bool receives = i < in_[left].size();
      NPUMESH_RETURN_IF_ERROR(members_.world.transport().Exchange(
          sends ? members_.world_ranks[right] : -1,
          sends ? out_[right][i] : std::span<const std::byte>(),
          receives ? members_.world_ranks[left] : -1,
          receives ? in_[left][i] : std::span<std::byte>(), members_.tag, members_.deadline()));
    }
  }
  return Status();
}

uint64_t RoundOf(uint64_t count, uint64_t at, int size, uint64_t width) {
  return at < count ? std::min(RoundCount(size, width), count - at) : 0;
}

Status GatherOperands(const Call& call, Members& members, const Shares& shares,
                      const StoreFn& store) {
  const uint64_t width = *BytesOf(call.dtype, 1);
  const uint64_t round = RoundCount(members.size, width);
  const Hierarchy& hierarchy = *members.hierarchy;
  uint64_t longest = 0;
  for (int r = 0; r < members.size; ++r) longest = std::max(longest, shares.count(r));
  std::vector<std::vector<std::byte>> staging(static_cast<size_t>(members.size));
  for (uint64_t at = 0; at < longest; at += round) {
    const uint64_t count = RoundOf(shares.count(members.rank), at, members.size, width);
    std::vector<const void*> inputs;
    Mail mail(members);
    for (int r = 0; r < members.size; ++r) {
      if (hierarchy.is_near(r)) {
        inputs.push_back(count == 0 ? nullptr : shares.near(r) + at * width);
        continue;
      }
      std::vector<std::byte>& operand = staging[static_cast<size_t>(r)];
      operand.resize(count * width);
      inputs.push_back(operand.data());
      mail.Receive(r, operand.data(), count * width);
      const uint64_t theirs = RoundOf(shares.count(r), at, members.size, width);
      if (theirs != 0) mail.Send(r, shares.mine(r) + at * width, theirs * width);
    }
    NPUMESH_RETURN_IF_ERROR(mail.Deliver());
    NPUMESH_RETURN_IF_ERROR(store(inputs, at, count));
  }
  return Status();
}

Status RelayBlocks(const std::byte* own, Members& members, const PerOwner& bytes,
                   const PerOwner& at, std::byte* recv) {
  const Hierarchy& hierarchy = *members.hierarchy;
  const auto here = static_cast<size_t>(hierarchy.node);
  Mail mail(members);
  for (size_t node = 0; node < hierarchy.nodes.size(); ++node) {
    if (node != here)
      mail.Send(hierarchy.Counterpart(members.rank, node), own, bytes(members.rank));
  }
  const auto relayed = [&](int owner) {
    return !hierarchy.is_near(owner) && hierarchy.Counterpart(owner, here) == members.rank;
  };
  for (int r = 0; r < members.size; ++r) {
    if (relayed(r)) mail.Receive(r, recv + at(r), bytes(r));
  }
  NPUMESH_RETURN_IF_ERROR(mail.Deliver());
  for (int r = 0; r < members.size; ++r) {
    if (!relayed(r) || bytes(r) == 0) continue;
    for (const int peer : hierarchy.neighbours()) {
      if (peer == members.rank) continue;
      std::memcpy(members.recv_of(peer) + at(r), recv + at(r), bytes(r));
    }
  }
  return Status();
}

}  // namespace npumesh
