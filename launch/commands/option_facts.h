// OptionFacts: what --help, the man pages and the completion of shells say of an option. All three
// are made from the commands themselves, so that they cannot contradict each other.
#ifndef NPUMESH_LAUNCH_COMMANDS_OPTION_FACTS_H_
#define NPUMESH_LAUNCH_COMMANDS_OPTION_FACTS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace npumesh {

// What a shell completes as the value of an option. kFile: a file, or a folder that leads to it.
enum class ValueKind : uint8_t { kNone, kText, kChoice, kFile, kFolder };

struct OptionFacts {
  std::vector<std::string> names;  // {"-n", "--ranks"}; one without dashes: a positional
  bool positional = false;
  std::string value;                 // "N", "FILE", "core|numa|none"; empty: a flag
  std::string text;                  // what it does
  std::vector<std::string> remarks;  // "1 to 4096", "default: 1", "needs --dump", "required"
  std::vector<std::string> choices;  // of kChoice
  ValueKind kind = ValueKind::kNone;

  // The text, and the remarks in brackets.
  std::string Description() const;
  // "-n,--ranks N".
  std::string Heading() const;
};

OptionFacts FactsOf(const CLI::Option& option);

// The options and positionals of a command in the order in which they were added; --help too.
std::vector<OptionFacts> AllFacts(const CLI::App& command);

// The sub-commands of a command, in order.
std::vector<const CLI::App*> SubCommands(const CLI::App& command);

// "npumesh dump compare".
std::string FullName(const CLI::App& command);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_OPTION_FACTS_H_
