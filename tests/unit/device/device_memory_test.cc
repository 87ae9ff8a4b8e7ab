#include "runtime/device/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace npumesh {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBytes = uint64_t{1} << 20;

// Parts of ranks 0 and 1 in one array; rank 2 is on another node.
class FakeSegment final : public NodeSegment {
 public:
  std::byte* part(int world_rank) const override {
    return world_rank < 2 ? memory_->data() + static_cast<uint64_t>(world_rank) * kBytes : nullptr;
  }
  uint64_t bytes() const override { return kBytes; }

 private:
  struct alignas(4096) Memory : std::array<std::byte, 2 * kBytes> {};
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
};

class DeviceMemoryTest : public testing::Test {
 protected:
  DeviceMemory memory_{std::make_unique<FakeSegment>(), 1};
};

TEST_F(DeviceMemoryTest, BlocksAreAlignedAndInside) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{512}, uint64_t{1000}}) {
    const auto block = memory_.Allocate(bytes);
    ASSERT_TRUE(block.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*block) % kHbmAlignment, 0u);
    EXPECT_TRUE(memory_.Contains(*block, bytes));
    std::memset(*block, 1, bytes);
  }
  EXPECT_EQ(memory_.used_bytes(), 5 * kHbmAlignment);
  EXPECT_EQ(memory_.total_bytes(), kBytes);
}

TEST_F(DeviceMemoryTest, ExhaustionSaysHowMuchThereIs) {
  ASSERT_TRUE(memory_.Allocate(kBytes / 2).ok());
  const Status status = memory_.Allocate(kBytes).status();
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
  EXPECT_EQ(status.message(),
            "device memory: 1048576 bytes asked, 524288 free (largest block 524288) of 1048576; "
            "NPUMESH_HBM_SIZE changes the total");
}

// A block takes whole units, which may be more than what is not claimed.
TEST_F(DeviceMemoryTest, WhatIsClaimedIsNotGivenTwice) {
  ASSERT_TRUE(memory_.Claim(kBytes - 1).ok());
  EXPECT_EQ(memory_.Claim(2).code(), Code::kOutOfMemory);
  ASSERT_TRUE(memory_.Allocate(1).ok());
  EXPECT_EQ(memory_.Allocate(1).status().code(), Code::kOutOfMemory);
  EXPECT_EQ(memory_.Allocate(kBytes / 2).status().code(), Code::kOutOfMemory);
  memory_.Unclaim(kBytes - 1);
  EXPECT_TRUE(memory_.Allocate(kBytes / 2).ok());
}

TEST_F(DeviceMemoryTest, FreesOnlyWhatItGave) {
  const auto block = memory_.Allocate(1024);
  ASSERT_TRUE(block.ok());
  int elsewhere = 0;
  for (void* pointer : {static_cast<void*>(nullptr), static_cast<void*>(&elsewhere),
                        static_cast<void*>(static_cast<std::byte*>(*block) + 1),
                        static_cast<void*>(memory_.PeerAddress(0, 0))}) {
    const Status status = memory_.Free(pointer);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << pointer;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not the start of a block"));
  }
  EXPECT_TRUE(memory_.Free(*block).ok());
  EXPECT_EQ(memory_.Free(*block).code(), Code::kInvalidArgument);
  EXPECT_EQ(memory_.used_bytes(), 0u);
  EXPECT_EQ(memory_.peak_bytes(), 1024u);
}

TEST_F(DeviceMemoryTest, ContainsIsExactAtBothEnds) {
  const std::byte* base = memory_.PeerAddress(1, 0);
  EXPECT_TRUE(memory_.Contains(base, kBytes));
  EXPECT_FALSE(memory_.Contains(base, kBytes + 1));
  EXPECT_FALSE(memory_.Contains(base - 1, 1));
  EXPECT_TRUE(memory_.Contains(base + kBytes, 0));
  EXPECT_FALSE(memory_.Contains(base + kBytes, 1));
  EXPECT_FALSE(memory_.Contains(base + kBytes + 1, 0));
  EXPECT_FALSE(memory_.Contains(base + 1, ~uint64_t{0}));
  EXPECT_FALSE(memory_.Contains(nullptr, 0));
}

TEST_F(DeviceMemoryTest, AnOffsetNamesTheSamePlaceToPeers) {
  const auto block = memory_.Allocate(64);
  ASSERT_TRUE(block.ok());
  const uint64_t offset = memory_.OffsetOf(*block);
  EXPECT_EQ(memory_.PeerAddress(1, offset), *block);
  EXPECT_EQ(memory_.PeerAddress(0, offset) + kBytes, *block);
  EXPECT_EQ(memory_.PeerAddress(2, offset), nullptr);
}

TEST_F(DeviceMemoryTest, ThreadsShareIt) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 500; ++i) {
        const auto block = memory_.Allocate(100 + static_cast<uint64_t>(i % 7) * 600);
        ASSERT_TRUE(block.ok());
        std::memset(*block, t, 100);
        EXPECT_EQ(static_cast<unsigned char*>(*block)[99], t);
        ASSERT_TRUE(memory_.Free(*block).ok());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(memory_.used_bytes(), 0u);
}

// Which bytes are a client's, against a list of what it has asked for.
TEST(DeviceMemoryBlocks, AreThoseThatAreInUse) {
  for (const bool guard : {false, true}) {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(fmt::format("guard {} seed {}", guard, seed));
      std::mt19937 random(seed);
      DeviceMemory memory(std::make_unique<FakeSegment>(), 1, guard);
      std::map<std::byte*, uint64_t> blocks;
      for (int step = 0; step < 300; ++step) {
        const uint64_t bytes = 1 + random() % 5000;
        if (random() % 2 == 0) {
          const auto made = memory.Allocate(bytes);
          if (made.ok()) {
            const uint64_t whole = (bytes + kHbmAlignment - 1) / kHbmAlignment * kHbmAlignment;
            blocks[static_cast<std::byte*>(*made)] = guard ? bytes : whole;
          }
        } else if (!blocks.empty()) {
          const auto some = std::next(blocks.begin(), random() % blocks.size());
          ASSERT_TRUE(memory.Free(some->first).ok());
          blocks.erase(some);
        }
        auto* const start = static_cast<std::byte*>(memory.PeerAddress(1, random() % kBytes));
        const uint64_t wanted = random() % 3000;
        const bool inside = std::any_of(blocks.begin(), blocks.end(), [&](const auto& block) {
          return start >= block.first && start + wanted <= block.first + block.second;
        });
        if (memory.Contains(start, wanted)) {
          ASSERT_EQ(memory.InBlock(start, wanted), inside);
          ASSERT_EQ(memory.InBlock(start, wanted), inside);  // as remembered
          if (wanted > 0) {
            ASSERT_EQ(memory.WhyNot(start, wanted).empty(), inside);
          }
        }
      }
      EXPECT_TRUE(memory.Damage().empty());
    }
  }
}

}  // namespace
}  // namespace npumesh
