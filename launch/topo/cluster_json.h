// Which rank is where, for programs: `npumesh topo --json` (docs/json.md).
#ifndef NPUMESH_LAUNCH_TOPO_CLUSTER_JSON_H_
#define NPUMESH_LAUNCH_TOPO_CLUSTER_JSON_H_

#include "graph/export/cluster_map.h"
#include "launch/report/command_report.h"

namespace npumesh {

// Verdict "ok".
CommandReport ToReport(const ClusterMap& cluster);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_TOPO_CLUSTER_JSON_H_
