// The pages docs/config.md and docs/env.md, and the permission table of docs/security.md, from the
// tables that the program works by.
#ifndef NPUMESH_LAUNCH_CATALOG_OPTION_PAGE_H_
#define NPUMESH_LAUNCH_CATALOG_OPTION_PAGE_H_

#include <functional>
#include <string>
#include <string_view>

#include "graph/config/option.h"

namespace npumesh {

std::string ConfigAsMarkdown();

// "all", or the modes that have an option.
std::string_view ModeText(OptionMode mode);

// Kinds of files with their permissions.
std::string PermissionsAsMarkdown();

// Every variable of the environment, ours and HCCL's.
std::string EnvAsMarkdown();
// One line each: name and what it is set to, or what holds when it is not. `get` returns null for
// an unset variable.
std::string EnvAsText(const std::function<const char*(const char*)>& get);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_CATALOG_OPTION_PAGE_H_
