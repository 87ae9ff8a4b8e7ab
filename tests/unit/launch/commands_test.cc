#include "launch/commands/command.h"

#include <gmock/gmock.h>

#include "launch/commands/versions.h"
#include "runtime/base/text/json.h"

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
      {{"dance"}, "npumesh: unknown command \"dance\"; see npumesh --help\n"},
      {{"runn", "a"}, "npumesh: unknown command \"runn\"; did you mean run?"},
      {{"help", "runn"}, "npumesh: unknown command \"runn\"; did you mean run?"},
      {{"run", "--stps", "3", "a"},
       "npumesh run: unknown option --stps; did you mean --steps?; see npumesh run --help\n"},
      {{"dump", "ls", "a", "--operator=b"},
       "npumesh dump: unknown option --operator; did you mean"},
      {{"dump", "compar", "a", "b"},
       "npumesh dump: unknown command \"dump compar\"; did you mean compare?; see npumesh dump"},
      {{"kernels", "prune"}, "npumesh kernels: unknown command \"kernels prune\"; see npumesh"},
      {{"dump"}, "npumesh dump: A subcommand is required; see npumesh dump --help\n"},
      {{"man", "dump", "stats"}, "npumesh man: npumesh dump has no command \"stats\"; see npumesh"},
      {{"completion", "fish"}, "npumesh completion: "},
      {{"graph"}, "npumesh graph: file is required; see npumesh graph --help\n"},
      {{"graph", "a", "--nope"}, "npumesh graph: "},
      {{"graph", "a", "--plan", "--dot", "b"}, "npumesh graph: "},
      {{"graph", "a", "-o", "ge_config.oo_level=O1"}, "npumesh graph: "},
      {{"graph", "a", "--plan", "--inputs", "b", "--dim", "x=1"}, "npumesh graph: "},
      {{"run"}, "npumesh run: path is required; see npumesh run --help\n"},
      {{"run", "a", "--steps", "0"}, "npumesh run: "},
      {{"run", "a", "--steps", "ten"}, "npumesh run: "},
      {{"run", "a", "--rtol", "-1"}, "npumesh run: "},
      {{"run", "a", "--seed", "-1"},
       "npumesh run: --seed: expected an integer from 0 on, got \"-1\"; see npumesh run --help\n"},
      {{"replay", "a", "--model", "b", "--step", "-1"},
       "npumesh replay: --step: expected an integer from 0 on, got \"-1\"; see npumesh replay"},
      {{"-v"}, "npumesh: unknown option -v; did you mean -V?; see npumesh --help\n"},
      {{"run", "--stps", "3"}, "npumesh run: unknown option --stps; did you mean --steps?; see"},
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

TEST(Commands, HelpAndVersionAreFoundWhereTheyAreLookedFor) {
  EXPECT_EQ(RunCommand({"help"}).out, RunCommand({"--help"}).out);
  EXPECT_EQ(RunCommand({"help", "dump"}).out, RunCommand({"dump", "--help"}).out);
  for (const char* word : {"--version", "-V"}) {
    const Ran ran = RunCommand({word});
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.out, RunCommand({"version"}).out);
  }
}

TEST(Commands, ANegativeRankIsRefusedWithoutTheLargestNumberThereIs) {
  const Ran ran = RunCommand({"dump", "compare", "a", "b", "--ranks", "-1,2"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("expected a number from 0 on, got \"-1\""));
  EXPECT_THAT(RunCommand({"dump", "compare", "--help"}).out, HasSubstr("both 0 or more"));
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
  const nlohmann::json said = nlohmann::json::parse(RunCommand({"version", "--json"}).out);
  EXPECT_EQ(said.at("command"), "version");
  EXPECT_EQ(said.at("exit_code"), 0);
  const nlohmann::json versions = VersionsAsJson();
  for (const auto& [name, version] : versions.items()) EXPECT_EQ(said.at(name), version);
}

// What `words` print as one JSON object with the keys that all commands share.
nlohmann::json JsonOf(std::vector<const char*> words, const std::string& command, int code) {
  words.push_back("--json");
  const Ran ran = RunCommand(words);
  EXPECT_EQ(ran.code, code) << ran.err;
  const auto object = nlohmann::json::parse(ran.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(object.is_object()) << ran.out;
  if (!object.is_object()) return nlohmann::json::object();
  EXPECT_EQ(object.value("command", ""), command);
  EXPECT_EQ(object.value("exit_code", -1), code);
  EXPECT_TRUE(object.contains("verdict") && object.contains("error"));
  EXPECT_TRUE(object.contains("findings") && object["findings"].is_array());
  return object;
}

TEST(Commands, JsonOfTheTables) {
  const nlohmann::json ops = JsonOf({"ops"}, "ops", 0);
  const auto is_add = [](const nlohmann::json& op) { return op.at("type") == "Add"; };
  const auto& operators = ops.at("operators");
  const auto add = std::find_if(operators.begin(), operators.end(), is_add);
  ASSERT_NE(add, operators.end());
  EXPECT_EQ(add->at("inputs").size(), 2u);
  EXPECT_EQ(add->at("inputs")[0], nlohmann::json({{"name", "x1"}, {"kind", "required"}}));

  const nlohmann::json aclnn =
      JsonOf({"ops", "--aclnn", "aclnnInplaceAdd", "aclnnUniqueDim"}, "ops", 0).at("functions");
  ASSERT_EQ(aclnn.size(), 2u);
  EXPECT_EQ(aclnn[0].at("state"), "available");
  EXPECT_EQ(aclnn[0].at("operators"), nlohmann::json({"aclnnAdd"}));
  EXPECT_EQ(aclnn[0].at("header"), "aclnn_add.h");
  EXPECT_EQ(aclnn[1].at("state"), "absent");
  EXPECT_EQ(aclnn[1].at("reason"), "values decide the shape of its result");

  const nlohmann::json env = JsonOf({"env"}, "env", 0);
  EXPECT_EQ(env.at("variables"), JsonOf({"doctor", "--env"}, "env", 0).at("variables"));
  const auto names = [](const nlohmann::json& row) { return row.at("name") == "NPUMESH_RECORD"; };
  EXPECT_TRUE(std::any_of(env["variables"].begin(), env["variables"].end(), names));

  const nlohmann::json topo =
      JsonOf({"topo", "--plan", "a,10.0.0.1:2", "--plan", "b:1"}, "topo", 0);
  EXPECT_EQ(topo.at("nodes"), 2);
  ASSERT_EQ(topo.at("ranks").size(), 3u);
  EXPECT_EQ(topo["ranks"][1].at("host"), "a");
  EXPECT_EQ(topo["ranks"][1].at("address"), "10.0.0.1");
  EXPECT_EQ(topo["ranks"][2].at("node"), 1);
}

TEST(Commands, JsonOfOptionsSamplesAndImports) {
  const auto named = [](const nlohmann::json& list, const std::string& name) {
    const auto found = std::find_if(list.begin(), list.end(), [&](const nlohmann::json& row) {
      return row.at("name") == name;
    });
    EXPECT_NE(found, list.end()) << name;
    return found == list.end() ? nlohmann::json::object() : *found;
  };
  const nlohmann::json config = JsonOf({"config"}, "config", 0);
  const nlohmann::json level = named(config.at("options"), "ge_config.oo_level");
  EXPECT_EQ(level.value("default", ""), "\"O3\"");
  EXPECT_EQ(level.value("has_effect", false), true);
  EXPECT_EQ(level.value("modes", ""), "max-autotune");
  EXPECT_EQ(JsonOf({"config", "-o", "ge_config.oo_level=O1"}, "config", 0).at("verdict"), "valid");

  const nlohmann::json samples = JsonOf({"samples"}, "samples", 0).at("samples");
  EXPECT_EQ(named(samples, "decoder_4").value("ranks", 0), 4);
  EXPECT_EQ(named(samples, "own_operator").value("library", ""), "libpolynomial_operator.so");

  const nlohmann::json ops = JsonOf({"import", "--ops"}, "import", 0).at("operators");
  EXPECT_EQ(named(ops, "ReduceLogSumExp").value("since", 0), 1);
}

// Two tables have words after help.
TEST(Commands, HelpHasPagesOfWhatCanBeSet) {
  EXPECT_EQ(RunCommand({"help", "config-options"}).out, RunCommand({"config", "--markdown"}).out);
  EXPECT_EQ(RunCommand({"help", "variables"}).out, RunCommand({"env", "--markdown"}).out);
  EXPECT_THAT(RunCommand({"--help"}).out, HasSubstr("npumesh help config-options"));
}

TEST(Commands, JsonOfAnErrorNamesIt) {
  const std::vector<std::pair<std::vector<const char*>, std::string>> cases = {
      {{"record", "/no/such"}, "record"},
      {{"profile", "/no/such"}, "profile"},
      {{"validate", "/no/such"}, "validate"},
      {{"replay", "/no/such", "--model", "x"}, "replay"},
      {{"dump", "compare", "/no/such", "/no/other"}, "dump compare"},
      {{"dump", "laws", "/no/such", "--model", "x"}, "dump laws"},
      {{"dump", "ls", "/no/such"}, "dump ls"},
      {{"dump", "stat", "/no/such"}, "dump stat"},
      {{"dump", "convert", "/no/such"}, "dump convert"},
      {{"dump", "overflow", "/no/such"}, "dump overflow"},
      {{"export", "/no/such"}, "export"},
      {{"import", "/no/such"}, "import"},
      {{"graph", "/no/such"}, "graph"},
  };
  for (const auto& [words, command] : cases) {
    const nlohmann::json object = JsonOf(words, command, 3);
    EXPECT_EQ(object.value("verdict", ""), "error") << command;
    EXPECT_THAT(object.value("error", ""), HasSubstr("/no/such"));
  }
}

}  // namespace
}  // namespace npumesh
