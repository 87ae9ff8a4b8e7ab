// What a user should know of the variables that he has set: names that npumesh does not know, and
// the vendor's that have no effect here.
#ifndef NPUMESH_LAUNCH_CATALOG_VARIABLE_NOTICES_H_
#define NPUMESH_LAUNCH_CATALOG_VARIABLE_NOTICES_H_

#include <string>
#include <vector>

namespace npumesh {

// `set`: names of all variables of a process. One line for each name that begins as those of
// npumesh or of the vendor do and is nearly one of them, with the nearest; one for each of HCCL
// that npumesh does not know; and one line for all that have no effect.
std::vector<std::string> VariableNotices(const std::vector<std::string>& set);

// The same of this process.
std::vector<std::string> VariableNotices();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_CATALOG_VARIABLE_NOTICES_H_
