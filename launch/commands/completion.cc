// `npumesh completion` and `npumesh man`: what shells and man(1) know of the commands.
#include <filesystem>

#include "graph/config/option_tables.h"
#include "graph/inject/fault.h"
#include "launch/commands/command.h"
#include "launch/commands/completion_text.h"
#include "launch/commands/option_facts.h"
#include "launch/ranks/rank_circle.h"
#include "launch/samples/samples.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

struct ManOptions {
  std::vector<std::string> command;  // "dump compare"; none: npumesh itself
  std::string folder;                // empty: to standard output
};

// What the parser takes as text and a shell can offer.
ValuesOfKinds KnownValues(const CLI::App& app) {
  ValuesOfKinds values;
  CompilerConfig config;
  SystemOptions session;
  for (const Option& option : OptionsOf(config, session).rows) {
    values["A.B.C=VALUE"].push_back(fmt::format("{}=", option.path));
  }
  for (const Sample& sample : AllSamples()) values["SAMPLE"].emplace_back(sample.name);
  for (const CLI::App* command : SubCommands(app)) values["COMMAND"].push_back(command->get_name());
  for (const std::string_view kind : FaultKinds())
    values["FAULT"].push_back(fmt::format("{}:", kind));
  return values;
}

// The command that the words name, below `app`.
Result<const CLI::App*> Find(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const CLI::App* next = nullptr;
    for (const CLI::App* below : SubCommands(*command)) {
      if (below->get_name() == word) next = below;
    }
    if (next == nullptr) {
      return Error(Code::kInvalidArgument, "{} has no command \"{}\"; see {} --help",
                   FullName(*command), word, FullName(*command));
    }
    command = next;
  }
  return command;
}

Status WritePages(const CLI::App& command, const std::string& folder) {
  std::string name = FullName(command);
  std::replace(name.begin(), name.end(), ' ', '-');
  NPUMESH_RETURN_IF_ERROR(
      WriteFile(fmt::format("{}/{}.1", folder, name), ManPage(command), FileKind::kData));
  for (const CLI::App* below : SubCommands(command)) {
    NPUMESH_RETURN_IF_ERROR(WritePages(*below, folder));
  }
  return Status();
}

int ShowPages(const CLI::App& app, const ManOptions& options) {
  const Result<const CLI::App*> command = Find(app, options.command);
  if (!command.ok()) {
    PrintFailure("man", command.status().message());
    return Outcome::Usage("").exit_code;
  }
  if (options.folder.empty()) {
    Print(ManPage(**command));
    return 0;
  }
  const Status written = WritePages(**command, options.folder);
  return written.ok() ? 0 : Fail("man", written);
}

}  // namespace

void AddCompletion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion =
      app.add_subcommand("completion", "Print what completes npumesh's words in a shell");
  AddFooter(
      *completion, "", {"npumesh completion bash > npumesh.bash"},
      "An installed npumesh has it where bash and zsh look; elsewhere a shell reads it by \". "
      "./npumesh.bash\".\n");
  completion->add_option("shell", *shell, "The shell")
      ->check(CLI::IsMember({"bash", "zsh"}))
      ->required();
  completion->callback([shell, &app, &action] {
    action = [shell, &app] {
      const ValuesOfKinds values = KnownValues(app);
      Print(*shell == "bash" ? BashCompletion(app, values) : ZshCompletion(app, values));
      return 0;
    };
  });
}

void AddMan(CLI::App& app, Action& action) {
  auto options = std::make_shared<ManOptions>();
  CLI::App* man = app.add_subcommand("man", "Print the manual page of a command, for man(1)");
  AddFooter(*man, "", {"npumesh man dump compare > npumesh-dump-compare.1"});
  man->add_option("command", options->command, "The words of a command; default: npumesh itself")
      ->type_name("COMMAND");
  man->add_option("--write", options->folder, "All pages from this command on, into this folder")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  man->callback(
      [options, &app, &action] { action = [options, &app] { return ShowPages(app, *options); }; });
}

}  // namespace npumesh
