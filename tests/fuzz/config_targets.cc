#include <algorithm>

#include "graph/config/config_reader.h"
#include "graph/config/option_tables.h"
#include "graph/config/pass_switches.h"
#include "graph/config/validation.h"
#include "tests/fuzz/targets.h"

namespace npumesh::fuzz {
namespace {

std::string CheckAssignments(std::string_view text, const OptionTable& table) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (std::string flaw = FlawOf(ApplyAssignment(text.substr(0, end), table)); !flaw.empty()) {
      return flaw;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return "";
}

}  // namespace

std::string CheckOptions(std::string_view text) {
  Configuration configuration;
  const OptionTable table = OptionsOf(configuration.compiler, configuration.session);
  for (const auto check : {+[](std::string_view json, const OptionTable&options) {
                             return FlawOf(ReadConfig(json, "fuzz.json", options));
                           },
                           +[](std::string_view lines, const OptionTable&options) {
                             return CheckAssignments(lines, options);
                           }}) {
    if (std::string flaw = check(text, table); !flaw.empty()) return flaw;
  }
  for (const Option& option : table.rows) {
    if (ToText(Get(option)).empty()) return "an option without text";
  }
  return FlawOf(PassSwitches::Parse(text, "fuzz.cfg").status());
}

}  // namespace npumesh::fuzz
