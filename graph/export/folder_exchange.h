// Putting a whole folder in the place of another in one step.
#ifndef NPUMESH_GRAPH_EXPORT_FOLDER_EXCHANGE_H_
#define NPUMESH_GRAPH_EXPORT_FOLDER_EXCHANGE_H_

#include <string>

#include "runtime/base/files/file_system.h"

namespace npumesh {

// Whether something has this name; a link that leads nowhere, too.
bool Exists(const std::string& path);

// Whether a folder beside `target` can take its place: both would lie in one file system, this user
// owns `target` and may write beside it, and this process does not work in it, since the working
// folder would go away with the old one.
bool CanTakePlaceOf(const std::string& target);

// Makes `fresh` hold all that `target` holds and it does not have, by hard links, with the folders'
// permissions. Error: something that is neither file nor folder, too many files (kMostCarried), or
// what link says; what was linked stays.
Status CarryOver(const std::string& target, const std::string& fresh, FileSystem& fs);
inline constexpr size_t kMostCarried = 10'000;

// Moves to `target` what `old` has and it has not: what came in while the folders changed places.
void RescueLatecomers(const std::string& old, const std::string& target, FileSystem& fs);

// The two folders change names at once (RENAME_EXCHANGE). Error: kUnsupported where the file system
// cannot, kIo.
Status Exchange(const std::string& a, const std::string& b);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_FOLDER_EXCHANGE_H_
