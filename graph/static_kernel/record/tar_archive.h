// TarArchive: files in the form of the tar program, as POSIX describes it (ustar).
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_RECORD_TAR_ARCHIVE_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_RECORD_TAR_ARCHIVE_H_

#include <map>
#include <string>

namespace npumesh {

// The archive of `files`, contents by relative path. Equal files give equal bytes: paths are in
// order, and there is neither time nor owner; the mode is 600. REQUIRES: a path has at most 100
// bytes, a file less than 8 GiB.
std::string TarArchive(const std::map<std::string, std::string>& files);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_RECORD_TAR_ARCHIVE_H_
