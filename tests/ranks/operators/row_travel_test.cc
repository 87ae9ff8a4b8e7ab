// Rows in chunks between ranks: that they arrive where they should, and that chunks are prepared
// and used while others travel.
#include "graph/ops/collective/chunked_exchange.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/ranks/operators/rank_op.h"

namespace npumesh {
namespace {

using fused::RowTravel;

constexpr int64_t kRowBytes = 4;  // a row is an int32

// Rank a sends rank b this many rows in a chunk.
int64_t Rows(int64_t chunk, int64_t a, int64_t b) {
  return (chunk + 2 * a + b) % 3;
}
int32_t Row(int64_t chunk, int64_t a, int64_t b, int64_t i) {
  return static_cast<int32_t>(1000 * chunk + 100 * a + 10 * b + i);
}

TEST(RowTravel, RowsArriveByChunkAndRank) {
  constexpr int64_t kRanks = 3;
  for (const int64_t chunks : {1, 4}) {
    ExpectAllOk(OnRanks(kRanks, [&](Communicator& group, DeviceMemory& memory) -> Status {
      const int64_t me = group.rank();
      RowTravel travel(kRanks, chunks, kRowBytes);
      std::vector<int32_t> want;
      for (int64_t c = 0; c < chunks; ++c) {
        for (int64_t r = 0; r < kRanks; ++r) {
          travel.SetRows(c, r, Rows(c, me, r), Rows(c, r, me));
          for (int64_t i = 0; i < Rows(c, r, me); ++i) want.push_back(Row(c, r, me, i));
        }
      }
      travel.LineUp();
      HbmArray<int32_t> send(memory, 64);
      HbmArray<int32_t> recv(memory, 64);
      std::vector<int64_t> used;
      const auto fill = [&](int64_t c) {
        for (int64_t r = 0; r < kRanks; ++r) {
          int32_t* to = send.data() + travel.send_at(c, r) / kRowBytes;
          for (int64_t i = 0; i < Rows(c, me, r); ++i) to[i] = Row(c, me, r, i);
        }
        return Status();
      };
      const auto use = [&](int64_t c) {
        used.push_back(c);
        return Status();
      };
      NPUMESH_RETURN_IF_ERROR(travel.Run(group, "rows",
                                         reinterpret_cast<const std::byte*>(send.data()),
                                         reinterpret_cast<std::byte*>(recv.data()), fill, use));
      std::vector<int32_t> got = recv.ToVector();
      got.resize(want.size());
      EXPECT_EQ(got, want) << "rank " << me;
      EXPECT_EQ(used.size(), static_cast<size_t>(chunks));
      EXPECT_TRUE(std::ranges::is_sorted(used));
      return Status();
    }));
  }
}

// True once the flag is set; false when that takes too long.
bool WaitFor(const std::atomic<bool>& flag) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!flag && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return flag;
}

// Rank 1 does not let a chunk arrive before rank 0 has prepared the next one, and keeps the last
// one back until rank 0 has used the first. One after the other, this would never end.
TEST(RowTravel, PreparesAndUsesWhileOthersAreOnTheirWay) {
  std::atomic<bool> prepared_second{false};
  std::atomic<bool> used_first{false};
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    constexpr int64_t kChunks = 3;
    RowTravel travel(2, kChunks, kRowBytes);
    for (int64_t c = 0; c < kChunks; ++c) {
      for (int64_t r = 0; r < 2; ++r) travel.SetRows(c, r, 1, 1);
    }
    travel.LineUp();
    HbmArray<int32_t> send(memory, 2 * kChunks);
    HbmArray<int32_t> recv(memory, 2 * kChunks);
    const auto prepare = [&](int64_t c) -> Status {
      if (group.rank() == 0 && c == 1) prepared_second = true;
      if (group.rank() == 1 && c == 0 && !WaitFor(prepared_second)) {
        return Error(Code::kTimeout, "rank 0 waits for its first chunk");
      }
      if (group.rank() == 1 && c == kChunks - 1 && !WaitFor(used_first)) {
        return Error(Code::kTimeout, "rank 0 waits for its last chunk");
      }
      return Status();
    };
    const auto use = [&](int64_t c) {
      if (group.rank() == 0 && c == 0) used_first = true;
      return Status();
    };
    return travel.Run(group, "rows", reinterpret_cast<const std::byte*>(send.data()),
                      reinterpret_cast<std::byte*>(recv.data()), prepare, use);
  }));
}

}  // namespace
}  // namespace npumesh
