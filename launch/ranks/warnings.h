// Warnings of a command about what its user typed or named: printed at every log level, each once.
#ifndef NPUMESH_LAUNCH_RANKS_WARNINGS_H_
#define NPUMESH_LAUNCH_RANKS_WARNINGS_H_

#include <string>
#include <string_view>
#include <vector>

namespace npumesh {

using Warnings = std::vector<std::string>;

// The warnings of one rank as one text, and back; texts of several ranks become one list, in rank
// order, each warning once.
std::string PackWarnings(const Warnings& warnings);
Warnings MergeWarnings(const std::vector<std::string>& packed);

// "npumesh <command>: warning: <text>" for each, on standard error.
void PrintWarnings(std::string_view command, const Warnings& warnings);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RANKS_WARNINGS_H_
