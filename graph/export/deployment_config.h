// model_relation_config.json and numa_config.json (docs/export.md).
//
// The template form is TorchAir's: all ranks are items of node 0 at 127.0.0.1, to be moved by hand.
// The true form has the same keys in the same order, filled with what the cluster is: items restart
// at 0 on each node, addresses are real. After the template's keys of numa_config.json stand
// `nodes_topology` (several nodes only) and `npumesh_topology`, where each rank's NUMA node, cores
// and memory are; readers of the template do not know and so ignore them.
//
// Both are what Python's json.dump(indent=4, ensure_ascii=False) writes: no newline at the end.
#ifndef NPUMESH_GRAPH_EXPORT_DEPLOYMENT_CONFIG_H_
#define NPUMESH_GRAPH_EXPORT_DEPLOYMENT_CONFIG_H_

#include <string>
#include <utility>
#include <vector>

#include "graph/export/cluster_map.h"

namespace npumesh {

// Groups by name, with world ranks in group order.
using NamedGroups = std::vector<std::pair<std::string, std::vector<int>>>;

enum class ConfigForm { kTrue, kTemplate };

// `air_names` by rank.
std::string RelationConfig(const ClusterMap& cluster, const std::vector<std::string>& air_names,
                           const NamedGroups& groups, ConfigForm form);

std::string NumaConfig(const ClusterMap& cluster, ConfigForm form);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_DEPLOYMENT_CONFIG_H_
