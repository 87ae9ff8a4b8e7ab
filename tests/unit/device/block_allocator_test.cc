#include "runtime/device/block_allocator.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace npumesh {
namespace {

constexpr uint64_t kUnit = 512;

// One flag for each unit: slow, and too simple to be wrong.
class NaiveAllocator {
 public:
  explicit NaiveAllocator(uint64_t units) : taken_(units) {}

  std::optional<uint64_t> Allocate(uint64_t units) {
    std::optional<uint64_t> best;
    uint64_t best_size = 0;
    for (uint64_t begin = 0; begin < taken_.size();) {
      uint64_t end = begin;
      while (end < taken_.size() && !taken_[end]) ++end;
      if (end - begin >= units && (!best || end - begin < best_size)) {
        best = begin;
        best_size = end - begin;
      }
      begin = end + 1;
    }
    if (best) Mark(*best, units, true);
    return best;
  }
  void Free(uint64_t begin, uint64_t units) { Mark(begin, units, false); }

 private:
  void Mark(uint64_t begin, uint64_t units, bool taken) {
    for (uint64_t i = begin; i < begin + units; ++i) taken_[i] = taken;
  }
  std::vector<bool> taken_;
};

TEST(BlockAllocator, RoundsToWholeUnits) {
  BlockAllocator blocks(10 * kUnit + 100, kUnit);
  EXPECT_EQ(blocks.total_bytes(), 10 * kUnit);
  EXPECT_EQ(blocks.Allocate(1), 0u);
  EXPECT_EQ(blocks.Allocate(kUnit), kUnit);
  EXPECT_EQ(blocks.Allocate(kUnit + 1), 2 * kUnit);
  EXPECT_EQ(blocks.Allocate(1), 4 * kUnit);
  EXPECT_EQ(blocks.used_bytes(), 5 * kUnit);
  EXPECT_EQ(blocks.free_bytes(), 5 * kUnit);
}

TEST(BlockAllocator, EmptyBlocksHaveOffsetsOfTheirOwn) {
  BlockAllocator blocks(2 * kUnit, kUnit);
  EXPECT_EQ(blocks.Allocate(0), 0u);
  EXPECT_EQ(blocks.Allocate(0), kUnit);
  EXPECT_EQ(blocks.Allocate(0), std::nullopt);
}

TEST(BlockAllocator, TakesTheSmallestHoleThatFits) {
  BlockAllocator blocks(16 * kUnit, kUnit);
  const auto large = blocks.Allocate(4 * kUnit);
  ASSERT_TRUE(blocks.Allocate(kUnit));
  const auto small = blocks.Allocate(2 * kUnit);
  ASSERT_TRUE(blocks.Allocate(kUnit));
  ASSERT_TRUE(blocks.Free(*large));
  ASSERT_TRUE(blocks.Free(*small));
  EXPECT_EQ(blocks.Allocate(2 * kUnit), small);
  EXPECT_EQ(blocks.Allocate(2 * kUnit), large);
}

TEST(BlockAllocator, MergesNeighboursInEveryOrder) {
  const std::vector<std::vector<size_t>> orders = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    BlockAllocator blocks(3 * kUnit, kUnit);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(blocks.Allocate(kUnit));
    for (const size_t i : order) ASSERT_TRUE(blocks.Free(i * kUnit));
    EXPECT_EQ(blocks.largest_free_block(), 3 * kUnit);
    EXPECT_EQ(blocks.Allocate(3 * kUnit), 0u);
  }
}

TEST(BlockAllocator, RefusesWhatDoesNotFit) {
  BlockAllocator blocks(4 * kUnit, kUnit);
  EXPECT_EQ(blocks.Allocate(4 * kUnit + 1), std::nullopt);
  EXPECT_EQ(blocks.Allocate(~uint64_t{0}), std::nullopt);
  ASSERT_TRUE(blocks.Allocate(kUnit));
  EXPECT_EQ(blocks.Allocate(4 * kUnit), std::nullopt);
  EXPECT_EQ(blocks.used_bytes(), kUnit);
  BlockAllocator empty(100, kUnit);
  EXPECT_EQ(empty.Allocate(0), std::nullopt);
  EXPECT_EQ(empty.largest_free_block(), 0u);
}

TEST(BlockAllocator, RefusesToFreeWhatIsNotABlock) {
  BlockAllocator blocks(4 * kUnit, kUnit);
  ASSERT_EQ(blocks.Allocate(2 * kUnit), 0u);
  for (const uint64_t offset : {uint64_t{1}, kUnit, 2 * kUnit, 100 * kUnit}) {
    EXPECT_FALSE(blocks.Free(offset)) << offset;
  }
  EXPECT_TRUE(blocks.Free(0));
  EXPECT_FALSE(blocks.Free(0));
  EXPECT_EQ(blocks.used_bytes(), 0u);
}

TEST(BlockAllocator, RemembersItsPeak) {
  BlockAllocator blocks(8 * kUnit, kUnit);
  const auto first = blocks.Allocate(5 * kUnit);
  ASSERT_TRUE(blocks.Free(*first));
  ASSERT_TRUE(blocks.Allocate(kUnit));
  EXPECT_EQ(blocks.peak_bytes(), 5 * kUnit);
}

TEST(BlockAllocator, AgreesWithTheNaiveOne) {
  constexpr uint64_t kUnits = 256;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    BlockAllocator blocks(kUnits * kUnit, kUnit);
    NaiveAllocator naive(kUnits);
    std::vector<std::pair<uint64_t, uint64_t>> live;  // offset, units
    uint64_t used = 0;
    for (int step = 0; step < 2000; ++step) {
      if (live.empty() || random() % 100 < 55) {
        const uint64_t units = 1 + random() % (random() % 8 == 0 ? 64 : 6);
        const auto offset = blocks.Allocate(units * kUnit - random() % kUnit);
        const auto expected = naive.Allocate(units);
        ASSERT_EQ(offset.has_value(), expected.has_value()) << "seed " << seed << " step " << step;
        if (!offset) continue;
        ASSERT_EQ(*offset, *expected * kUnit) << "seed " << seed << " step " << step;
        live.emplace_back(*offset, units);
        used += units * kUnit;
      } else {
        const size_t pick = random() % live.size();
        const auto [offset, units] = live[pick];
        ASSERT_TRUE(blocks.Free(offset));
        naive.Free(offset / kUnit, units);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(pick));
        used -= units * kUnit;
      }
      ASSERT_EQ(blocks.used_bytes(), used);
    }
    for (const auto& [offset, units] : live) ASSERT_TRUE(blocks.Free(offset));
    EXPECT_EQ(blocks.largest_free_block(), kUnits * kUnit);
  }
}

}  // namespace
}  // namespace npumesh
