// Where packed weights lie, and what becomes of their memory.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <vector>

#include "graph/ops/toolbox/product/packed_weights.h"

namespace npumesh {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kLargePage = 2 * kMiB;

struct Allocation {
  std::shared_ptr<std::byte> memory;
  uint64_t bytes = 0;
  int mark = 0;

  void Fill() const { std::memset(memory.get(), mark, bytes); }
  bool IsFilled() const {
    const auto* const data = reinterpret_cast<const unsigned char*>(memory.get());
    return bytes == 0 || (data[0] == mark && std::memcmp(data, data + 1, bytes - 1) == 0);
  }
};

// Bytes of [data, data + bytes), whole pages, that are in memory.
uint64_t ResidentBytes(const std::byte* data, uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages(bytes / page);
  EXPECT_EQ(mincore(const_cast<std::byte*>(data), bytes, pages.data()), 0);
  uint64_t resident = 0;
  for (const unsigned char flags : pages) resident += flags % 2 * page;
  return resident;
}

TEST(PackedMemory, KeepsAllocationsApart) {
  std::mt19937 random(3);
  std::vector<Allocation> held;
  const auto any = [&](uint64_t most) {
    return std::uniform_int_distribution<uint64_t>(0, most)(random);
  };
  for (int round = 0; round < 400; ++round) {
    const uint64_t most = round % 7 == 0 ? 20 * kMiB : round % 2 == 0 ? 600 << 10 : 4096;
    const uint64_t bytes = round == 100 ? 70 * kMiB : any(most);
    held.push_back({AllocatePacked(bytes), bytes, 1 + round % 255});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(held.back().memory.get()) % 64, 0u);
    held.back().Fill();
    if (held.size() < 12) continue;
    std::swap(held[any(held.size() - 1)], held.back());
    EXPECT_TRUE(held.back().IsFilled()) << round;
    held.pop_back();
  }
  for (const Allocation& allocation : held) EXPECT_TRUE(allocation.IsFilled());
}

TEST(PackedMemory, LiesWithoutGaps) {
  constexpr uint64_t kBytes = 700 << 10;
  const auto first = AllocatePacked(kBytes), second = AllocatePacked(kBytes);
  const auto third = AllocatePacked(kBytes);  // at most one of them begins elsewhere
  EXPECT_TRUE(second.get() == first.get() + kBytes || third.get() == second.get() + kBytes);
}

TEST(PackedMemory, LargePagesOfNobodyGoBackAtOnce) {
  const uint64_t bytes = 9 * kMiB;
  const auto neighbour = AllocatePacked(kMiB);
  Allocation large{AllocatePacked(bytes), bytes, 1};
  const auto behind = AllocatePacked(kMiB);
  const Allocation before{neighbour, kMiB, 2}, after{behind, kMiB, 3};
  large.Fill();
  before.Fill();
  after.Fill();
  auto* const data = large.memory.get();
  const uint64_t skipped = kLargePage - reinterpret_cast<uintptr_t>(data) % kLargePage;
  EXPECT_EQ(ResidentBytes(data + skipped, 6 * kMiB), 6 * kMiB);
  large.memory.reset();
  EXPECT_EQ(ResidentBytes(data + skipped, 6 * kMiB), 0u);
  EXPECT_TRUE(before.IsFilled());
  EXPECT_TRUE(after.IsFilled());
}

}  // namespace
}  // namespace npumesh
