// SegmentFolder: where Open MPI's ranks on one host share memory (btl/vader, btl/sm from Open MPI 5
// on), in a folder of the job, so that a job that dies leaves nothing in /dev/shm for others to
// stumble over.
//
//   <base>/npumesh-job.<token>/vader_segment.<host>.<user>.<job>.<rank>     4 MiB each
//   <base>/npumesh-job.<token>/sm_segment.<host>.<user>.<job>.<rank>       16 MiB each
//
// The folder is claimed by `npumesh launch` and by the mpirun it starts; a folder that neither
// claims belongs to a job whose processes are all dead.
//
// Thread-safety: none.
#ifndef NPUMESH_LAUNCH_MPIRUN_SEGMENT_FOLDER_H_
#define NPUMESH_LAUNCH_MPIRUN_SEGMENT_FOLDER_H_

#include <memory>
#include <string>
#include <vector>

#include "launch/mpirun/mpi_launcher.h"
#include "runtime/base/files/path_lock.h"
#include "runtime/base/status.h"

namespace npumesh {

class SegmentFolder {
 public:
  // A new folder in the first of `bases` that has room for `ranks`. Null: none has.
  static std::unique_ptr<SegmentFolder> Make(const std::vector<std::string>& bases, int ranks,
                                             MpiLauncher launcher = MpiLauncher::kOpenMpi4);
  // Removes it with all in it.
  ~SegmentFolder();
  SegmentFolder(const SegmentFolder&) = delete;
  SegmentFolder& operator=(const SegmentFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit SegmentFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  PathLock lock_;
};

// /dev/shm, TMPDIR, /tmp: where shared memory may lie, best first.
std::vector<std::string> SegmentBases();

// The same folders and files, which stay; their paths.
std::vector<std::string> DeadFolders(const std::vector<std::string>& bases);
std::vector<std::string> DeadSegments(const std::string& base);

// Removes folders of this user in `bases` whose jobs are dead; their paths.
std::vector<std::string> RemoveDeadFolders(const std::vector<std::string>& bases);

// Removes files vader_segment.<this host>.* and sm_segment.<this host>.* of this user in `base`
// that no process of this user has open or mapped: what jobs that were started by mpirun itself
// have left. Their paths. A process whose files the system does not show, as those of setuid
// programs, is not taken for a rank.
std::vector<std::string> RemoveDeadSegments(const std::string& base);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_MPIRUN_SEGMENT_FOLDER_H_
