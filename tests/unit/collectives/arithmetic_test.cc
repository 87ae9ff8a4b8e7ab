// Counts and sizes beyond 32 bits, as arithmetic: nothing of that size is allocated.
#include <gtest/gtest.h>

#include "collectives/algorithms/algorithm.h"
#include "collectives/extent.h"

namespace npumesh {
namespace {

constexpr uint64_t kGi = uint64_t{1} << 30;

// Largest count of the HCCL interface.
constexpr uint64_t kSysMaxCount = 0x7FFFFFFFF;

TEST(Slices, CoverEverythingOnceInWholeLines) {
  for (const uint64_t count :
       {uint64_t{0}, uint64_t{1}, uint64_t{15}, uint64_t{16}, uint64_t{17}, uint64_t{1000},
        uint64_t{4096}, 2 * kGi, 2 * kGi + 1, 4 * kGi - 1, kSysMaxCount}) {
    for (const uint64_t width : {1, 2, 4, 8}) {
      for (const int size : {1, 2, 3, 7, 64}) {
        uint64_t next = 0;
        for (int rank = 0; rank < size; ++rank) {
          const Slice slice = SliceOf(count, width, rank, size);
          EXPECT_EQ(slice.begin, next);
          EXPECT_TRUE(slice.count == 0 || slice.begin * width % 64 == 0);
          next = slice.begin + slice.count;
        }
        EXPECT_EQ(next, count);
      }
    }
  }
}

TEST(Rounds, CoverEverythingOnce) {
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, 2 * kGi + 3, 5 * kGi}) {
    for (const int size : {2, 64, 1024}) {
      uint64_t at = 0;
      while (const uint64_t round = RoundOf(count, at, size, 8)) at += round;
      EXPECT_EQ(at, count);
    }
  }
}

Call CallOf(CollectiveKind kind, uint64_t count, int root = 0) {
  return Call{kind, DataType::kDouble, ReduceOp::kSum, root, count};
}

TEST(ExtentOf, CountsBytesOfBothBuffers) {
  const uint64_t n = 4 * kGi + 1;
  const struct {
    CollectiveKind kind;
    int rank;
    uint64_t send;
    uint64_t recv;
  } rows[] = {
      {CollectiveKind::kAllReduce, 0, 8 * n, 8 * n},
      {CollectiveKind::kReduce, 0, 8 * n, 8 * n},
      {CollectiveKind::kReduce, 1, 8 * n, 0},
      {CollectiveKind::kBroadcast, 1, 8 * n, 8 * n},
      {CollectiveKind::kAllGather, 1, 8 * n, 24 * n},
      {CollectiveKind::kReduceScatter, 1, 24 * n, 8 * n},
      {CollectiveKind::kScatter, 0, 24 * n, 8 * n},
      {CollectiveKind::kScatter, 2, 0, 8 * n},
      {CollectiveKind::kBarrier, 0, 0, 0},
  };
  for (const auto& [kind, rank, send, recv] : rows) {
    const Extent extent = ExtentOf(CallOf(kind, n), rank, 3);
    EXPECT_EQ(extent.send, send) << Name(kind) << " rank " << rank;
    EXPECT_EQ(extent.recv, recv) << Name(kind) << " rank " << rank;
  }
}

TEST(ExtentOf, EndsBehindTheLastBlockThatIsNotEmpty) {
  Call call = CallOf(CollectiveKind::kAllToAllV, 0);
  const std::vector<uint64_t> bytes = {8, 5 * kGi, 0};
  const std::vector<uint64_t> at = {6 * kGi, 4, 100 * kGi};
  const std::vector<uint64_t> none = {0, 0, 0};
  call.send_bytes = bytes;
  call.send_at = call.recv_at = at;
  call.recv_bytes = none;
  EXPECT_EQ(ExtentOf(call, 0, 3).send, 6 * kGi + 8);
  EXPECT_EQ(ExtentOf(call, 0, 3).recv, 0u);
}

TEST(Blocks, SaturateInsteadOfOverflowing) {
  const std::vector<uint64_t> counts = {3 * kGi, ~uint64_t{0}, uint64_t{1} << 61, 1};
  const std::vector<uint64_t> bytes = InBytes(counts, DataType::kDouble);
  EXPECT_EQ(bytes, (std::vector<uint64_t>{24 * kGi, kTooManyBytes, kTooManyBytes, 8}));
  EXPECT_EQ(Packed(bytes), (std::vector<uint64_t>{0, 24 * kGi, kTooManyBytes, kTooManyBytes}));
}

}  // namespace
}  // namespace npumesh
