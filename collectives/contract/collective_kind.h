// CollectiveKind: the collectives, and one table of what they are.
//
// A new kind is a number and a row here, and a table of algorithms (algorithms/algorithm.h).
#ifndef NPUMESH_COLLECTIVES_CONTRACT_COLLECTIVE_KIND_H_
#define NPUMESH_COLLECTIVES_CONTRACT_COLLECTIVE_KIND_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace npumesh {

// Never renumber: the values stand in flight records.
enum class CollectiveKind : uint32_t {
  kNone = 0,
  kBarrier = 1,
  kAllReduce = 2,
  kAllGather = 3,
  kReduceScatter = 4,
  kBroadcast = 5,
  kAllToAll = 6,
  kAllToAllV = 7,
  kReduce = 8,
  kScatter = 9,
  kReduceScatterV = 10,
  kAllGatherV = 11,
  kAllToAllVC = 12,
  kSendRecv = 13,  // between two ranks; not a matter of the group
};

// What one rank hands in or receives.
enum class Portion : uint8_t {
  kNothing,
  kBlock,        // the elements that the call counts
  kBlockAtRoot,  // the same at the root, nothing elsewhere
  kAllBlocks,    // a block for each rank of the group
  kAllAtRoot,    // the same at the root, nothing elsewhere
  kListed,       // blocks as the call lists them, one for each rank
};

struct KindTraits {
  CollectiveKind kind = CollectiveKind::kNone;
  std::string_view name;  // "allreduce"
  bool reduces = false;
  bool has_root = false;
  Portion send = Portion::kNothing;
  Portion recv = Portion::kNothing;
  // The kind whose choice in HCCL_ALGO holds for this one; kNone: HCCL_ALGO does not name it.
  CollectiveKind chosen_as = CollectiveKind::kNone;
};

// By number.
inline constexpr std::array<KindTraits, 14> kKinds = {{
    {.kind = CollectiveKind::kNone, .name = "nothing"},
    {.kind = CollectiveKind::kBarrier, .name = "barrier"},
    {.kind = CollectiveKind::kAllReduce,
     .name = "allreduce",
     .reduces = true,
     .send = Portion::kBlock,
     .recv = Portion::kBlock,
     .chosen_as = CollectiveKind::kAllReduce},
    {.kind = CollectiveKind::kAllGather,
     .name = "allgather",
     .send = Portion::kBlock,
     .recv = Portion::kAllBlocks,
     .chosen_as = CollectiveKind::kAllGather},
    {.kind = CollectiveKind::kReduceScatter,
     .name = "reducescatter",
     .reduces = true,
     .send = Portion::kAllBlocks,
     .recv = Portion::kBlock,
     .chosen_as = CollectiveKind::kReduceScatter},
    {.kind = CollectiveKind::kBroadcast,
     .name = "broadcast",
     .has_root = true,
     .send = Portion::kBlock,
     .recv = Portion::kBlock,
     .chosen_as = CollectiveKind::kBroadcast},
    {.kind = CollectiveKind::kAllToAll,
     .name = "alltoall",
     .send = Portion::kAllBlocks,
     .recv = Portion::kAllBlocks,
     .chosen_as = CollectiveKind::kAllToAll},
    {.kind = CollectiveKind::kAllToAllV,
     .name = "alltoallv",
     .send = Portion::kListed,
     .recv = Portion::kListed,
     .chosen_as = CollectiveKind::kAllToAll},
    {.kind = CollectiveKind::kReduce,
     .name = "reduce",
     .reduces = true,
     .has_root = true,
     .send = Portion::kBlock,
     .recv = Portion::kBlockAtRoot,
     .chosen_as = CollectiveKind::kReduce},
    {.kind = CollectiveKind::kScatter,
     .name = "scatter",
     .has_root = true,
     .send = Portion::kAllAtRoot,
     .recv = Portion::kBlock,
     .chosen_as = CollectiveKind::kScatter},
    {.kind = CollectiveKind::kReduceScatterV,
     .name = "reducescatterv",
     .reduces = true,
     .send = Portion::kListed,
     .recv = Portion::kListed,
     .chosen_as = CollectiveKind::kReduceScatter},
    {.kind = CollectiveKind::kAllGatherV,
     .name = "allgatherv",
     .send = Portion::kListed,
     .recv = Portion::kListed,
     .chosen_as = CollectiveKind::kAllGather},
    {.kind = CollectiveKind::kAllToAllVC,
     .name = "alltoallvc",
     .send = Portion::kListed,
     .recv = Portion::kListed,
     .chosen_as = CollectiveKind::kAllToAll},
    {.kind = CollectiveKind::kSendRecv, .name = "send/recv"},
}};

static_assert([] {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (static_cast<size_t>(kKinds[i].kind) != i) return false;
  }
  return true;
}());

// For a number that is no kind, as a damaged flight record may have.
inline constexpr KindTraits kUnknownKind = {.name = "unknown collective"};

constexpr const KindTraits& TraitsOf(CollectiveKind kind) {
  const auto number = static_cast<size_t>(kind);
  return number < kKinds.size() ? kKinds[number] : kUnknownKind;
}

constexpr std::string_view Name(CollectiveKind kind) {
  return TraitsOf(kind).name;
}
constexpr bool Reduces(CollectiveKind kind) {
  return TraitsOf(kind).reduces;
}

// "allreduce "x"", or "allreduce" where the caller gave no name.
std::string NameOf(CollectiveKind kind, std::string_view node);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_COLLECTIVE_KIND_H_
