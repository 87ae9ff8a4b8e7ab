#include "launch/commands/completion_text.h"

#include <fmt/ranges.h>

#include "launch/commands/option_facts.h"

namespace npumesh {
namespace {

std::string_view WordOf(ValueKind kind) {
  switch (kind) {
    case ValueKind::kNone:
      return "none";
    case ValueKind::kFile:
      return "file";
    case ValueKind::kFolder:
      return "folder";
    case ValueKind::kChoice:
      return "choice";
    case ValueKind::kText:
      break;
  }
  return "text";
}

// "kind=choice choices='a b'": what follows an option, or stands where a word is taken.
std::string KindAndChoices(const OptionFacts& facts, const ValuesOfKinds& values) {
  const auto known = values.find(facts.value);
  const bool offers = known != values.end();
  const std::vector<std::string>& choices = offers ? known->second : facts.choices;
  return fmt::format("kind={} choices='{}'", WordOf(offers ? ValueKind::kChoice : facts.kind),
                     fmt::join(choices, " "));
}

// What one command takes, as a case of the script: words, what stands where it takes a word, and
// for each option what follows it.
std::string CaseOf(const CLI::App& command, const ValuesOfKinds& values) {
  std::vector<std::string> words;
  for (const CLI::App* below : SubCommands(command)) words.push_back(below->get_name());
  std::string options;
  std::string positional;
  for (const OptionFacts& facts : AllFacts(command)) {
    if (facts.positional) {
      positional = "      positional_" + KindAndChoices(facts, values) + "\n";
      positional.insert(positional.find(" choices=") + 1, "positional_");
      continue;
    }
    words.insert(words.end(), facts.names.begin(), facts.names.end());
    if (facts.value.empty()) continue;
    options += fmt::format("        {}) {} ;;\n", fmt::join(facts.names, "|"),
                           KindAndChoices(facts, values));
  }
  std::string text = fmt::format("    '{}')\n", FullName(command));
  text += fmt::format("      words='{}'\n{}", fmt::join(words, " "), positional);
  if (!options.empty()) text += fmt::format("      case $before in\n{}      esac\n", options);
  return text + "      ;;\n";
}

std::string CasesOf(const CLI::App& command, const ValuesOfKinds& values) {
  std::string cases = CaseOf(command, values);
  for (const CLI::App* below : SubCommands(command)) cases += CasesOf(*below, values);
  return cases;
}

std::string FullNames(const CLI::App& command) {
  std::string names;
  for (const CLI::App* below : SubCommands(command)) {
    names += fmt::format("'{}'|{}", FullName(*below), FullNames(*below));
  }
  return names;
}

// The command is the longest run of words that names one; `launch ... --` begins anew.
constexpr std::string_view kFirst = R"(# Made by `npumesh completion bash`.
_npumesh() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local command=npumesh words='' kind=none choices='' i
  local positional_kind=none positional_choices=''
  COMPREPLY=()
  if [ "$before" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi  # --bind=c is three words
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [ "${COMP_WORDS[i]}" = -- ]; then command=npumesh; continue; fi
    case "$command ${COMP_WORDS[i]}" in
)";

constexpr std::string_view kLast = R"(  esac
  if [ "$current" = = ]; then current=''; fi
  case $kind in
    choice) COMPREPLY=($(compgen -W "$choices" -- "$current")); _npumesh_goes_on; return ;;
    file) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$current")); return ;;
    folder) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$current")); return ;;
    text) return ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ "${current:0:1}" = - ]; then return; fi
  case $positional_kind in
    choice) COMPREPLY+=($(compgen -W "$positional_choices" -- "$current")) ;;
    file) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- "$current")) ;;
    folder) compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -d -- "$current")) ;;
  esac
}
_npumesh_goes_on() {
  case ${COMPREPLY[0]} in *[:=]) compopt -o nospace 2>/dev/null ;; esac
  return 0
}
complete -F _npumesh npumesh
)";

// Text of a man page: a backslash begins an escape, and so does a dot or a quote at a line's begin.
std::string Roff(std::string_view text) {
  std::string roff;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (roff.empty() || roff.back() == '\n')) roff += "\\&";
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";  // a sign that can be copied, not a hyphen
    } else {
      roff += c;
    }
  }
  return roff;
}

std::string Section(std::string_view title, const std::vector<OptionFacts>& all) {
  std::string section = fmt::format(".SH {}\n", title);
  for (const OptionFacts& facts : all) {
    section += fmt::format(".TP\n.B {}\n{}\n", Roff(facts.Heading()), Roff(facts.Description()));
  }
  return all.empty() ? "" : section;
}

std::string Synopsis(const CLI::App& command, const std::vector<OptionFacts>& positionals) {
  std::string words = FullName(command) + " [OPTIONS]";
  for (const OptionFacts& each : positionals) words += " " + each.names[0];
  if (!SubCommands(command).empty()) words += " COMMAND";
  return words;
}

std::string PageName(const CLI::App& command) {
  std::string name = FullName(command);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

// The footer of --help: its examples stay as they are.
std::string Notes(const std::string& footer) {
  std::string notes = ".SH NOTES\n";
  bool example = false;
  for (size_t at = 0; at < footer.size();) {
    const size_t end = std::min(footer.find('\n', at), footer.size());
    const std::string line = footer.substr(at, end - at);
    if (line.starts_with(' ') != example) notes += example ? ".EE\n" : ".EX\n";
    example = line.starts_with(' ');
    notes += Roff(line) + (example ? "\n" : "\n.PP\n");
    at = end + 1;
  }
  return example ? notes + ".EE\n" : notes;
}

}  // namespace

std::string BashCompletion(const CLI::App& app, const ValuesOfKinds& values) {
  std::string names = FullNames(app);
  names.pop_back();
  return fmt::format(
      "{}      {})\n        command=\"$command ${{COMP_WORDS[i]}}\" ;;\n    esac\n"
      "  done\n  case $command in\n{}{}",
      kFirst, names, CasesOf(app, values), kLast);
}

std::string ZshCompletion(const CLI::App& app, const ValuesOfKinds& values) {
  return "#compdef npumesh\nautoload -U +X bashcompinit && bashcompinit\n" +
         BashCompletion(app, values);
}

std::string ManPage(const CLI::App& command) {
  std::vector<OptionFacts> options, positionals;
  for (OptionFacts& facts : AllFacts(command)) {
    (facts.positional ? positionals : options).push_back(std::move(facts));
  }
  std::string page = fmt::format(".TH {} 1 \"\" npumesh\n.SH NAME\n{} \\- {}\n", PageName(command),
                                 Roff(PageName(command)), Roff(command.get_description()));
  page += fmt::format(".SH SYNOPSIS\n{}\n", Roff(Synopsis(command, positionals)));
  page += Section("ARGUMENTS", positionals) + Section("OPTIONS", options);
  const std::vector<const CLI::App*> below = SubCommands(command);
  if (!below.empty()) page += ".SH COMMANDS\n";
  for (const CLI::App* each : below) {
    page += fmt::format(".TP\n.B {}\n{}\n", Roff(each->get_name()), Roff(each->get_description()));
  }
  return page + Notes(command.get_footer());
}

}  // namespace npumesh
