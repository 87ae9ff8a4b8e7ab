// What a tree of dumps holds, for a person.
#ifndef NPUMESH_LAUNCH_DUMP_LISTING_H_
#define NPUMESH_LAUNCH_DUMP_LISTING_H_

#include <string>
#include <vector>

#include "graph/compare/dump_folder.h"

namespace npumesh {

// One line for each rank and step, and with `operators` one for each operator below it: type, name,
// task, and types of its tensors. Errors: as OpenTensorFolder.
Result<std::string> ListingText(const std::vector<DumpStep>& steps, bool operators);

// One line for each tensor of a folder: type, minimum, maximum, mean, standard deviation, L2 norm,
// zeros, NaNs and infinities; statistics files are shown as they are. `only`: operators whose name
// contains it. Errors: as OpenTensorFolder.
Result<std::string> StatText(const std::string& folder, const std::string& only);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_DUMP_LISTING_H_
