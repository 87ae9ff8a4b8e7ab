#include "graph/export/deployment_config.h"

#include <fmt/ranges.h>

#include <set>

#include "runtime/base/json.h"

namespace npumesh {
namespace {

using Json = nlohmann::ordered_json;

// What TorchAir writes, and users replace where they have other hardware.
constexpr const char* kNodeType = "ATLAS800";
constexpr const char* kItemType = "Ascend910";
constexpr const char* kTemplateAddress = "127.0.0.1";
constexpr int kPort = 29500;

std::string Text(const Json& json) {
  return json.dump(4, ' ', false, Json::error_handler_t::replace);
}

Json Items(const std::vector<int>& items) {
  Json list = Json::array();
  for (const int item : items) list.push_back({{"item_id", item}});
  return list;
}

Json ClusterNode(int id, const std::string& address, const std::vector<int>& items) {
  return {{"node_id", id},
          {"node_type", kNodeType},
          {"ipaddr", address},
          {"port", kPort},
          {"item_list", Items(items)}};
}

Json TemplateNodes(const ClusterMap& cluster) {
  std::vector<int> items;
  for (const RankPlace& place : cluster.ranks) items.push_back(place.rank);
  return Json::array({ClusterNode(0, kTemplateAddress, items)});
}

Json TrueNodes(const ClusterMap& cluster) {
  Json nodes = Json::array();
  for (int node = 0; node < cluster.node_count(); ++node) {
    std::vector<int> items;
    const std::vector<const RankPlace*> places = cluster.OnNode(node);
    for (const RankPlace* place : places) items.push_back(place->item);
    nodes.push_back(ClusterNode(node, places.front()->address, items));
  }
  return nodes;
}

// Nodes reach each other through one network: a star whose one plane has all of them.
Json NodesTopology(const ClusterMap& cluster) {
  Json devices = Json::array();
  for (int node = 0; node < cluster.node_count(); ++node) devices.push_back(node);
  return {{"type", "star"},
          {"protocol", "TCP"},
          {"topos", Json::array({{{"plane_id", 0}, {"devices", devices}}})}};
}

Json NumaNodes(const std::vector<const RankPlace*>& places) {
  Json nodes = Json::array();
  std::set<int> seen;
  for (const RankPlace* place : places) {
    if (!seen.insert(place->numa_node).second) continue;
    nodes.push_back({{"numa_node", place->numa_node},
                     {"cores", place->numa_cores},
                     {"memory", place->numa_memory}});
  }
  return nodes;
}

Json RankPlaces(const std::vector<const RankPlace*>& places) {
  Json ranks = Json::array();
  for (const RankPlace* place : places) {
    ranks.push_back({{"rank_id", place->rank},
                     {"item_id", place->item},
                     {"numa_node", place->numa_node},
                     {"cpus", CpuListText(place->cpus)}});
  }
  return ranks;
}

Json PlacesOfAllNodes(const ClusterMap& cluster) {
  Json nodes = Json::array();
  for (int node = 0; node < cluster.node_count(); ++node) {
    const std::vector<const RankPlace*> places = cluster.OnNode(node);
    nodes.push_back({{"node_id", node},
                     {"host", places.front()->host},
                     {"numa_nodes", NumaNodes(places)},
                     {"ranks", RankPlaces(places)}});
  }
  return nodes;
}

}  // namespace

std::string RelationConfig(const ClusterMap& cluster, const std::vector<std::string>& air_names,
                           const NamedGroups& groups, ConfigForm form) {
  Json deploy = Json::array();
  Json instances = Json::array();
  Json table = Json::array();
  for (const RankPlace& place : cluster.ranks) {
    const std::string& name = air_names[static_cast<size_t>(place.rank)];
    const std::string device = form == ConfigForm::kTemplate
                                   ? fmt::format("0:0:{}", place.rank)
                                   : fmt::format("0:{}:{}", place.node, place.item);
    deploy.push_back({{"submodel_name", name}, {"deploy_device_id_list", device}});
    instances.push_back({{"submodel_name", name}, {"model_instance_id", place.rank}});
    table.push_back({{"rank_id", place.rank}, {"model_instance_id", place.rank}});
  }
  Json comm = Json::array();
  for (const auto& [name, ranks] : groups) {
    comm.push_back(
        {{"group_name", name}, {"group_rank_list", fmt::format("[{}]", fmt::join(ranks, ", "))}});
  }
  return Text({{"deploy_config", deploy},
               {"model_name_to_instance_id", instances},
               {"comm_group", comm},
               {"rank_table", table}});
}

std::string NumaConfig(const ClusterMap& cluster, ConfigForm form) {
  const bool is_template = form == ConfigForm::kTemplate;
  Json whole = {{"cluster_nodes", is_template ? TemplateNodes(cluster) : TrueNodes(cluster)},
                {"nodes_toplogy", Json::object()}};
  if (!is_template && cluster.node_count() > 1) whole["nodes_topology"] = NodesTopology(cluster);
  Json config;
  config["cluster"] = Json::array({whole});
  config["item_def"] = Json::array({{{"item_type", kItemType}}});
  config["node_def"] = Json::array({{{"item", Json::array({{{"item_type", kItemType}}})}}});
  if (!is_template) config["npumesh_topology"] = PlacesOfAllNodes(cluster);
  return Text(config);
}

}  // namespace npumesh
