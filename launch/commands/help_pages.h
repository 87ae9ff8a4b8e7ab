// `npumesh help WORD`: what the installed pages say of it.
#ifndef NPUMESH_LAUNCH_COMMANDS_HELP_PAGES_H_
#define NPUMESH_LAUNCH_COMMANDS_HELP_PAGES_H_

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// What the pages that lie beside this program have about the words, as text. Errors: no page is
// installed; none has all the words (NOT_FOUND).
Result<std::string> HelpOfPages(const std::vector<std::string>& words);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_HELP_PAGES_H_
