#include "launch/commands/command.h"

#include <gmock/gmock.h>

#include "launch/commands/versions.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

struct Ran {
  int code;
  std::string out, err;
};

Ran RunCommand(std::vector<const char*> words) {
  words.insert(words.begin(), "npumesh");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = NpumeshMain(static_cast<int>(words.size()), words.data());
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(Commands, UsageErrorsAreOneLineAndCode2) {
  const std::vector<std::pair<std::vector<const char*>, std::string>> cases = {
      {{}, "npumesh: "},
      {{"dance"}, "npumesh: "},
      {{"graph"}, "npumesh graph: file is required; see npumesh graph --help\n"},
      {{"graph", "a", "--nope"}, "npumesh graph: "},
      {{"graph", "a", "--json"}, "npumesh graph: "},
      {{"graph", "a", "--plan", "--dot", "b"}, "npumesh graph: "},
      {{"graph", "a", "-o", "ge_config.oo_level=O1"}, "npumesh graph: "},
      {{"graph", "a", "--plan", "--inputs", "b", "--dim", "x=1"}, "npumesh graph: "},
      {{"run"}, "npumesh run: path is required; see npumesh run --help\n"},
      {{"run", "a", "--steps", "0"}, "npumesh run: "},
      {{"run", "a", "--steps", "ten"}, "npumesh run: "},
      {{"run", "a", "--rtol", "-1"}, "npumesh run: "},
      {{"run", "a", "--bind", "socket"}, "npumesh run: "},
      {{"run", "a", "--inputs", "b", "--dim", "x=1"}, "npumesh run: "},
      {{"launch", "--", "run"}, "npumesh launch: "},
      {{"launch", "-n", "2"}, "npumesh launch: "},
      {{"launch", "-n", "2", "--hosts", "a", "--hostfile", "b", "--", "run"}, "npumesh launch: "},
  };
  for (const auto& [words, line] : cases) {
    const Ran ran = RunCommand(words);
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_EQ(ran.out, "") << line;
    EXPECT_THAT(ran.err, testing::StartsWith(line));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("--help\n"));
  }
}

TEST(Commands, EveryHelpEndsWithAnExample) {
  CLI::App app;
  Action action;
  AddCommands(app, action);
  for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    const Ran ran = RunCommand({command->get_name().c_str(), "--help"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_THAT(ran.out, HasSubstr("Example")) << command->get_name();
    EXPECT_THAT(ran.out, HasSubstr("\n  ")) << command->get_name();
  }
}

TEST(Commands, AMissingFileIsCode3AndOneLine) {
  const Ran ran = RunCommand({"graph", "/no/such.air"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("/no/such.air"));
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
}

TEST(Commands, VersionNamesTheLibraries) {
  const Ran ran = RunCommand({"version"});
  EXPECT_EQ(ran.code, 0);
  for (const char* name : {"npumesh", "oneDNN", "hwloc", "Highway"}) {
    EXPECT_THAT(ran.out, HasSubstr(name));
  }
  EXPECT_EQ(RunCommand({"version", "--json"}).out, VersionsAsJson().dump(2) + "\n");
}

}  // namespace
}  // namespace npumesh
