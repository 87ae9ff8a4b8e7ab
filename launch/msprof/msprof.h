// The program `msprof`: the vendor's command as far as readers of profiles call it after a run. It
// exports the tables and timelines of the PROF_* folders that aclprofStop has left.
#ifndef NPUMESH_LAUNCH_MSPROF_MSPROF_H_
#define NPUMESH_LAUNCH_MSPROF_MSPROF_H_

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// Answers a call with `words` behind the program's name. Errors: kInvalidArgument for words that
// are not part of it; those of ExportMsprof.
Result<std::string> Msprof(const std::vector<std::string>& words);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_MSPROF_MSPROF_H_
