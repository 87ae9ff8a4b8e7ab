// Profiles into a folder that does not exist yet, as hccl_test does.
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acl/acl_prof.h"
#include "client.h"

static bool IsFolder(const std::string& path) {
  struct stat entry;
  return stat(path.c_str(), &entry) == 0 && S_ISDIR(entry.st_mode);
}

// Removes the profiles in the folder; returns how many there were.
static size_t RemoveProfiles(const std::string& folder) {
  glob_t found;
  if (glob((folder + "/rank_*.npprof").c_str(), 0, nullptr, &found) != 0) return 0;
  const size_t count = found.gl_pathc;
  for (size_t i = 0; i < count; ++i) unlink(found.gl_pathv[i]);
  globfree(&found);
  return count;
}

static bool Check(const Rank& me) {
  int32_t device = 0;
  CHECK_ACL(aclrtGetDevice(&device));
  uint32_t id = static_cast<uint32_t>(device);
  aclprofConfig* config =
      aclprofCreateConfig(&id, 1, ACL_AICORE_PIPE_UTILIZATION, nullptr, ACL_PROF_HCCL_TRACE);
  if (config == nullptr) return false;
  if (me.rank == 0) CHECK_ACL(aclprofStart(config));
  CHECK_HCCL(HcclBarrier(me.comm, me.stream));
  CHECK_ACL(aclrtSynchronizeStream(me.stream));
  if (me.rank == 0) CHECK_ACL(aclprofStop(config));
  CHECK_ACL(aclprofDestroyConfig(config));
  return true;
}

int main(int argc, char** argv) {
  const std::string above = "profiling_of_" + std::to_string(getpid());
  const std::string folder = above + "/npu";
  if (aclprofInit(folder.c_str(), folder.size()) != ACL_SUCCESS || IsFolder(above)) return 2;
  const int result = RunClient(argc, argv, Check);
  const bool made = IsFolder(folder);
  const size_t profiles = RemoveProfiles(folder);
  rmdir(folder.c_str());
  rmdir(above.c_str());
  if (made != (profiles == 1)) return 5;
  return result == 0 && aclprofFinalize() == ACL_SUCCESS ? 0 : made ? 3 : 4;
}
