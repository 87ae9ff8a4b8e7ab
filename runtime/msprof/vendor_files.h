// The files of the vendor's profiler, made from the profile of a rank, for tools that read them:
// msprof-analyze and MindStudio Insight (docs/formats/vendor_profile.md).
//
//   <folder>/msprof/PROF_000001_<17 digits>_<pid><8 letters>/     as msprof exports
//   <folder>/torch/<host>_rank<R>_<pid>_<17 digits>_ascend_pt/    as the profiler of PyTorch does
//
// The readers do not take both kinds below one folder, so give them <folder>/msprof or
// <folder>/torch, which have one folder for each rank.
#ifndef NPUMESH_RUNTIME_MSPROF_VENDOR_FILES_H_
#define NPUMESH_RUNTIME_MSPROF_VENDOR_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"
#include "runtime/profile/profile_file.h"

namespace npumesh {

struct VendorExport {
  std::string folder;
  // When the files are made, in nanoseconds since 1970: their names have the local time of it. The
  // names of folders have the time at which the profile began.
  int64_t realtime_ns = 0;
  // Node by world rank, as NodesOf returns it. Ranks that are missing count as ranks of the same
  // node.
  std::vector<int> nodes;
};

// Node by world rank, from the profiles of a world; -1 for ranks without a profile.
std::vector<int> NodesOf(const std::vector<RankProfile>& profiles);

// Names of the two folders of a rank, without what stands before them.
std::string MsprofFolderName(const ProfileOwner& owner);
std::string TorchFolderName(const ProfileOwner& owner);

// Writes both folders of one rank, whole or not at all: they are made aside, with a name that
// begins with a dot, and renamed. They are not synced (report_file.h). Errors: kInvalidArgument
// when one of them exists already; kIo, and kInvalidArgument for a link in the way, as SecureFile.
// After an error neither folder is there.
//
// Thread-safety: any thread, for different ranks.
Status WriteVendorFiles(const RankProfile& profile, const VendorExport& how,
                        FileSystem& fs = RealFileSystem());

// The files of all ranks, with nodes from the profiles. The first error ends it; ranks before it
// have their files.
Status WriteVendorFiles(const std::vector<RankProfile>& profiles, const std::string& folder,
                        int64_t realtime_ns, FileSystem& fs = RealFileSystem());

// The same for the rank whose profile stands at `path`, beside it, now. `nodes` as in VendorExport.
// Errors: as ReadRankProfile, too.
Status WriteVendorFilesBeside(const std::string& path, const std::vector<int>& nodes);

// The folder PROF_.. alone, as aclprofStop leaves it, with the clocks of this host at the begin
// (host/start_info) and the profile itself (host/data). REQUIRES: the profile is of this host,
// since its boot. Errors: as above.
Status WriteMsprofFolderBeside(const std::string& path, const std::vector<int>& nodes);

// Writes the tables and timelines of the PROF_.. folders at or in `folder`, from the profiles that
// they have in host/data, in the place of those that are there. Returns the folders; kNotFound when
// no folder has one. Errors: as above.
Result<std::vector<std::string>> ExportMsprof(const std::string& folder);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_VENDOR_FILES_H_
