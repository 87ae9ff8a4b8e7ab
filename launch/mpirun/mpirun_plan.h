// MpirunPlan: the words by which mpirun starts the ranks.
#ifndef NPUMESH_LAUNCH_MPIRUN_MPIRUN_PLAN_H_
#define NPUMESH_LAUNCH_MPIRUN_MPIRUN_PLAN_H_

#include <string>
#include <string_view>
#include <vector>

#include "launch/mpirun/host_list.h"
#include "launch/mpirun/mpi_launcher.h"

namespace npumesh {

struct LaunchOptions {
  int ranks = 1;
  // At most one of the two; empty: this machine.
  std::string hosts;
  std::string host_file;
  // Cores of a rank: core, numa or none. npumesh binds its ranks itself by hwloc; other programs
  // are bound by mpirun. Empty: npumesh's default, and none for other programs.
  std::string bind;
  // Further words for mpirun, as given.
  std::vector<std::string> mpi_args;
  // The program and its words, or a sub-command of npumesh and its words.
  std::vector<std::string> command;
  // After so many seconds all ranks end; 0: never.
  int timeout = 0;
};

// What the plan needs to know about this process and machine.
struct LaunchPlace {
  std::string mpirun;  // path
  std::string self;    // path of the npumesh command
  bool root = false;   // effective user
  int cores = 1;       // of this machine
  std::vector<std::string> sub_commands;
  // Folder for Open MPI's shared memory (segment_folder.h). Not empty: all ranks are on this host
  // and talk through that memory only, so that no rank opens a port.
  std::string segments;
  MpiLauncher launcher = MpiLauncher::kOpenMpi4;
  // NAME=value, for ranks that run a sub-command: what of our screen they should know.
  std::vector<std::string> variables;
};

// argv of mpirun, path first, in the words of `place.launcher`. Every rank gets LOCAL_WORLD_SIZE;
// mpirun binds nothing when ranks bind themselves. `spread` comes from SpreadRanks.
std::vector<std::string> MpirunWords(const LaunchOptions& options, const LaunchPlace& place,
                                     const Spread& spread);

// True when the ranks run `npumesh python`, which becomes a program of the user.
bool RunsPython(const LaunchOptions& options);

// True when the ranks run another sub-command of npumesh.
bool RunsSubCommand(const LaunchOptions& options, const LaunchPlace& place);

// What a job has said of its end, beside mpirun's exit code.
struct JobWords {
  bool own = false;      // the ranks ran a command of npumesh
  bool refused = false;  // mpirun said that it could not start the ranks, and no rank said anything
  bool verdict = false;  // a rank said that a comparison differs
  bool vanished = false;  // a rank ended without MPI_Finalize, while others went on
};

// The exit code of a job for mpirun's `code`: of npumesh's own when a rank returned one, 5 when a
// rank was lost, 4 when mpirun could not start the ranks. 1 of npumesh's own is a verdict that a
// rank has told, and else a fault of mpirun or MPI: 4. Other codes are those of the rank that ended
// first.
int JobCode(int code, const JobWords& words);

// The absolute path of `program` in a PATH-like list of folders; kNotFound names the Debian package
// `package`.
Result<std::string> FindProgram(std::string_view program, std::string_view folders,
                                std::string_view package);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_MPIRUN_MPIRUN_PLAN_H_
