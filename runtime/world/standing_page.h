// StandingPage: what a rank says of its waits that last (standstill.h), in memory that the ranks of
// its node share. One writer; any number of readers, who are never waited for.
#ifndef NPUMESH_RUNTIME_WORLD_STANDING_PAGE_H_
#define NPUMESH_RUNTIME_WORLD_STANDING_PAGE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace npumesh {

struct alignas(64) StandingPage {
  static constexpr size_t kRanks = 512;  // of a node
  static constexpr size_t kWaits = 4;
  using Ranks = std::array<std::atomic<uint64_t>, kRanks / 64>;

  std::atomic<uint64_t> writes;  // a sequence lock: odd while the rest is written
  std::atomic<uint64_t> version;
  std::atomic<uint64_t> rounds;
  std::atomic<uint64_t> still;
  std::atomic<uint64_t> waits;
  std::array<Ranks, kWaits> missing;  // bit i: the i-th rank of the node
};
static_assert(sizeof(StandingPage) == 320);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_STANDING_PAGE_H_
