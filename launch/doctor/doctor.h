// The doctor over all ranks: every host examines itself; clocks and versions are compared.
#ifndef NPUMESH_LAUNCH_DOCTOR_DOCTOR_H_
#define NPUMESH_LAUNCH_DOCTOR_DOCTOR_H_

#include <string>
#include <vector>

#include "launch/doctor/host_report.h"
#include "launch/ranks/rank_circle.h"
#include "runtime/world/world.h"

namespace npumesh {

// What the build says of itself.
struct BuildFacts {
  std::string mpi;       // "Open MPI 4.1.4"
  std::string versions;  // one line for everything that must be equal on all hosts
};

// Collective over all ranks: one report for each host, on every rank. Takes well below a second.
// Errors as RankCircle::Share.
Result<std::vector<HostReport>> ExamineHosts(World& world, RankCircle& circle,
                                             const BuildFacts& build,
                                             const std::string& mpi_running);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DOCTOR_DOCTOR_H_
