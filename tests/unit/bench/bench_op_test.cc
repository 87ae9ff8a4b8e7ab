#include "launch/bench/bench_op.h"

#include <gmock/gmock.h>

#include <set>

namespace npumesh {
namespace {

const BenchOp& Op(std::string_view name) {
  return *FindBenchOps(name)->front();
}

TEST(BenchOps, AreFoundByName) {
  EXPECT_EQ(FindBenchOps("alltoallv")->size(), 1u);
  EXPECT_EQ(FindBenchOps("all")->size(), 5u);
  EXPECT_THAT(FindBenchOps("gossip").status().message(),
              testing::HasSubstr("\"gossip\"; known: all allreduce reducescatter"));
}

TEST(BenchOps, ResultsCoverTheReceiveBufferOnce) {
  for (const BenchOp& op : BenchOps()) {
    const Seat seat{1, 3, 2, 5};
    std::multiset<uint64_t> covered;
    for (const Piece& piece : op.result(seat)) {
      for (uint64_t i = 0; i < piece.count; ++i) covered.insert(piece.to + i);
    }
    // A reduction leaves nothing where its root is not.
    const uint64_t left = op.kind == CollectiveKind::kReduce ? 0 : op.recv_count(seat);
    EXPECT_EQ(covered.size(), left) << op.name;
    EXPECT_EQ(std::set<uint64_t>(covered.begin(), covered.end()).size(), covered.size()) << op.name;
  }
}

TEST(BenchOps, OnlyTheRootHasTheReduction) {
  EXPECT_TRUE(Op("reduce").result({1, 3, 2, 5}).empty());
  const std::vector<Piece> pieces = Op("reduce").result({2, 3, 2, 5});
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].count, 5u);
  EXPECT_EQ(pieces[0].source, Piece::kAllRanks);
}

TEST(BenchOps, ScatterGivesEachRankItsBlockOfTheRoot) {
  const std::vector<Piece> pieces = Op("scatter").result({1, 3, 2, 5});
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].source, 2);
  EXPECT_EQ(pieces[0].from, 5u);
}

TEST(BenchOps, BusFactors) {
  EXPECT_DOUBLE_EQ(Op("allreduce").bus_factor(4), 1.5);
  EXPECT_DOUBLE_EQ(Op("reducescatter").bus_factor(4), 0.75);
  EXPECT_DOUBLE_EQ(Op("allgather").bus_factor(4), 0.75);
  EXPECT_DOUBLE_EQ(Op("alltoall").bus_factor(4), 0.75);
  EXPECT_DOUBLE_EQ(Op("broadcast").bus_factor(4), 1);
  EXPECT_DOUBLE_EQ(Op("reduce").bus_factor(4), 1);
  EXPECT_DOUBLE_EQ(Op("scatter").bus_factor(4), 0.75);
}

TEST(BenchOps, SizesAreAdjustedAsHcclTestDoes) {
  EXPECT_EQ(AdjustedBytes(Op("allreduce"), 1001, 3), 1001u);
  EXPECT_EQ(AdjustedBytes(Op("allgather"), 1001, 3), 999u);
  EXPECT_EQ(AdjustedBytes(Op("alltoall"), 2, 3), 3u);
  EXPECT_EQ(AdjustedBytes(Op("reducescatter"), (16 << 20) + 1000, 3), 16777728u);
  EXPECT_EQ(AdjustedBytes(Op("barrier"), 64, 3), 0u);
}

TEST(BenchOps, CountsAreRoundedUp) {
  EXPECT_EQ(CountOf(Op("allreduce"), 7, DataType::kFloat, 2), 2u);
  EXPECT_EQ(CountOf(Op("allgather"), 64, DataType::kFloat, 3), 6u);
  EXPECT_EQ(BandwidthBytes(Op("allgather"), 6, DataType::kFloat, 3), 72u);
  EXPECT_EQ(BandwidthBytes(Op("allreduce"), 6, DataType::kFloat, 3), 24u);
}

}  // namespace
}  // namespace npumesh
