// Both JSON files: the template byte for byte, the truth on machines other than this one.
#include "graph/export/deployment_config.h"

#include <gmock/gmock.h>

#include "runtime/base/text/json.h"
#include "tests/unit/export/export_models.h"

namespace npumesh {
namespace {

using namespace npumesh::testing;  // NOLINT: the models of these tests
using nlohmann::ordered_json;
using ::testing::ElementsAre;

// The text that TorchAir writes.
constexpr const char* kRelationTemplate = R"({
    "deploy_config": [
        {
            "submodel_name": "mp_rank0.air",
            "deploy_device_id_list": "0:0:0"
        },
        {
            "submodel_name": "mp_rank1.air",
            "deploy_device_id_list": "0:0:1"
        }
    ],
    "model_name_to_instance_id": [
        {
            "submodel_name": "mp_rank0.air",
            "model_instance_id": 0
        },
        {
            "submodel_name": "mp_rank1.air",
            "model_instance_id": 1
        }
    ],
    "comm_group": [
        {
            "group_name": "tag=;rank_list=0,1",
            "group_rank_list": "[0, 1]"
        }
    ],
    "rank_table": [
        {
            "rank_id": 0,
            "model_instance_id": 0
        },
        {
            "rank_id": 1,
            "model_instance_id": 1
        }
    ]
})";

constexpr const char* kNumaTemplate = R"({
    "cluster": [
        {
            "cluster_nodes": [
                {
                    "node_id": 0,
                    "node_type": "ATLAS800",
                    "ipaddr": "127.0.0.1",
                    "port": 29500,
                    "item_list": [
                        {
                            "item_id": 0
                        },
                        {
                            "item_id": 1
                        }
                    ]
                }
            ],
            "nodes_toplogy": {}
        }
    ],
    "item_def": [
        {
            "item_type": "Ascend910"
        }
    ],
    "node_def": [
        {
            "item": [
                {
                    "item_type": "Ascend910"
                }
            ]
        }
    ]
})";

// Exports the documented model; the two files.
struct Configs {
  std::string relation;
  std::string numa;
};
Configs Export(int ranks, const std::string& group, bool is_template,
               const std::vector<int>& node_sizes = {}, const std::string& topology = "") {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "mp";
  options.export_name = "mp_rank";
  options.auto_atc_config_generated = true;
  options.template_configs = is_template;
  for (const Status& status : ExportOn(
           ranks, [&](int) { return SeedAllReduce(group); }, options, node_sizes, topology)) {
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return {Slurp(folder / "mp/model_relation_config.json"), Slurp(folder / "mp/numa_config.json")};
}

// Keys and types of a JSON value, without its values.
std::string SchemaOf(const ordered_json& json) {
  if (json.is_array()) return json.empty() ? "[]" : "[" + SchemaOf(json[0]) + "]";
  if (!json.is_object()) return json.type_name();
  std::string schema = "{";
  for (const auto& [key, value] : json.items()) schema += key + ":" + SchemaOf(value) + ",";
  return schema + "}";
}

TEST(DeploymentConfig, TheTemplateIsTorchAirsByteForByte) {
  const Configs configs = Export(2, "tag=;rank_list=0,1", true);
  EXPECT_EQ(configs.relation, kRelationTemplate);
  EXPECT_EQ(configs.numa, kNumaTemplate);
}

TEST(DeploymentConfig, OneNodeHasTheSchemaOfTheTemplate) {
  const Configs configs = Export(2, "tag=;rank_list=0,1", false);
  EXPECT_EQ(configs.relation, kRelationTemplate);  // the truth is the same there
  ordered_json numa = ordered_json::parse(configs.numa);
  EXPECT_EQ(numa.erase("npumesh_topology"), 1u);
  EXPECT_EQ(SchemaOf(numa), SchemaOf(ordered_json::parse(kNumaTemplate)));
}

TEST(DeploymentConfig, NothingIsWrittenWithoutAGroup) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "mp";
  options.auto_atc_config_generated = true;
  for (const Status& status : ExportOn(
           2, [](int) { return SeedAdd(); }, options)) {
    ASSERT_TRUE(status.ok()) << status.message();
  }
  EXPECT_THAT(FilesOf(folder / "mp"), ElementsAre("checksums.sha256", "export0.air", "export1.air",
                                                  "rank_0/dynamo.pbtxt", "rank_1/dynamo.pbtxt"));
}

// Two nodes of 3 and 1 ranks: items restart, nothing has to be moved by hand.
TEST(DeploymentConfig, NodesMayHaveDifferentNumbersOfRanks) {
  const Configs configs = Export(4, "hccl_world_group", false, {3, 1});
  const auto relation = ordered_json::parse(configs.relation);
  std::vector<std::string> devices;
  for (const auto& entry : relation["deploy_config"]) {
    devices.push_back(entry["deploy_device_id_list"]);
  }
  EXPECT_THAT(devices, ElementsAre("0:0:0", "0:0:1", "0:0:2", "0:1:0"));
  EXPECT_EQ(relation["comm_group"][0]["group_rank_list"], "[0, 1, 2, 3]");
  const auto numa = ordered_json::parse(configs.numa);
  const auto& nodes = numa["cluster"][0]["cluster_nodes"];
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0]["item_list"].size(), 3u);
  EXPECT_EQ(nodes[1]["item_list"].dump(), R"([{"item_id":0}])");
  EXPECT_EQ(nodes[1]["node_id"], 1);
  EXPECT_EQ(numa["cluster"][0]["nodes_topology"]["topos"][0]["devices"].dump(), "[0,1]");
}

// Ranks dealt to two nodes in turn.
TEST(DeploymentConfig, RanksOfANodeNeedNotBeNeighbours) {
  ClusterMap cluster;
  for (int rank = 0; rank < 4; ++rank) {
    RankPlace place;
    place.rank = rank;
    place.node = rank % 2;
    place.item = rank / 2;
    place.host = rank % 2 == 0 ? "a" : "b";
    place.address = rank % 2 == 0 ? "10.0.0.1" : "10.0.0.2";
    cluster.ranks.push_back(place);
  }
  EXPECT_FALSE(cluster.contiguous());
  const auto relation = ordered_json::parse(
      RelationConfig(cluster, {"m0.air", "m1.air", "m2.air", "m3.air"}, {}, ConfigForm::kTrue));
  EXPECT_EQ(relation["deploy_config"][1]["deploy_device_id_list"], "0:1:0");
  EXPECT_EQ(relation["deploy_config"][2]["deploy_device_id_list"], "0:0:1");
  EXPECT_EQ(relation["comm_group"].dump(), "[]");
  const auto numa = ordered_json::parse(NumaConfig(cluster, ConfigForm::kTrue));
  EXPECT_EQ(numa["cluster"][0]["cluster_nodes"][1]["ipaddr"], "10.0.0.2");
}

struct Machine {
  std::string name;
  std::string topology;
  int ranks;
  std::string numa_nodes;  // of the ranks, in order
  std::string cpus;        // of the last rank
  int cores;               // of its NUMA node
};

class DeploymentConfigOn : public ::testing::TestWithParam<Machine> {};

TEST_P(DeploymentConfigOn, SaysWhereEachRankIs) {
  const Machine& machine = GetParam();
  const Result<Topology> topology = Topology::FromSynthetic(machine.topology);
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  const ClusterMap cluster = PlanCluster({{"a", "10.0.0.1", machine.ranks, *topology}});
  const auto numa = ordered_json::parse(NumaConfig(cluster, ConfigForm::kTrue));
  const auto& node = numa["npumesh_topology"][0];
  std::string nodes;
  for (const auto& rank : node["ranks"]) nodes += rank["numa_node"].dump();
  EXPECT_EQ(nodes, machine.numa_nodes);
  EXPECT_EQ(node["ranks"].back()["cpus"], machine.cpus);
  EXPECT_EQ(node["numa_nodes"].back()["cores"], machine.cores);
  EXPECT_GT(node["numa_nodes"].back()["memory"], 0);
  EXPECT_EQ(numa["cluster"][0]["cluster_nodes"][0]["item_list"].size(), node["ranks"].size());
}

INSTANTIATE_TEST_SUITE_P(
    Machines, DeploymentConfigOn,
    ::testing::Values(Machine{"two_sockets", "pack:2 numa:4 core:8 pu:1", 8, "01234567", "56-63",
                              8},
                      Machine{"half_used", "pack:2 numa:4 core:8 pu:1", 4, "0246", "48-55", 8},
                      Machine{"no_numa", "core:6 pu:1", 3, "000", "4-5", 6},
                      Machine{"threads", "numa:2 core:2 pu:2", 4, "0011", "6-7", 2},
                      Machine{"crowded", "core:1 pu:1", 3, "000", "0", 1}),
    [](const auto& info) { return info.param.name; });

// One node with NUMA and threads, one without; as many ranks as each has cores.
TEST(DeploymentConfig, NodesMayBeDifferentMachines) {
  const Result<Topology> large = Topology::FromSynthetic("numa:2 core:2 pu:2");
  const Result<Topology> small = Topology::FromSynthetic("core:3 pu:1");
  ASSERT_TRUE(large.ok() && small.ok());
  const auto numa = ordered_json::parse(
      NumaConfig(PlanCluster({{"a", "10.0.0.1", 4, *large}, {"b", "10.0.0.2", 3, *small}}),
                 ConfigForm::kTrue));
  const auto& nodes = numa["npumesh_topology"];
  EXPECT_EQ(nodes[0]["numa_nodes"].size(), 2u);
  EXPECT_EQ(nodes[0]["ranks"][3]["cpus"], "6-7");
  EXPECT_EQ(nodes[1]["numa_nodes"][0]["cores"], 3);
  EXPECT_EQ(nodes[1]["ranks"][0]["rank_id"], 4);
  EXPECT_EQ(nodes[1]["ranks"][0]["item_id"], 0);
  EXPECT_EQ(nodes[1]["ranks"][2]["cpus"], "2");
}

TEST(ClusterMap, WritesProcessorsAsLinuxDoes) {
  EXPECT_EQ(CpuListText({}), "");
  EXPECT_EQ(CpuListText({4}), "4");
  EXPECT_EQ(CpuListText({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

}  // namespace
}  // namespace npumesh
