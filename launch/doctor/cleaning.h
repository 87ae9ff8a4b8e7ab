// What killed processes of this user have left on this host, and its removal.
//
//   .<name>.<n>.tmp        files on their way: dumps, outputs, reports, flight records
//   .npumesh-export.*      work folders of exports
//   npumesh-job.*          shared memory of jobs that `npumesh launch` started
//   vader_segment.*        shared memory of jobs that mpirun started
//   sm_segment.*           the same, from Open MPI 5 on
//
// What a living process owns is never touched: every one of these is locked, open or mapped while
// its owner lives.
#ifndef NPUMESH_LAUNCH_DOCTOR_CLEANING_H_
#define NPUMESH_LAUNCH_DOCTOR_CLEANING_H_

#include <string>
#include <vector>

#include "runtime/base/files/leftovers.h"

namespace npumesh {

struct CleanedFolder {
  std::string path;
  LeftoverDepth depth = LeftoverDepth::kTree;
};

struct Cleaning {
  std::vector<std::string> removed;
  // Work folders of exports that were killed while they replaced files. They are needed to take the
  // package back, which the next export into it does.
  std::vector<std::string> interrupted;
};

// Looks through `folders` and the places of shared memory.
Cleaning CleanUp(const std::vector<CleanedFolder>& folders);

// A line for each thing, and how many there were.
std::string ToText(const Cleaning& cleaning);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DOCTOR_CLEANING_H_
