// `npumesh card`: what is known of cards, and whether one would take calls of operators.
#include "graph/ops/builtin_ops.h"
#include "launch/card/call_check.h"
#include "launch/card/card_tables.h"
#include "launch/card/program_report.h"
#include "launch/commands/answer.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

constexpr uint64_t kLargestFile = uint64_t{64} << 20;

struct CardOptions {
  std::string chip;
  std::vector<std::string> calls;
  std::string file;
  std::string junit;
  bool as_json = false;
};

Answer ListChips() {
  CommandReport report = ChipsReport();
  std::string text = ChipsText(report);
  return {0, std::move(text), std::move(report), "npumesh card show CHIP"};
}

Result<Answer> ShowChip(const CardOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const Chip* const chip, Chips().Find(options.chip));
  CommandReport report = ChipReport(*chip);
  std::string text = ChipText(report);
  return Answer{0, std::move(text), std::move(report), {}};
}

Result<Answer> CheckOnChip(const CardOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const Chip* const chip, Chips().Find(options.chip));
  std::vector<std::string> calls = options.calls;
  if (!options.file.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file, kLargestFile));
    for (const std::string_view line : Split(text, "\n")) {
      const std::string_view call = Trimmed(line);
      if (!call.empty() && call[0] != '#') calls.emplace_back(call);
    }
  }
  if (calls.empty()) return Error(Code::kInvalidArgument, "there is no call: give CALL or --calls");
  NPUMESH_ASSIGN_OR_RETURN(CommandReport report, CheckCalls(calls, *chip, BuiltinOps()));
  std::string text = CallsText(report);
  const int code = report.verdict == "taken" ? 0 : 1;
  return Answer{code, std::move(text), std::move(report), {}};
}

Result<Answer> ReportOfPrograms(const CardOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file, kLargestFile));
  Result<CommandReport> read = ProgramReport(text);
  if (!read.ok()) return read.status().WithContext(options.file);
  CommandReport report = *std::move(read);
  if (!options.junit.empty()) {
    const std::string junit = ProgramReportJunit(report, "npumesh card " + options.file);
    NPUMESH_RETURN_IF_ERROR(WriteFile(options.junit, junit, FileKind::kData));
  }
  std::string said = ProgramReportText(report);
  const int code = report.findings.empty() ? 0 : 1;
  return Answer{code, std::move(said), std::move(report), {}};
}

void AddLs(CLI::App& card, const std::shared_ptr<CardOptions>& options, Action& action) {
  CLI::App* command = card.add_subcommand("ls", "List the chips that are known");
  AddFooter(*command, "", {"npumesh card ls"});
  AddJsonFlag(*command, options->as_json);
  command->callback([options, &action] {
    action = [options] { return Tell("card ls", options->as_json, ListChips()); };
  });
}

void AddChip(CLI::App& command, CardOptions& options) {
  command
      .add_option("chip", options.chip, "A chip, or a family, which stands for one of its chips")
      ->type_name("CHIP")
      ->required();
}

void AddShow(CLI::App& card, const std::shared_ptr<CardOptions>& options, Action& action) {
  CLI::App* command =
      card.add_subcommand("show", "What is documented of a chip, with the source of each value");
  AddFooter(*command, "", {"npumesh card show ascend910b3"});
  AddChip(*command, *options);
  AddJsonFlag(*command, options->as_json);
  command->callback([options, &action] {
    action = [options] { return Tell("card show", options->as_json, ShowChip(*options)); };
  });
}

void AddCheck(CLI::App& card, const std::shared_ptr<CardOptions>& options, Action& action) {
  CLI::App* command = card.add_subcommand("check", "Ask whether a chip takes calls of operators");
  AddFooter(*command, "a call is refused, or computed otherwise",
            {"npumesh card check ascend910b3 \"MoeGatingTopK x=float32[16,256] k=8\"",
             "npumesh card check ascend910b3 \"MoeGatingTopK x=float32[16,256] k=8\" --json"});
  AddChip(*command, *options);
  command
      ->add_option("calls", options->calls,
                   "OPERATOR and NAME=VALUE: TYPE[DIMS] of inputs, {values} behind where they "
                   "are known; values of attributes")
      ->type_name("CALL");
  command->add_option("--calls", options->file, "A file with a call on each line")
      ->type_name("FILE");
  AddJsonFlag(*command, options->as_json);
  command->callback([options, &action] {
    action = [options] { return Tell("card check", options->as_json, CheckOnChip(*options)); };
  });
}

void AddReport(CLI::App& card, const std::shared_ptr<CardOptions>& options, Action& action) {
  CLI::App* command = card.add_subcommand(
      "report", "What commands and programs have found, as one report and as JUnit");
  AddFooter(*command, "there are findings",
            {"NPUMESH_CARD=ascend910b3 NPUMESH_CARD_REPORT=found npumesh run model.air",
             "npumesh card report found --junit card.xml"});
  command->add_option("file", options->file, "The file of NPUMESH_CARD_REPORT")
      ->type_name("FILE")
      ->required();
  command->add_option("--junit", options->junit, "Write JUnit XML for CI systems")
      ->type_name("FILE");
  AddJsonFlag(*command, options->as_json);
  command->callback([options, &action] {
    action = [options] {
      return Tell("card report", options->as_json, ReportOfPrograms(*options));
    };
  });
}

}  // namespace

void AddCard(CLI::App& app, Action& action) {
  auto options = std::make_shared<CardOptions>();
  CLI::App* card =
      app.add_subcommand("card", "What is known of real cards, and whether one takes a call");
  card->require_subcommand(1);
  AddFooter(*card, "", {"npumesh card ls", "NPUMESH_CARD=ascend910b3 npumesh run model.air"});
  AddLs(*card, options, action);
  AddShow(*card, options, action);
  AddCheck(*card, options, action);
  AddReport(*card, options, action);
}

}  // namespace npumesh
