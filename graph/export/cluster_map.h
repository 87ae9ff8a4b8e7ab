// ClusterMap: which rank is where: node, item on the node, addresses, cores and memory.
//
// An item is a device of a node, numbered from 0 on each node; with one simulated device for each
// rank it is the rank's place among the ranks of its node. Ranks may be spread unevenly and in any
// order.
#ifndef NPUMESH_GRAPH_EXPORT_CLUSTER_MAP_H_
#define NPUMESH_GRAPH_EXPORT_CLUSTER_MAP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/world/gathering.h"
#include "runtime/world/topology.h"

namespace npumesh {

struct RankPlace {
  int rank = 0;
  int node = 0;
  int item = 0;
  std::string host;          // name of the host
  std::string address;       // IPv4 by which other hosts reach it
  int numa_node = 0;         // where its HBM and its threads are, by hwloc
  std::vector<int> cpus;     // of the threads, ascending
  int numa_cores = 0;        // physical cores of that NUMA node which may be used
  uint64_t numa_memory = 0;  // bytes of that NUMA node
};

struct ClusterMap {
  std::vector<RankPlace> ranks;  // by rank

  int node_count() const;
  // Places on one node, by item. REQUIRES: 0 <= node < node_count().
  std::vector<const RankPlace*> OnNode(int node) const;
  // Every node has neighbouring ranks.
  bool contiguous() const;
};

// Collective over all ranks: asks MPI who shares a node, hwloc for the places, the system for the
// addresses (HCCL_IF_IP and HCCL_SOCKET_IFNAME choose). The same on every rank.
Result<ClusterMap> SurveyCluster(const World& world, Gathering& gathering);

// One node of a cluster that is only planned.
struct PlannedNode {
  std::string host;
  std::string address;
  int ranks = 0;
  Topology topology;
};
// Ranks node after node.
ClusterMap PlanCluster(const std::vector<PlannedNode>& nodes);

// "0-3,8": ascending numbers as Linux writes lists of processors.
std::string CpuListText(const std::vector<int>& cpus);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_CLUSTER_MAP_H_
