#include "graph/export/deployment_config.h"

#include <fmt/ranges.h>

#include <set>

#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using OrderedJson = nlohmann::ordered_json;

// What TorchAir writes, and users replace where they have other hardware.
constexpr const char* kNodeType = "ATLAS800";
constexpr const char* kItemType = "Ascend910";
constexpr const char* kTemplateAddress = "127.0.0.1";
constexpr int kPort = 29500;

std::string Text(const OrderedJson& json) {
  return json.dump(4, ' ', false, OrderedJson::error_handler_t::replace);
}

OrderedJson Items(const std::vector<int>& items) {
  OrderedJson list = OrderedJson::array();
  for (const int item : items) list.push_back({{"item_id", item}});
  return list;
}

OrderedJson ClusterNode(int id, const std::string& address, const std::vector<int>& items) {
  return {{"node_id", id},
          {"node_type", kNodeType},
          {"ipaddr", address},
          {"port", kPort},
          {"item_list", Items(items)}};
}

OrderedJson TemplateNodes(const ClusterMap& cluster) {
  std::vector<int> items;
  for (const RankPlace& place : cluster.ranks) items.push_back(place.rank);
  return OrderedJson::array({ClusterNode(0, kTemplateAddress, items)});
}

OrderedJson TrueNodes(const ClusterMap& cluster) {
  OrderedJson nodes = OrderedJson::array();
  for (int node = 0; node < cluster.node_count(); ++node) {
    std::vector<int> items;
    const std::vector<const RankPlace*> places = cluster.OnNode(node);
    for (const RankPlace* place : places) items.push_back(place->item);
    nodes.push_back(ClusterNode(node, places.front()->address, items));
  }
  return nodes;
}

// Nodes reach each other through one network: a star whose one plane has all of them.
OrderedJson NodesTopology(const ClusterMap& cluster) {
  OrderedJson devices = OrderedJson::array();
  for (int node = 0; node < cluster.node_count(); ++node) devices.push_back(node);
  return {{"type", "star"},
          {"protocol", "TCP"},
          {"topos", OrderedJson::array({{{"plane_id", 0}, {"devices", devices}}})}};
}

OrderedJson NumaNodes(const std::vector<const RankPlace*>& places) {
  OrderedJson nodes = OrderedJson::array();
  std::set<int> seen;
  for (const RankPlace* place : places) {
    if (!seen.insert(place->numa_node).second) continue;
    nodes.push_back({{"numa_node", place->numa_node},
                     {"cores", place->numa_cores},
                     {"memory", place->numa_memory}});
  }
  return nodes;
}

OrderedJson RankPlaces(const std::vector<const RankPlace*>& places) {
  OrderedJson ranks = OrderedJson::array();
  for (const RankPlace* place : places) {
    ranks.push_back({{"rank_id", place->rank},
                     {"item_id", place->item},
                     {"numa_node", place->numa_node},
                     {"cpus", CpuListText(place->cpus)}});
  }
  return ranks;
}

OrderedJson PlacesOfAllNodes(const ClusterMap& cluster) {
  OrderedJson nodes = OrderedJson::array();
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
  OrderedJson deploy = OrderedJson::array();
  OrderedJson instances = OrderedJson::array();
  OrderedJson table = OrderedJson::array();
  for (const RankPlace& place : cluster.ranks) {
    const std::string& name = air_names[static_cast<size_t>(place.rank)];
    const std::string device = form == ConfigForm::kTemplate
                                   ? fmt::format("0:0:{}", place.rank)
                                   : fmt::format("0:{}:{}", place.node, place.item);
    deploy.push_back({{"submodel_name", name}, {"deploy_device_id_list", device}});
    instances.push_back({{"submodel_name", name}, {"model_instance_id", place.rank}});
    table.push_back({{"rank_id", place.rank}, {"model_instance_id", place.rank}});
  }
  OrderedJson comm = OrderedJson::array();
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
  OrderedJson whole = {{"cluster_nodes", is_template ? TemplateNodes(cluster) : TrueNodes(cluster)},
                       {"nodes_toplogy", OrderedJson::object()}};
  if (!is_template && cluster.node_count() > 1) whole["nodes_topology"] = NodesTopology(cluster);
  OrderedJson config;
  config["cluster"] = OrderedJson::array({whole});
  config["item_def"] = OrderedJson::array({{{"item_type", kItemType}}});
  config["node_def"] =
      OrderedJson::array({{{"item", OrderedJson::array({{{"item_type", kItemType}}})}}});
  if (!is_template) config["npumesh_topology"] = PlacesOfAllNodes(cluster);
  return Text(config);
}

}  // namespace npumesh
