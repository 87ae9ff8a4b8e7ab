#include "launch/bench/bench_report.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using ::testing::HasSubstr;

BenchPoint Point(std::string operation, uint64_t size, double ours, double mpi) {
  BenchPoint point;
  point.operation = std::move(operation);
  point.size = point.bytes = size;
  point.ours = {ours, ours, ours};
  point.mpi = Timing{mpi, mpi, mpi};
  point.algorithm_bandwidth = 1.5;
  point.bus_bandwidth = 2.25;
  point.algorithm = "direct";
  point.check = "success";
  return point;
}

TEST(TableRow, BeginsAsHcclTestPrintsIt) {
  EXPECT_THAT(
      TableRow(Point("allreduce", 64, 1.5, 3), BenchOptions()),
      testing::StartsWith("64                | 1.50           | 1.50000              | success"));
  EXPECT_THAT(TableRow(Point("allreduce", 64, 1.5, 3), BenchOptions()),
              testing::EndsWith("| 3.00         | 0.500\n"));
}

TEST(TableRow, HasANarrowForm) {
  EXPECT_EQ(LayoutFor(0), BenchLayout::kHcclTest);
  EXPECT_EQ(LayoutFor(162), BenchLayout::kHcclTest);
  EXPECT_EQ(LayoutFor(161), BenchLayout::kNarrow);
  BenchPoint point = Point("allreduce", 1'073'741'824, 123456.78, 3);
  const BenchOptions options;
  const std::string row = TableRow(point, options, BenchLayout::kNarrow);
  EXPECT_EQ(row,
            "1073741824 123456.78 123456.78 123456.78    2.250       3.00 41152.260  direct\n");
  const std::string head =
      TableHead(*(*FindBenchOps("allreduce"))[0], options, {}, BenchLayout::kNarrow);
  EXPECT_THAT(head,
              testing::EndsWith("\n     bytes    avg us    p50 us    p99 us bus GB/s MPI p50 us "
                                "ours/MPI  algorithm\n"));
  EXPECT_LE(head.size() - head.find('\n') - 2, 80u);
  point.check = "failed";
  EXPECT_THAT(TableRow(point, options, BenchLayout::kNarrow), testing::EndsWith("direct, WRONG\n"));
}

TEST(Summary, GivesMeansAndTheWorstPoint) {
  const std::vector<BenchPoint> points = {
      Point("allreduce", 64, 1, 2), Point("allreduce", 128, 4, 2), Point("broadcast", 64, 1, 4)};
  const std::string text = SummaryText(points);
  EXPECT_THAT(text, HasSubstr("allreduce            2      1.000      1.000\n"));
  EXPECT_THAT(text, HasSubstr("broadcast            1      0.250      0.250\n"));
  EXPECT_THAT(text, HasSubstr("all                  3      0.630      0.630\n"));
  EXPECT_THAT(text, HasSubstr("worst point: allreduce of 128 bytes, 2.000\n"));
}

TEST(Summary, IsEmptyWithoutABaseline) {
  BenchPoint point = Point("allreduce", 64, 1, 2);
  point.mpi.reset();
  EXPECT_EQ(SummaryText(std::vector<BenchPoint>{point}), "");
  EXPECT_FALSE(ToJson(std::vector<BenchPoint>{point})[0].contains("p50_ratio"));
}

TEST(Json, HasEveryColumn) {
  const nlohmann::json row = ToJson(std::vector<BenchPoint>{Point("allreduce", 64, 1, 2)})[0];
  EXPECT_EQ(row.at("operation"), "allreduce");
  EXPECT_EQ(row.at("ours_us").at("p99"), 1.0);
  EXPECT_EQ(row.at("mpi_us").at("average"), 2.0);
  EXPECT_EQ(row.at("p50_ratio"), 0.5);
  EXPECT_EQ(row.at("algorithm"), "direct");
}

TEST(Algorithms, SayWhyNot) {
  BenchOptions options;
  options.sizes = {1 << 20};
  const std::string text =
      AlgorithmsText(*FindBenchOps("allreduce")->front(), options, {4, 2, false}, "");
  EXPECT_THAT(text, HasSubstr("# allreduce of 1048576 bytes"));
  EXPECT_THAT(text, testing::ContainsRegex("direct +the ranks do not share memory"));
  EXPECT_THAT(text, testing::ContainsRegex(" taken\n"));
}

}  // namespace
}  // namespace npumesh
