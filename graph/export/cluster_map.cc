#include "graph/export/cluster_map.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/env/hccl_env.h"
#include "runtime/base/process/host_address.h"
#include "runtime/base/process/host_name.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using Json = nlohmann::json;

Result<std::string> OwnAddress() {
  NPUMESH_ASSIGN_OR_RETURN(const HcclEnv env, HcclEnv::FromProcess());
  NPUMESH_ASSIGN_OR_RETURN(std::vector<NetworkInterface> interfaces, ListInterfaces());
  if (interfaces.empty() && env.if_ip.empty()) return std::string("127.0.0.1");
  return ChooseAddress(std::move(interfaces), env);
}

RankPlace PlaceOn(const Topology& topology, const Placement& placement) {
  RankPlace place;
  place.numa_node = placement.numa_node;
  place.cpus = placement.cpus;
  for (const NumaNode& node : topology.numa_nodes()) {
    if (node.os_index != placement.numa_node) continue;
    place.numa_cores = node.cores;
    place.numa_memory = node.memory_bytes;
  }
  return place;
}

std::string PlaceText(const RankPlace& place) {
  const Json json = {{"host", place.host},           {"address", place.address},
                     {"numa_node", place.numa_node}, {"cpus", place.cpus},
                     {"cores", place.numa_cores},    {"memory", place.numa_memory}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<RankPlace> ParsePlace(const std::string& text) {
  RankPlace place;
  try {
    const Json json = Json::parse(text);
    json.at("host").get_to(place.host);
    json.at("address").get_to(place.address);
    json.at("numa_node").get_to(place.numa_node);
    json.at("cpus").get_to(place.cpus);
    json.at("cores").get_to(place.numa_cores);
    json.at("memory").get_to(place.numa_memory);
  } catch (const nlohmann::json::exception& error) {
    return Error(Code::kCorrupt, "a rank sent no place: {}", error.what());
  }
  return place;
}

}  // namespace

int ClusterMap::node_count() const {
  int highest = -1;
  for (const RankPlace& place : ranks) highest = std::max(highest, place.node);
  return highest + 1;
}

std::vector<const RankPlace*> ClusterMap::OnNode(int node) const {
  std::vector<const RankPlace*> places;
  for (const RankPlace& place : ranks) {
    if (place.node == node) places.push_back(&place);
  }
  return places;
}

bool ClusterMap::contiguous() const {
  std::set<int> seen;
  int last = -1;
  for (const RankPlace& place : ranks) {
    if (place.node != last && !seen.insert(place.node).second) return false;
    last = place.node;
  }
  return true;
}

Result<ClusterMap> SurveyCluster(const World& world, Gathering& gathering) {
  RankPlace mine = PlaceOn(world.topology(), world.placement());
  mine.host = HostName();
  const Result<std::string> address = OwnAddress();
  NPUMESH_RETURN_IF_ERROR(gathering.AgreeOn(address.status()));
  mine.address = *address;
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> texts, gathering.Share(PlaceText(mine)));
  ClusterMap map;
  std::map<int, int> items;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    NPUMESH_ASSIGN_OR_RETURN(RankPlace place, ParsePlace(texts[rank]));
    place.rank = static_cast<int>(rank);
    place.node = world.node_of()[rank];
    place.item = items[place.node]++;
    map.ranks.push_back(std::move(place));
  }
  return map;
}

ClusterMap PlanCluster(const std::vector<PlannedNode>& nodes) {
  ClusterMap map;
  for (size_t node = 0; node < nodes.size(); ++node) {
    const PlannedNode& planned = nodes[node];
    for (int item = 0; item < planned.ranks; ++item) {
      RankPlace place = PlaceOn(planned.topology, planned.topology.Place(item, planned.ranks));
      place.rank = static_cast<int>(map.ranks.size());
      place.node = static_cast<int>(node);
      place.item = item;
      place.host = planned.host;
      place.address = planned.address;
      map.ranks.push_back(std::move(place));
    }
  }
  return map;
}

std::string CpuListText(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (end - i > 1) text += fmt::format("-{}", cpus[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace npumesh
