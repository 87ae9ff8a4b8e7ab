// HelpText: how --help is laid out.
#ifndef NPUMESH_LAUNCH_COMMANDS_HELP_TEXT_H_
#define NPUMESH_LAUNCH_COMMANDS_HELP_TEXT_H_

#include <CLI/CLI.hpp>
#include <memory>

namespace npumesh {

// Texts wider than this are hard to read, whatever the screen has room for.
inline constexpr int kWidestHelp = 100;

// A formatter whose lines have at most `columns` characters, and kWidestHelp (0: that many).
// Examples stay whole, because they are there to be copied.
std::shared_ptr<CLI::FormatterBase> HelpText(int columns);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_HELP_TEXT_H_
