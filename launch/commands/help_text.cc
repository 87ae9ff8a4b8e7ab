#include "launch/commands/help_text.h"

#include <algorithm>
#include <utility>

#include "launch/commands/option_facts.h"
#include "launch/screen/fold.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

constexpr size_t kTextAt = 26;  // where descriptions begin

class Formatter final : public CLI::Formatter {
 public:
  explicit Formatter(int columns) : columns_(columns) {}

  std::string make_option(const CLI::Option* option, bool) const override {
    const OptionFacts facts = FactsOf(*option);
    return Entry(facts.Heading(), facts.Description());
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return Entry(command->get_name(), command->get_description());
  }

  std::string make_description(const CLI::App* command) const override {
    return Paragraph(command->get_description(), columns_, 0, 0) + "\n";
  }

  // One empty line before the footer: CLI11 2.3 puts it there, CLI11 2.4 leaves it to the footer.
  std::string make_help(const CLI::App* command, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string help = CLI::Formatter::make_help(command, std::move(name), mode);
    const std::string footer = make_footer(command);
    if (footer.empty() || !help.ends_with(footer)) return help;
    help.resize(help.size() - footer.size());
    help.resize(help.find_last_not_of('\n') + 1);
    return help + "\n\n" + footer;
  }

  // Lines that begin with blanks are examples.
  std::string make_footer(const CLI::App* command) const override {
    const std::string written = command->get_footer();
    std::string footer;
    for (const std::string_view line : Split(written, "\n")) {
      footer += line.starts_with(' ') ? std::string(line) : Paragraph(line, columns_, 0, 2);
      footer += '\n';
    }
    return footer;
  }

 private:
  // "  <heading>   <text>"; a long heading has a line for itself.
  std::string Entry(const std::string& heading, const std::string& text) const {
    std::string entry = "  " + heading;
    const bool beside = WidthOf(entry) + 2 <= kTextAt;
    entry += beside ? std::string(kTextAt - WidthOf(entry), ' ') : "\n" + std::string(kTextAt, ' ');
    return entry + Paragraph(text, columns_, kTextAt, kTextAt) + "\n";
  }

  int columns_;
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> HelpText(int columns) {
  const int width = columns == 0 ? kWidestHelp : std::min(columns, kWidestHelp);
  return std::make_shared<Formatter>(width);
}

}  // namespace npumesh
