#include "launch/commands/option_facts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

struct ValueWord {
  std::string_view from;  // what CLI11 calls it
  std::string_view to;
};

// Names of values as people say them.
constexpr std::array kValueWords = {ValueWord{"INT", "N"}, ValueWord{"UINT", "N"},
                                    ValueWord{"FLOAT", "NUMBER"}, ValueWord{"DIR", "FOLDER"}};

std::string ValueWordFor(std::string_view name) {
  const auto found = std::find_if(kValueWords.begin(), kValueWords.end(),
                                  [&](const ValueWord& each) { return each.from == name; });
  return std::string(found == kValueWords.end() ? name : found->to);
}

// "a,b" of "{a,b}"; empty: it is not a list.
std::string_view Listed(std::string_view check) {
  if (!check.starts_with('{') || !check.ends_with('}')) return {};
  return check.substr(1, check.size() - 2);
}

// "1 to 4096" of "INT in [1 - 4096]"; empty: it is not a range.
std::string RangeText(std::string_view check) {
  const size_t open = check.find(" in [");
  const size_t dash = check.find(" - ");
  if (open == check.npos || dash == check.npos || !check.ends_with(']')) return "";
  const std::string_view low = check.substr(open + 5, dash - open - 5);
  const std::string_view high = check.substr(dash + 3, check.size() - dash - 4);
  return fmt::format("{} to {}", low, high);
}

// What CLI11's own checks of paths add to a type.
bool IsPathCheck(std::string_view check) {
  return check == "FILE" || check == "DIR" || check.starts_with("PATH(");
}

// CLI11 says "<type>" or "<type>:<check>". Types of ours may have colons: "HOST:N,...".
void SetValue(std::string_view type, OptionFacts& facts) {
  facts.kind = ValueKind::kText;
  facts.value = ValueWordFor(type);
  const size_t colon = type.rfind(':');
  if (colon == type.npos) return;
  const std::string_view check = type.substr(colon + 1);
  const std::string_view word = type.substr(0, colon);
  if (const std::string_view list = Listed(check); !list.empty()) {
    for (const std::string_view choice : Split(list, ",")) facts.choices.emplace_back(choice);
    facts.value = fmt::format("{}", fmt::join(facts.choices, "|"));
    facts.kind = ValueKind::kChoice;
  } else if (const std::string range = RangeText(check); !range.empty()) {
    facts.value = ValueWordFor(word);
    facts.remarks.push_back(range);
  } else if (check == "POSITIVE") {
    facts.value = ValueWordFor(word);
  } else if (check.starts_with("SIZE")) {
    facts.value = "BYTES";
  } else if (IsPathCheck(check) || word == "TEXT") {
    facts.value = ValueWordFor(check);
  }
}

std::string NamesOf(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

void AddRemarks(const CLI::Option& option, OptionFacts& facts) {
  if (!facts.value.empty() && !option.get_default_str().empty()) {
    facts.remarks.push_back("default: " + option.get_default_str());
  }
  if (option.get_required() && !facts.positional) facts.remarks.emplace_back("required");
  if (!facts.positional && option.get_expected_max() == CLI::detail::expected_max_vector_size) {
    facts.remarks.emplace_back("may be repeated");
  }
  if (!option.get_needs().empty()) facts.remarks.push_back("needs " + NamesOf(option.get_needs()));
  if (!option.get_excludes().empty()) {
    facts.remarks.push_back("not with " + NamesOf(option.get_excludes()));
  }
}

std::vector<std::string> NamesWithDashes(const CLI::Option& option) {
  if (option.get_positional()) return {option.get_single_name()};
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

}  // namespace

std::string OptionFacts::Description() const {
  return remarks.empty() ? text : fmt::format("{} ({})", text, fmt::join(remarks, "; "));
}

std::string OptionFacts::Heading() const {
  const std::string all = fmt::format("{}", fmt::join(names, ","));
  return value.empty() ? all : all + " " + value;
}

OptionFacts FactsOf(const CLI::Option& option) {
  OptionFacts facts;
  facts.positional = option.get_positional();
  facts.names = NamesWithDashes(option);
  facts.text = option.get_description();
  if (option.get_type_size() != 0) SetValue(option.get_type_name(), facts);
  const bool file = facts.value.starts_with("FILE") || facts.value == "PATH";
  if (file) facts.kind = ValueKind::kFile;
  if (facts.value.starts_with("FOLDER")) facts.kind = ValueKind::kFolder;
  AddRemarks(option, facts);
  return facts;
}

std::vector<OptionFacts> AllFacts(const CLI::App& command) {
  std::vector<OptionFacts> all;
  for (const CLI::Option* option : command.get_options()) {
    const bool hidden = option->get_group().empty();
    if (option != command.get_help_ptr() && !hidden) all.push_back(FactsOf(*option));
  }
  if (command.get_help_ptr() != nullptr) all.push_back(FactsOf(*command.get_help_ptr()));
  return all;
}

std::vector<const CLI::App*> SubCommands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

std::string FullName(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  if (parent == nullptr) return command.get_name().empty() ? "npumesh" : command.get_name();
  return FullName(*parent) + " " + command.get_name();
}

}  // namespace npumesh
