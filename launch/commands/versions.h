// What this build is made of.
#ifndef NPUMESH_LAUNCH_COMMANDS_VERSIONS_H_
#define NPUMESH_LAUNCH_COMMANDS_VERSIONS_H_

#include <string>

#include "launch/page/page.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// One "name  version" line each: npumesh first, then the libraries it was compiled against.
std::string VersionsAsText();

// {"version": "0.1.0", "source": "...", "Open MPI": "4.1.4", ...}
nlohmann::json VersionsAsJson();

// Of a page that this build writes now.
PageOrigin OriginOf(std::string command);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_VERSIONS_H_
