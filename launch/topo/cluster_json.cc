#include "launch/topo/cluster_json.h"

namespace npumesh {
namespace {

using nlohmann::json;

json RankJson(const RankPlace& place) {
  return {{"rank", place.rank},
          {"node", place.node},
          {"item", place.item},
          {"host", place.host},
          {"address", place.address},
          {"numa_node", place.numa_node},
          {"processors", place.cpus},
          {"numa_cores", place.numa_cores},
          {"numa_memory_bytes", place.numa_memory}};
}

}  // namespace

CommandReport ToReport(const ClusterMap& cluster) {
  CommandReport report;
  report.verdict = "ok";
  report.details = {{"nodes", cluster.node_count()}, {"ranks", json::array()}};
  for (const RankPlace& place : cluster.ranks) report.details["ranks"].push_back(RankJson(place));
  return report;
}

}  // namespace npumesh
