// Files that other tools read about a cluster: rank tables, ATC's cluster_config, files for mpirun.
//
// A simulated device has no network card, but rank tables of several servers need an address for
// each device that no other has. Devices are therefore called by unique-local IPv6 addresses (RFC
// 4193), fd6e:7075:6d65::<node + 1>:<item + 1>: names, not places to connect to.
#ifndef NPUMESH_LAUNCH_TOPO_CLUSTER_FILES_H_
#define NPUMESH_LAUNCH_TOPO_CLUSTER_FILES_H_

#include <string>
#include <string_view>

#include "graph/export/cluster_map.h"

namespace npumesh {

struct CommandReport;

// The text of a file called `form`:
//   rank_table_1.0   servers
//   rank_table_1.2   the same with all servers in one super pod
//   rank_table_2.0   ranks with levels: the node, and between nodes the network
//   cluster_config   what ATC's --cluster_config reads
//   numa_config      numa_config.json of an export
//   hostfile         Open MPI: hosts and slots; ranks in another order than by host need
//                    --map-by seq, which the first line says
//   rankfile         Open MPI: each rank on its processors
// Errors: kInvalidArgument for another form; kUnsupported for ranks of a node that are no
// neighbours, which tables 1.x cannot say.
Result<std::string> ClusterFile(const ClusterMap& cluster, std::string_view form);

// The forms, for messages and --help.
std::string_view ClusterForms();

// What `npumesh topo` prints: a line for each node, NUMA node and rank.
std::string ClusterText(const ClusterMap& cluster);

// The same for programs: `npumesh topo --json` (docs/json.md). Verdict "ok".
CommandReport ToReport(const ClusterMap& cluster);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_TOPO_CLUSTER_FILES_H_
