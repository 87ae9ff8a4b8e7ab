// Texts that are made from the commands for other programs: what shells complete, and man pages.
#ifndef NPUMESH_LAUNCH_COMMANDS_COMPLETION_TEXT_H_
#define NPUMESH_LAUNCH_COMMANDS_COMPLETION_TEXT_H_

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace npumesh {

// What can stand where an option or a word takes a value of this kind: "SAMPLE" to the names of
// samples. One that ends with "=" or ":" goes on.
using ValuesOfKinds = std::map<std::string, std::vector<std::string>>;

// A script for bash 4 and later, which completes sub-commands, options, their choices and values,
// files and folders, also after `npumesh launch ... --`.
std::string BashCompletion(const CLI::App& app, const ValuesOfKinds& values = {});

// The same for zsh, which reads bash's scripts through bashcompinit.
std::string ZshCompletion(const CLI::App& app, const ValuesOfKinds& values = {});

// npumesh.1 or npumesh-run.1 in the macros of man(7).
std::string ManPage(const CLI::App& command);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_COMPLETION_TEXT_H_
