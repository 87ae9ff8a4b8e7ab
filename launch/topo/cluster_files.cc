#include "launch/topo/cluster_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "graph/export/deployment_config.h"
#include "launch/report/command_report.h"
#include "launch/report/json_parts.h"

namespace npumesh {
namespace {

using Json = nlohmann::ordered_json;

std::string Number(int64_t number) {
  return fmt::format("{}", number);
}

// Tells hosts of one name apart, as simulated nodes of one machine are.
std::string ServerId(const ClusterMap& cluster, int node) {
  const auto places = cluster.OnNode(node);
  const bool unique =
      std::none_of(cluster.ranks.begin(), cluster.ranks.end(), [&](const RankPlace& other) {
        return other.node != node && other.host == places.front()->host;
      });
  const std::string id =
      unique ? places.front()->host : fmt::format("{}-{}", places.front()->host, node);
  constexpr size_t kLongestId = 64;
  return id.size() <= kLongestId ? id : fmt::format("node_{}", node);
}

std::string DeviceAddress(const RankPlace& place) {
  return fmt::format("fd6e:7075:6d65::{:x}:{:x}", place.node + 1, place.item + 1);
}

Status CheckNeighbours(const ClusterMap& cluster, std::string_view form) {
  if (cluster.contiguous()) return Status();
  return Error(Code::kUnsupported,
               "{} cannot say that the ranks of a node are no neighbours; place ranks node after "
               "node (mpirun --map-by slot), or write rank_table_2.0",
               form);
}

Json Device(const RankPlace& place, bool super_pod) {
  Json device = {{"device_id", Number(place.item)}};
  if (super_pod) device["super_device_id"] = Number(place.rank);
  device["device_ip"] = DeviceAddress(place);
  device["rank_id"] = Number(place.rank);
  return device;
}

Json Servers(const ClusterMap& cluster, bool super_pod) {
  Json servers = Json::array();
  for (int node = 0; node < cluster.node_count(); ++node) {
    Json devices = Json::array();
    const auto places = cluster.OnNode(node);
    for (const RankPlace* place : places) devices.push_back(Device(*place, super_pod));
    servers.push_back({{"server_id", ServerId(cluster, node)},
                       {"host_ip", places.front()->address},
                       {"device", std::move(devices)}});
  }
  return servers;
}

Json SuperPods(const ClusterMap& cluster) {
  Json servers = Json::array();
  for (int node = 0; node < cluster.node_count(); ++node) {
    servers.push_back({{"server_id", ServerId(cluster, node)}});
  }
  return Json::array({{{"super_pod_id", "pod_0"}, {"server_list", std::move(servers)}}});
}

Json ServerTable(const ClusterMap& cluster, bool super_pod) {
  Json table = {{"version", super_pod ? "1.2" : "1.0"},
                {"status", "completed"},
                {"server_count", Number(cluster.node_count())},
                {"server_list", Servers(cluster, super_pod)}};
  if (super_pod) table["super_pod_list"] = SuperPods(cluster);
  return table;
}

Json Level(int layer, const std::string& instance, const char* type, Json addresses) {
  return {{"net_layer", layer},
          {"net_instance_id", instance},
          {"net_type", type},
          {"net_attr", ""},
          {"rank_addr_list", std::move(addresses)}};
}

Json LevelTable(const ClusterMap& cluster) {
  Json ranks = Json::array();
  for (const RankPlace& place : cluster.ranks) {
    Json levels =
        Json::array({Level(0, ServerId(cluster, place.node), "TOPO_FILE_DESC", Json::array())});
    if (cluster.node_count() > 1) {
      const Json address = {{"addr_type", "IPV4"},
                            {"addr", place.address},
                            {"ports", Json::array()},
                            {"plane_id", "0"}};
      levels.push_back(Level(1, "cluster", "CLOS", Json::array({address})));
    }
    ranks.push_back({{"rank_id", place.rank},
                     {"local_id", place.item},
                     {"device_id", place.item},
                     {"level_list", std::move(levels)}});
  }
  return {{"version", "2.0"},
          {"status", "completed"},
          {"rank_count", cluster.ranks.size()},
          {"rank_list", std::move(ranks)}};
}

Json AtcConfig(const ClusterMap& cluster) {
  Json servers = Json::array();
  for (int node = 0; node < cluster.node_count(); ++node) {
    Json devices = Json::array();
    for (const RankPlace* place : cluster.OnNode(node)) {
      devices.push_back({{"device_id", Number(place->item)}, {"rank_id", Number(place->rank)}});
    }
    servers.push_back({{"server_id", ServerId(cluster, node)}, {"device", std::move(devices)}});
  }
  return {{"RankTable",
           {{"status", "completed"},
            {"version", "1.2"},
            {"server_count", Number(cluster.node_count())},
            {"server_list", std::move(servers)}}},
          {"HcclCommConfig", {{"hcclCommName", "global"}}}};
}

std::string HostFile(const ClusterMap& cluster) {
  std::string text;
  if (!cluster.contiguous()) {
    text = "# mpirun --hostfile <this file> --map-by seq: one line for each rank\n";
    for (const RankPlace& place : cluster.ranks) text += place.host + " slots=1\n";
    return text;
  }
  for (int node = 0; node < cluster.node_count(); ++node) {
    const auto places = cluster.OnNode(node);
    text += fmt::format("{} slots={}\n", places.front()->host, places.size());
  }
  return text;
}

std::string RankFile(const ClusterMap& cluster) {
  std::string text;
  for (const RankPlace& place : cluster.ranks) {
    text += fmt::format("rank {}={} slot={}\n", place.rank, place.host, CpuListText(place.cpus));
  }
  return text;
}

std::string Text(const Json& json) {
  return json.dump(4, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string_view ClusterForms() {
  return "rank_table_1.0, rank_table_1.2, rank_table_2.0, cluster_config, numa_config, hostfile, "
         "rankfile";
}

Result<std::string> ClusterFile(const ClusterMap& cluster, std::string_view form) {
  if (form == "rank_table_1.0" || form == "rank_table_1.2") {
    NPUMESH_RETURN_IF_ERROR(CheckNeighbours(cluster, form));
    return Text(ServerTable(cluster, form == "rank_table_1.2"));
  }
  if (form == "rank_table_2.0") return Text(LevelTable(cluster));
  if (form == "cluster_config") return Text(AtcConfig(cluster));
  if (form == "numa_config") return NumaConfig(cluster, ConfigForm::kTrue);
  if (form == "hostfile") return HostFile(cluster);
  if (form == "rankfile") return RankFile(cluster);
  return Error(Code::kInvalidArgument, "\"{}\" is no file about a cluster; expected one of {}",
               form, ClusterForms());
}

std::string ClusterText(const ClusterMap& cluster) {
  std::string text;
  for (int node = 0; node < cluster.node_count(); ++node) {
    const auto places = cluster.OnNode(node);
    text += fmt::format("node {}: {} ({}), {} rank{}\n", node, places.front()->host,
                        places.front()->address, places.size(), places.size() == 1 ? "" : "s");
    std::set<int> numa_nodes;
    for (const RankPlace* place : places) numa_nodes.insert(place->numa_node);
    for (const int numa : numa_nodes) {
      const auto first = std::find_if(places.begin(), places.end(), [&](const RankPlace* place) {
        return place->numa_node == numa;
      });
      text += fmt::format("  NUMA node {}: {} cores, {} MiB\n", numa, (*first)->numa_cores,
                          (*first)->numa_memory >> 20);
      for (const RankPlace* place : places) {
        if (place->numa_node != numa) continue;
        text += fmt::format("    rank {}: item {}, processors {}\n", place->rank, place->item,
                            CpuListText(place->cpus));
      }
    }
  }
  return text;
}

CommandReport ToReport(const ClusterMap& cluster) {
  const auto rank = [](const RankPlace& place) -> nlohmann::json {
    return {{"rank", place.rank},
            {"node", place.node},
            {"item", place.item},
            {"host", place.host},
            {"address", place.address},
            {"numa_node", place.numa_node},
            {"processors", place.cpus},
            {"numa_cores", place.numa_cores},
            {"numa_memory_bytes", place.numa_memory}};
  };
  return {.details = {{"nodes", cluster.node_count()}, {"ranks", ListOf(cluster.ranks, rank)}}};
}

}  // namespace npumesh
