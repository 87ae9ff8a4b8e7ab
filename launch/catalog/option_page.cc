#include "launch/catalog/option_page.h"

#include <fmt/format.h>

#include <vector>

#include "graph/config/option_tables.h"
#include "launch/catalog/environment.h"
#include "runtime/base/env/ascend_env.h"
#include "runtime/base/env/hccl_env.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

// A bar would end a cell of the table.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

// Its name up to the first dot; the top level has none.
std::string_view SectionOf(std::string_view path) {
  const size_t dot = path.find('.');
  return dot == path.npos ? "mode" : path.substr(0, dot);
}

void AppendRow(const Option& option, std::string& text) {
  const bool here = option.effect == OptionEffect::kHere;
  text += fmt::format("| `{}` | {} | `{}` | {}{} | {} |\n", option.path, Cell(AcceptedText(option)),
                      Cell(ToText(Get(option))), here ? "" : "*None:* ", Cell(option.does),
                      ModeText(option.mode));
}

void AppendVariables(std::span<const EnvVariable> variables, std::string& text) {
  text += "| variable | accepted | when unset | meaning |\n|---|---|---|---|\n";
  for (const EnvVariable& variable : variables) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", variable.name, Cell(variable.accepted),
                        Cell(variable.fallback), Cell(variable.meaning));
  }
}

}  // namespace

std::string_view ModeText(OptionMode mode) {
  switch (mode) {
    case OptionMode::kMaxAutotune:
      return "max-autotune";
    case OptionMode::kCapture:
      return "reduce-overhead, npugraph_ex";
    case OptionMode::kAny:
      break;
  }
  return "all";
}

std::string ConfigAsMarkdown() {
  std::string text =
      "# Options\n\n"
      "Every option of `CompilerConfig` and of a session. This page is the output of\n"
      "`npumesh config --markdown`; after a change of the table write it again with\n"
      "`npumesh config --markdown > docs/config.md`.\n\n"
      "```sh\n"
      "npumesh run export.air -o debug.graph_dump.type=txt\n"
      "npumesh run export.air --config config.json -o ge_config.oo_level=O1\n"
      "```\n\n"
      "`config.json` holds nested objects: `{\"debug\": {\"graph_dump\": {\"type\": \"txt\"}}}`. "
      "In C++\n"
      "`config.debug.graph_dump.type = \"txt\"`; the section `export` is the member "
      "`export_config`, and names\n"
      "lose a leading underscore. `null` (on the command line also `none`) is Python's `None`.\n\n"
      "An unknown name, a wrong type, a value out of range or a forbidden combination is an error "
      "that\n"
      "names the field, the value and what is accepted. Options with effect *None* are validated, "
      "then ignored\n"
      "with one warning (shown from `TNG_LOG_LEVEL=2` on). *Modes* says where an option means "
      "something;\n"
      "elsewhere it gets a warning too. Without `--config` and `-o` nodes run in the order of the "
      "file\n"
      "(StableRDFS).\n";
  CompilerConfig config;
  SystemOptions session;
  std::string_view section;
  for (const Option& option : OptionsOf(config, session).rows) {
    if (SectionOf(option.path) != section) {
      section = SectionOf(option.path);
      text += fmt::format(
          "\n## {}\n\n| option | accepted | default | effect | modes |\n|---|---|---|---|---|\n",
          section);
    }
    AppendRow(option, text);
  }
  return text;
}

std::string PermissionsAsMarkdown() {
  std::string text = "| files | while written | finished | folders |\n|---|---|---|---|\n";
  for (const Permission& row : PermissionTable()) {
    text += fmt::format("| {} | {:03o} | {:03o} | {:03o} |\n", row.what, row.file, row.finished,
                        row.folder);
  }
  return text;
}

std::string EnvAsMarkdown() {
  std::string text =
      "# Environment\n\n"
      "Every variable that npumesh reads. This page is the output of `npumesh env --markdown`; "
      "after a\n"
      "change of a table write it again with `npumesh env --markdown > docs/env.md`. A value that "
      "is not\n"
      "accepted is an error that names the variable. `npumesh env` shows what is set.\n\n";
  AppendVariables(AllVariables(), text);
  text +=
      "\n## HCCL\n\n"
      "Read when a communicator is made. All are checked; what has no effect says so.\n\n";
  AppendVariables(HcclEnvTable(), text);
  text +=
      "\n## Other variables of the vendor\n\n"
      "`npumesh run` names once those that are set and have no effect.\n\n";
  AppendVariables(AscendEnvTable(), text);
  return text;
}

std::string EnvAsText(const std::function<const char*(const char*)>& get) {
  std::string text;
  std::vector<EnvVariable> variables = AllVariables();
  variables.insert(variables.end(), HcclEnvTable().begin(), HcclEnvTable().end());
  variables.insert(variables.end(), AscendEnvTable().begin(), AscendEnvTable().end());
  for (const EnvVariable& variable : variables) {
    const char* value = get(variable.name.data());
    text += value != nullptr
                ? fmt::format("{:<28} {}\n", variable.name, value)
                : fmt::format("{:<28} (unset: {})\n", variable.name, variable.fallback);
  }
  return text;
}

}  // namespace npumesh
