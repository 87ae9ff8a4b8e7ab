// Files about clusters: rank tables are read back by the reader of libhccl.
#include "launch/topo/cluster_files.h"

#include <gmock/gmock.h>

#include "collectives/hccl/creation/rank_table.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

Topology Synthetic(const std::string& text) {
  Result<Topology> topology = Topology::FromSynthetic(text);
  EXPECT_TRUE(topology.ok()) << topology.status().message();
  return *std::move(topology);
}

// Two servers of 3 and 1 ranks.
ClusterMap Uneven() {
  const Topology topology = Synthetic("numa:2 core:2 pu:1");
  return PlanCluster({{"alpha", "10.1.0.1", 3, topology}, {"beta", "10.1.0.2", 1, topology}});
}

ClusterMap Dealt() {
  ClusterMap cluster = Uneven();
  std::swap(cluster.ranks[1], cluster.ranks[3]);
  for (int rank : {1, 3}) cluster.ranks[static_cast<size_t>(rank)].rank = rank;
  return cluster;
}

std::string Text(const ClusterMap& cluster, const std::string& form) {
  const Result<std::string> text = ClusterFile(cluster, form);
  return text.ok() ? *text : std::string(text.status().message());
}

TEST(ClusterFiles, RankTablesAreWhatLibhcclReads) {
  for (const char* version : {"1.0", "1.2", "2.0"}) {
    RankTable table;
    const Verdict verdict =
        ParseRankTable(Text(Uneven(), std::string("rank_table_") + version), &table);
    ASSERT_TRUE(verdict.ok()) << version << ": " << verdict.why;
    EXPECT_EQ(table.version, version);
    EXPECT_TRUE(table.completed);
    ASSERT_EQ(table.ranks.size(), 4u);
    EXPECT_EQ(table.ranks[2].device, 2);
    EXPECT_EQ(table.ranks[3].device, 0);
    if (std::string(version) == "2.0") continue;
    EXPECT_EQ(table.ranks[2].server, "alpha");
    EXPECT_EQ(table.ranks[3].server, "beta");
    EXPECT_EQ(table.super_pods, std::string(version) == "1.2" ? 1u : 0u);
  }
}

TEST(ClusterFiles, RanksThatAreNoNeighboursNeedTable2) {
  EXPECT_THAT(Text(Dealt(), "rank_table_1.0"), HasSubstr("write rank_table_2.0"));
  RankTable table;
  EXPECT_TRUE(ParseRankTable(Text(Dealt(), "rank_table_2.0"), &table).ok());
}

TEST(ClusterFiles, NodesOfOneHostHaveDifferentNames) {
  const Topology topology = Synthetic("core:4 pu:1");
  const ClusterMap cluster =
      PlanCluster({{"alpha", "10.1.0.1", 1, topology}, {"alpha", "10.1.0.1", 1, topology}});
  RankTable table;
  ASSERT_TRUE(ParseRankTable(Text(cluster, "rank_table_1.0"), &table).ok());
  EXPECT_EQ(table.ranks[1].server, "alpha-1");
}

TEST(ClusterFiles, AtcsClusterConfigHasTheWrapper) {
  const auto json = nlohmann::json::parse(Text(Uneven(), "cluster_config"));
  EXPECT_EQ(json["RankTable"]["version"], "1.2");
  EXPECT_EQ(json["RankTable"]["server_count"], "2");
  EXPECT_EQ(json["RankTable"]["server_list"][0]["device"][1].dump(),
            R"({"device_id":"1","rank_id":"1"})");
  EXPECT_EQ(json["HcclCommConfig"]["hcclCommName"], "global");
}

TEST(ClusterFiles, FilesForMpirun) {
  EXPECT_EQ(Text(Uneven(), "hostfile"), "alpha slots=3\nbeta slots=1\n");
  EXPECT_EQ(Text(Dealt(), "hostfile"),
            "# mpirun --hostfile <this file> --map-by seq: one line for each rank\n"
            "alpha slots=1\nbeta slots=1\nalpha slots=1\nalpha slots=1\n");
  EXPECT_THAT(Text(Uneven(), "rankfile"), HasSubstr("rank 3=beta slot=0-1\n"));
}

TEST(ClusterFiles, AnotherFormIsRefused) {
  EXPECT_EQ(ClusterFile(Uneven(), "rank_table_3.0").status().code(), Code::kInvalidArgument);
  EXPECT_THAT(Text(Uneven(), "x"), HasSubstr("expected one of rank_table_1.0, "));
}

TEST(ClusterText, SaysWhichRankIsWhere) {
  EXPECT_THAT(ClusterText(Uneven()),
              HasSubstr("node 0: alpha (10.1.0.1), 3 ranks\n  NUMA node 0: 2 cores, "));
  EXPECT_THAT(ClusterText(Uneven()), HasSubstr("rank 2: item 2, processors 2-3\n"));
}

}  // namespace
}  // namespace npumesh
