// Checks of option values that CLI11 has only with its own texts.
#ifndef NPUMESH_LAUNCH_COMMANDS_VALIDATORS_H_
#define NPUMESH_LAUNCH_COMMANDS_VALIDATORS_H_

#include <CLI/CLI.hpp>

namespace npumesh {

// A finite number from 0 on. The refusal quotes what was given, not the largest number there is.
CLI::Validator NumberFromZero();

// Not below 0; that it is an integer, CLI11 checks by the option's type.
CLI::Validator WholeNumberFromZero();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_VALIDATORS_H_
