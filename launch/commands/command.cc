#include "launch/commands/command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <new>
#include <sstream>
#include <string>
#include <string_view>

#include "launch/commands/fail_together.h"
#include "launch/commands/help_pages.h"
#include "launch/commands/help_text.h"
#include "launch/commands/validators.h"
#include "launch/commands/versions.h"
#include "launch/screen/progress_line.h"
#include "launch/screen/screen.h"
#include "runtime/base/advice.h"
#include "runtime/base/files/system_call.h"
#include "runtime/base/log.h"
#include "runtime/base/text/nearest_name.h"
#include "runtime/base/text/phrase_book.h"

namespace npumesh {
namespace {

constexpr int kRunTime = 4;  // exit code

// The sub-command that was being parsed; empty before one was recognised.
std::string ParsedCommand(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? std::string() : parsed.front()->get_name();
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string DidYouMean(std::string_view wanted, const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::vector<std::string> near = NearestNames(wanted, views, 1);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near[0]);
}

// Pages that `npumesh help` has beside the commands, and the words that print them.
struct HelpTopic {
  std::string_view name;
  std::vector<std::string> words;
};

// Whether the words name a command, or a command and those below it.
bool NameCommand(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const auto found =
        command->get_subcommands([&](const CLI::App* below) { return below->get_name() == word; });
    if (found.empty()) return false;
    command = found.front();
  }
  return true;
}

// `npumesh help run` is `npumesh run --help`. Empty: the words name no command and no topic.
std::vector<std::string> HelpWords(const CLI::App& app, std::vector<std::string> words) {
  const HelpTopic topics[] = {{"config-options", {"config", "--markdown"}},
                              {"variables", {"env", "--markdown"}}};
  words.erase(words.begin());
  for (const HelpTopic& topic : topics) {
    if (words.size() == 1 && words[0] == topic.name) return topic.words;
  }
  const bool options = !words.empty() && words[0].starts_with('-');
  if (!options && !NameCommand(app, words)) return {};
  words.push_back("--help");
  return words;
}

// "unknown command ..." when the words begin with one; otherwise empty.
std::string UnknownCommand(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words[0].empty() || words[0][0] == '-') return "";
  const std::vector<std::string> names = CommandNames(app);
  if (std::find(names.begin(), names.end(), words[0]) != names.end()) return "";
  return fmt::format("unknown command \"{}\"{}; see npumesh --help", words[0],
                     DidYouMean(words[0], names));
}

// The sub-command that was parsed last, at any depth.
const CLI::App& Innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : Innermost(*parsed.front());
}

// "unknown option --stps; did you mean --steps?" when a word with a dash was not understood;
// otherwise empty.
std::string UnknownOption(const CLI::App& app) {
  const CLI::App& command = Innermost(app);
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    for (const std::string& name : option->get_snames()) known.push_back("-" + name);
  }
  for (const std::string& word : app.remaining(true)) {
    const std::string option = word.substr(0, word.find('='));
    if (option.size() < 2 || option[0] != '-') continue;
    return fmt::format("unknown option {}{}", option, DidYouMean(option, known));
  }
  return "";
}

// "unknown command ..." when a command has sub-commands and the word after it is another one;
// otherwise empty.
std::string UnknownSubCommand(const CLI::App& app) {
  const CLI::App& command = Innermost(app);
  const std::vector<std::string> names = CommandNames(command);
  if (names.empty() || command.get_parent() == nullptr) return "";
  for (const std::string& word : app.remaining(true)) {
    if (word.empty() || word[0] == '-') continue;
    return fmt::format("unknown command \"{} {}\"{}", command.get_name(), word,
                       DidYouMean(word, names));
  }
  return "";
}

int UsageFailure(const CLI::App& app, const CLI::ParseError& error) {
  const std::string command = ParsedCommand(app);
  const std::string full = command.empty() ? "npumesh" : "npumesh " + command;
  std::string what = UnknownSubCommand(app);
  // An option that is not known may have kept the parser from a word that it requires.
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                     dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (what.empty() && extra) what = UnknownOption(app);
  if (what.empty()) what = error.what();
  const Outcome usage = Outcome::Usage(fmt::format("{}; see {} --help", what, full));
  // Every rank was started with the same words: they say so together, once.
  constexpr std::string_view kOfManyRanks[] = {"run", "bench", "export", "topo", "doctor"};
  const auto end = std::end(kOfManyRanks);
  if (std::find(kOfManyRanks, end, command) != end) return FailTogether(command, usage);
  PrintFailure(command, usage.message);
  return usage.exit_code;
}

// A descriptor that is closed would be given to the first file that is opened.
void OpenStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // What is printed to a closed standard output is an error, as on a full disk.
    [[maybe_unused]] const int opened =
        open(fd == STDOUT_FILENO ? "/dev/full" : "/dev/null", O_RDWR);
  }
}

// The errno of the first write to standard output that failed; 0: none.
int& OutputFailure() {
  static int failure = 0;
  return failure;
}

// The one place where it shows whether everything that was printed has arrived.
int Delivered(std::string_view command, int code) {
  const int reason = OutputFailure();
  if (reason == 0) return code;
  if (reason == EPIPE && code == 128 + SIGPIPE) return code;  // the way of all commands in a pipe
  PrintFailure(command,
               fmt::format("standard output cannot be written: {}", std::strerror(reason)));
  constexpr int kDiffers = 1;
  return code <= kDiffers ? kRunTime : code;
}

// For `npumesh launch`, that 1 of this rank is a verdict.
void TellVerdict(int code) {
  constexpr int kDiffers = 1;
  if (code != kDiffers || secure_getenv(kVerdictVariable) == nullptr) return;
  const std::string line = fmt::format("{}\n", kVerdictMark);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

// Says what the user should know of what he typed: rank 0 for all, the others in the log.
bool PrintAdvice(std::string_view command, std::string_view text) {
  if (LogRank() > 0) return false;
  PrintFailure(command, fmt::format("warning: {}", text));
  return true;
}

}  // namespace

namespace {

// CLI11 takes -1 for the largest unsigned number.
void RefuseNegatives(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name() == "UINT") option->check(WholeNumberFromZero());
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    RefuseNegatives(*command);
  }
}

}  // namespace

void AddCommands(CLI::App& app, Action& action) {
  AddRun(app, action);
  AddLaunch(app, action);
  AddPython(app, action);
  AddSamples(app, action);
  AddExport(app, action);
  AddValidate(app, action);
  AddVerify(app, action);
  AddTopo(app, action);
  AddImport(app, action);
  AddAtc(app, action);
  AddGraph(app, action);
  AddDump(app, action);
  AddReplay(app, action);
  AddRecord(app, action);
  AddPs(app, action);
  AddAttach(app, action);
  AddProfile(app, action);
  AddOps(app, action);
  AddBench(app, action);
  AddConfig(app, action);
  AddEnv(app, action);
  AddCard(app, action);
  AddKernels(app, action);
  AddDoctor(app, action);
  AddVersion(app, action);
  AddCompletion(app, action);
  AddMan(app, action);
  RefuseNegatives(app);
}

namespace {

// Needs no memory.
void SayOutOfMemory() {
  static_cast<void>(WriteAll(STDERR_FILENO,
                             "npumesh: out of memory: the system gives this process no more; free "
                             "some, or raise its limit (ulimit -v, the limit of the container)\n"));
}

// Memory that a thread cannot have, where no caller could be told.
[[noreturn]] void EndWithoutCaller() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    SayOutOfMemory();
    _exit(kRunTime);
  } catch (...) {  // the reason stands in the line of SIGABRT, or in none
  }
  __gnu_cxx::__verbose_terminate_handler();
  std::abort();
}

// `npumesh help WORD`, of a word that is no command; what no page has is a misspelt command.
int HelpOf(const CLI::App& app, const std::vector<std::string>& words) {
  const Result<std::string> said = HelpOfPages(words);
  if (said.ok()) {
    const std::string near = words.size() == 1 ? DidYouMean(words[0], CommandNames(app)) : "";
    Show(said.value() + (near.empty() ? "" : fmt::format("no command \"{}\"{}\n", words[0], near)));
    return Delivered("", 0);
  }
  PrintFailure("", UnknownCommand(app, words));
  return Outcome::Usage("").exit_code;
}

// The link `atc` is the command with that word.
bool IsLinkAtc(int argc, const char* const* argv) {
  const std::string_view program = argc > 0 ? argv[0] : "";
  return program.substr(program.rfind('/') + 1) == "atc";
}

int RunNpumesh(int argc, const char* const* argv) {
  // A file that grows too large is an error of the write then.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app("Ascend graphs and HCCL programs, with true numbers, on any MPI cluster", "npumesh");
  app.require_subcommand(1);
  app.formatter(HelpText(ScreenOf(STDOUT_FILENO).columns));
  std::string versions = VersionsAsText();
  versions.pop_back();  // CLI11 ends the line
  app.set_version_flag("-V,--version", versions);
  app.footer(
      "npumesh help COMMAND says more; npumesh help config-options and npumesh help variables list "
      "what can be set; npumesh help WORDS searches the pages.\nExample:\n  npumesh launch -n 4 -- "
      "run mp/ --steps 10");
  Action action;
  AddCommands(app, action);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (IsLinkAtc(argc, argv)) words.insert(words.begin(), "atc");
  if (!words.empty() && words[0] == "help") {
    std::vector<std::string> meant = HelpWords(app, words);
    if (meant.empty()) return HelpOf(app, {words.begin() + 1, words.end()});
    words = std::move(meant);
  }
  if (const std::string unknown = UnknownCommand(app, words); !unknown.empty()) {
    PrintFailure("", unknown);
    return Outcome::Usage("").exit_code;
  }
  if (!words.empty() && words[0] == "python") words = PythonWords(std::move(words));
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return UsageFailure(app, error);
    std::ostringstream help;
    const int code = app.exit(error, help, std::cerr);
    Print(help.str());
    return Delivered("", code);
  }
  const std::string command = ParsedCommand(app);
  SetAdvicePrinter([&](std::string_view text) { return PrintAdvice(command, text); });
  const int code = Delivered(command, action());
  TellVerdict(code);
  SetAdvicePrinter(nullptr);
  return code;
}

}  // namespace

int NpumeshMain(int argc, const char* const* argv) {
  OpenStandardStreams();
  std::set_terminate(EndWithoutCaller);
  try {
    return RunNpumesh(argc, argv);
  } catch (const std::bad_alloc&) {
    SetAdvicePrinter(nullptr);
    SayOutOfMemory();
    return kRunTime;
  }
}

void AddFooter(CLI::App& command, std::string_view one,
               const std::vector<std::string_view>& examples, std::string_view notes) {
  std::string text(notes);
  text += fmt::format(
      "Exit codes: 0 success, {}2 usage, 3 input, 4 run-time, 5 another rank, 130 Ctrl-C.",
      one.empty() ? "" : fmt::format("1 {}, ", one));
  if (!examples.empty()) text += "\nExamples:";
  for (const std::string_view example : examples) text += fmt::format("\n  {}", example);
  command.footer(text);
}

void AddAllowOutsideOption(CLI::App& app, bool& allow_outside) {
  app.add_flag("--allow-outside", allow_outside,
               "Take weights that the package lacks from where their paths lead, and follow links "
               "that lead out of it");
}

void Print(std::string_view text) {
  const int reason = WriteAll(STDOUT_FILENO, text);
  if (OutputFailure() == 0) OutputFailure() = reason;
}

void Show(std::string_view text) {
  Print(Shown(InUsersLanguage(text), ScreenOf(STDOUT_FILENO)));
}

void PrintFailure(std::string_view command, std::string_view message) {
  Screen screen = ScreenOf(STDERR_FILENO);
  if (!screen.terminal) screen.columns = 0;  // one line of a log for each message
  const std::string name = command.empty() ? "npumesh:" : fmt::format("npumesh {}:", command);
  // One write, so that the lines of several ranks never interleave.
  const std::string line = Shown(fmt::format("{} {}\n", name, InUsersLanguage(message)), screen);
  static_cast<void>(WriteAll(STDERR_FILENO, line));
}

int Fail(std::string_view command, const Status& status) {
  const Outcome outcome = Outcome::From(status);
  PrintFailure(command, outcome.message);
  return outcome.exit_code;
}

}  // namespace npumesh
