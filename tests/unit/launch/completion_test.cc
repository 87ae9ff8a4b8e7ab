#include "launch/commands/completion_text.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "launch/commands/command.h"
#include "launch/commands/help_text.h"
#include "launch/commands/option_facts.h"
#include "launch/mpirun/child_process.h"
#include "launch/screen/fold.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

// The commands as `npumesh` offers them, with a --help of so many columns.
class EveryCommand : public testing::Test {
 protected:
  explicit EveryCommand(int columns = 0) {
    app_.formatter(HelpText(columns));
    AddCommands(app_, action_);
    Collect(app_);
  }

  void Collect(const CLI::App& command) {
    all_.push_back(&command);
    for (const CLI::App* below : SubCommands(command)) Collect(*below);
  }

  CLI::App app_{"", "npumesh"};
  Action action_;
  std::vector<const CLI::App*> all_;
};

TEST_F(EveryCommand, HasAHelpOfAtMost100Columns) {
  ASSERT_GT(all_.size(), 25u);
  for (const CLI::App* command : all_) {
    const std::string help = command->help();
    for (const std::string_view line : Split(help, "\n")) {
      EXPECT_LE(WidthOf(line), 100u) << FullName(*command) << ": " << line;
    }
  }
}

TEST_F(EveryCommand, HasAnExampleThatBeginsWithIt) {
  for (const CLI::App* command : all_) {
    if (command == &app_) continue;
    const std::string help = command->help();
    const size_t at = help.find("Examples:\n");
    ASSERT_NE(at, help.npos) << FullName(*command);
    EXPECT_THAT(help.substr(at), HasSubstr(" " + command->get_name())) << FullName(*command);
  }
}

// Descriptions are for people: no name of a C++ type, nothing said twice.
TEST_F(EveryCommand, NamesItsValues) {
  for (const CLI::App* command : all_) {
    for (const OptionFacts& facts : AllFacts(*command)) {
      const std::string where = FullName(*command) + " " + facts.names[0];
      EXPECT_FALSE(facts.text.empty()) << where;
      EXPECT_EQ(facts.value.find("UINT"), std::string::npos) << where;
      EXPECT_EQ(facts.value.find(':') != std::string::npos &&
                    facts.value.find(" in [") != std::string::npos,
                false)
          << where;
      EXPECT_EQ(facts.kind == ValueKind::kChoice, facts.choices.size() > 1) << where;
    }
  }
}

// --help, the man page and the completion know the same options.
TEST_F(EveryCommand, IsTheSameInHelpManAndCompletion) {
  const std::string script = BashCompletion(app_);
  for (const CLI::App* command : all_) {
    const std::string help = command->help(), page = ManPage(*command);
    const size_t begin = script.find(fmt::format("\n    '{}')\n", FullName(*command)));
    ASSERT_NE(begin, script.npos) << FullName(*command);
    const std::string words =
        script.substr(begin, script.find("\n      ;;\n", begin) - begin) + " ";
    for (const OptionFacts& facts : AllFacts(*command)) {
      const std::string where = FullName(*command) + " " + facts.names[0];
      EXPECT_THAT(help, HasSubstr("\n  " + facts.Heading())) << where;
      std::string heading = facts.Heading();
      for (size_t at = 0; (at = heading.find('-', at)) != heading.npos; at += 2) {
        heading.insert(at, "\\");
      }
      EXPECT_THAT(page, HasSubstr(".B " + heading + "\n")) << where;
      if (facts.positional) continue;
      for (const std::string& name : facts.names) {
        EXPECT_THAT(words, testing::ContainsRegex("[' ]" + name + "[' ]")) << where;
      }
    }
    for (const CLI::App* below : SubCommands(*command)) {
      EXPECT_THAT(page, HasSubstr(".B " + below->get_name() + "\n")) << FullName(*command);
      EXPECT_THAT(words, testing::ContainsRegex("[' ]" + below->get_name() + "[' ]"));
    }
  }
}

class EveryNarrowCommand : public EveryCommand {
 protected:
  EveryNarrowCommand() : EveryCommand(80) {}
};

// Examples are there to be copied, and usage lines of CLI11 stay whole.
TEST_F(EveryNarrowCommand, HasAHelpOf80ColumnsButForExamples) {
  for (const CLI::App* command : all_) {
    const std::string help = command->help();
    for (const std::string_view line : Split(help, "\n")) {
      if (line.starts_with("  npumesh ") || line.starts_with("  NPUMESH_")) continue;
      EXPECT_LE(WidthOf(line), 80u) << FullName(*command) << ": " << line;
    }
  }
}

// What bash offers after these words; the last one is being typed.
class Completion : public EveryCommand {
 protected:
  Completion() {
    folder_ =
        std::filesystem::temp_directory_path() / fmt::format("npumesh-completion-{}", getpid());
    std::filesystem::create_directories(folder_ / "mp");
    std::ofstream(folder_ / "model.air") << "x";
    std::ofstream(folder_ / "script") << BashCompletion(app_);
  }
  ~Completion() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Offers(const std::string& words, int at) const {
    const std::string script = fmt::format(
        "cd '{}' && . ./script && COMP_WORDS=({}) COMP_CWORD={} && _npumesh && "
        "printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        folder_.string(), words, at);
    std::string out, errors;
    const Result<int> code = RunChild(
        {"/bin/bash", "-c", script}, [&](std::string_view bytes) { out += bytes; },
        [&](std::string_view bytes) { errors += bytes; });
    EXPECT_TRUE(code.ok() && *code == 0) << script << "\n" << errors;
    std::vector<std::string> offers;
    for (const std::string_view line : Split(out, "\n")) {
      if (!line.empty()) offers.emplace_back(line);
    }
    return offers;
  }

  std::filesystem::path folder_;
};

TEST_F(Completion, OffersWhatComesNext) {
  using testing::Contains;
  using testing::ElementsAre;
  EXPECT_THAT(Offers("npumesh ru", 1), ElementsAre("run"));
  EXPECT_THAT(Offers("npumesh dump co", 2), ElementsAre("convert", "compare"));
  EXPECT_THAT(Offers("npumesh run --dump-st", 2), ElementsAre("--dump-step"));
  EXPECT_THAT(Offers("npumesh run --bind \"\"", 3), ElementsAre("core", "numa", "none"));
  EXPECT_THAT(Offers("npumesh run m", 2), testing::UnorderedElementsAre("mp", "model.air"));
  EXPECT_THAT(Offers("npumesh run --inputs m", 3), ElementsAre("mp"));
  EXPECT_THAT(Offers("npumesh run --bind = n", 4), ElementsAre("numa", "none"));
  EXPECT_THAT(Offers("npumesh run --bind =", 3), ElementsAre("core", "numa", "none"));
  EXPECT_THAT(Offers("npumesh run --steps \"\"", 3), ElementsAre());
  EXPECT_THAT(Offers("npumesh launch -n 4 -- dump compare --mod", 7), ElementsAre("--model"));
  EXPECT_THAT(Offers("npumesh completion \"\"", 2), Contains("--help"));
}

// Values that the parser takes as text.
TEST_F(Completion, OffersNamesOfOptionsSamplesCommandsAndFaults) {
  using testing::ElementsAre;
  std::ofstream(folder_ / "script") << BashCompletion(app_, {{"A.B.C=VALUE", {"a.b=", "a.c="}},
                                                             {"SAMPLE", {"one", "two"}},
                                                             {"COMMAND", {"run", "ops"}},
                                                             {"FAULT", {"delay:", "kill:"}}});
  EXPECT_THAT(Offers("npumesh run -o a.b", 3), ElementsAre("a.b="));
  EXPECT_THAT(Offers("npumesh run --inject k", 3), ElementsAre("kill:"));
  EXPECT_THAT(Offers("npumesh samples t", 2), ElementsAre("two"));
  EXPECT_THAT(Offers("npumesh man o", 2), ElementsAre("ops"));
}

// A colon in the name of a value does not begin a check of the parser.
TEST_F(EveryCommand, NamesValuesWithColonsWhole) {
  std::map<std::string, std::string> values;
  for (const CLI::App* command : all_) {
    for (const OptionFacts& facts : AllFacts(*command)) {
      values[FullName(*command) + " " + facts.names[0]] = facts.value;
    }
  }
  EXPECT_EQ(values["npumesh topo --plan"], "HOST[,ADDRESS]:RANKS");
  EXPECT_EQ(values["npumesh launch --hosts"], "HOST:N,...");
  EXPECT_EQ(values["npumesh run --int-range"], "NAME=LOW:HIGH");
  EXPECT_EQ(values["npumesh run --inject"], "FAULT");
  EXPECT_EQ(values["npumesh man --write"], "FOLDER");
  EXPECT_EQ(values["npumesh profile --fail-above"], "X");
}

TEST_F(Completion, ForZshGoesThroughBashcompinit) {
  const std::string script = ZshCompletion(app_);
  EXPECT_TRUE(script.starts_with("#compdef npumesh\n"));
  EXPECT_THAT(script, HasSubstr("bashcompinit"));
}

}  // namespace
}  // namespace npumesh
