// Files on their way (secure_file.h) that killed processes have left behind.
//
// Who writes a file aside holds a lock on it until it is renamed, so a file without a lock has
// no writer any more. Where the file system knows no locks, nothing is removed.
//
// Thread-safety: any thread; several processes may look through one folder at once.
#ifndef NPUMESH_RUNTIME_BASE_FILES_LEFTOVERS_H_
#define NPUMESH_RUNTIME_BASE_FILES_LEFTOVERS_H_

#include <string>
#include <string_view>
#include <vector>

namespace npumesh {

// True for ".<name>.<number>.tmp" and ".<name>.<number>.<number>.tmp".
bool IsAsideName(std::string_view name);

enum class LeftoverDepth {
  kFolder,  // the folder itself
  kTree,    // and all below it; links are not followed
};

// Removes the files of this user in `folder` that were on their way when their writer died; their
// paths. What cannot be read or removed stays.
std::vector<std::string> RemoveLeftovers(const std::string& folder, LeftoverDepth depth);

// RemoveLeftovers, told in the log.
void ClearLeftoversOf(const std::string& folder, LeftoverDepth depth);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FILES_LEFTOVERS_H_
