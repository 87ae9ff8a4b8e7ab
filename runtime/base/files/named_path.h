// What a user named, seen before anything is read: a folder where a folder is meant, or at least
// something that this user can reach. The message says which of it is wrong.
//
// Thread-safety: free functions without state.
#ifndef NPUMESH_RUNTIME_BASE_FILES_NAMED_PATH_H_
#define NPUMESH_RUNTIME_BASE_FILES_NAMED_PATH_H_

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace npumesh {

// Errors: kNotFound, nothing is there; kInvalidArgument, it is a file, or this user may not go
// there. `remedy` says what should be named: "name the folder of a package".
Status NeedFolder(const std::string& path, std::string_view remedy);
// The same for a file or a folder.
Status NeedAnything(const std::string& path, std::string_view remedy = {});

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FILES_NAMED_PATH_H_
