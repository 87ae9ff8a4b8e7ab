// Answer: what a command says to a person, or with --json to a program.
#ifndef NPUMESH_LAUNCH_COMMANDS_ANSWER_H_
#define NPUMESH_LAUNCH_COMMANDS_ANSWER_H_

#include <string>
#include <string_view>

#include "launch/commands/command.h"
#include "launch/report/command_report.h"

namespace npumesh {

struct Answer {
  int exit_code = 0;
  std::string text;
  CommandReport report;
  // What to do with what was found or written: a command to type, with what it says. Empty:
  // nothing.
  std::string next = {};
};

// "next: npumesh profile prof/\n"; empty for nothing.
std::string NextLine(const std::string& next);

// Adds --json.
CLI::Option* AddJsonFlag(CLI::App& command, bool& as_json);

// Prints an answer to standard output, as text or as JSON, with a last line "next: ...", or the key
// "next"; returns its exit code. An error goes to
// standard error as ever, as a failure of the first word of `command`, and is the JSON's "error".
int Tell(std::string_view command, bool as_json, const Result<Answer>& answer);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_ANSWER_H_
