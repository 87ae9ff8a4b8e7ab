// Texts that are made from the commands for other programs: what shells complete, and man pages.
#ifndef NPUMESH_LAUNCH_COMMANDS_COMPLETION_TEXT_H_
#define NPUMESH_LAUNCH_COMMANDS_COMPLETION_TEXT_H_

#include <CLI/CLI.hpp>
#include <string>

namespace npumesh {

// A script for bash 4 and later, which completes sub-commands, options, their choices, files and
// folders, also after `npumesh launch ... --`.
std::string BashCompletion(const CLI::App& app);

// The same for zsh, which reads bash's scripts through bashcompinit.
std::string ZshCompletion(const CLI::App& app);

// npumesh.1 or npumesh-run.1 in the macros of man(7).
std::string ManPage(const CLI::App& command);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_COMPLETION_TEXT_H_
