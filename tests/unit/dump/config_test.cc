// The JSON of dump_config_path and both families of options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "graph/dump/options/config_file.h"
#include "graph/dump/options/options.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"
#include "tests/unit/base/plain_user.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DumpConfigTest : public testing::Test {
 protected:
  // `keys` beside a dump_path that exists.
  Result<std::optional<DumpSettings>> Parse(const std::string& keys) {
    return ParseDumpConfig("{\"dump\":{\"dump_path\":\"" + folder_.path() + "\"" + keys + "}}",
                           "f.json");
  }
  DumpSettings Accept(const std::string& keys) {
    const auto settings = Parse(keys);
    EXPECT_TRUE(settings.ok()) << settings.status().ToString();
    if (!settings.ok() || !*settings) return {};
    return **settings;
  }
  std::string Refuse(const std::string& keys) {
    const auto settings = Parse(keys);
    EXPECT_FALSE(settings.ok()) << keys;
    EXPECT_EQ(settings.status().code(), Code::kInvalidArgument);
    return std::string(settings.status().message());
  }

  TemporaryFolder folder_;
};

TEST_F(DumpConfigTest, ModelDumpAsDocumented) {
  const DumpSettings settings =
      Accept(R"(,"dump_list":[{"model_name":"ResNet-101"},{"model_name":"ResNet-50","layer":)"
             R"(["conv1conv1_relu","pool1"]}],"dump_mode":"output","dump_op_switch":"off",)"
             R"("dump_data":"tensor")");
  EXPECT_TRUE(settings.models);
  EXPECT_FALSE(settings.single_operators);
  EXPECT_FALSE(settings.always_rank_folder);
  EXPECT_EQ(settings.mode, DumpMode::kOutput);
  ASSERT_EQ(settings.choices.size(), 2u);
  EXPECT_EQ(settings.choices[0].model_name, "ResNet-101");
  EXPECT_THAT(settings.choices[1].layers, ElementsAre("conv1conv1_relu", "pool1"));
}

TEST_F(DumpConfigTest, SingleOperatorDumpAsDocumented) {
  const DumpSettings settings =
      Accept(R"(,"dump_list":[],"dump_op_switch":"on","dump_data":"tensor")");
  EXPECT_TRUE(settings.single_operators);
  EXPECT_FALSE(settings.models);
}

TEST_F(DumpConfigTest, OverflowDumpAsDocumented) {
  const DumpSettings settings = Accept(R"(,"dump_debug":"on")");
  EXPECT_TRUE(settings.overflow);
  EXPECT_EQ(settings.mode, DumpMode::kAll);
}

TEST_F(DumpConfigTest, WatchModeAsDocumented) {
  const DumpSettings settings =
      Accept(R"(,"dump_list":[{"layer":["A","B"],"watcher_nodes":["C","D"]}],"dump_mode":"output",)"
             R"("dump_scene":"watcher")");
  EXPECT_TRUE(settings.watch);
  EXPECT_FALSE(settings.models);
  EXPECT_THAT(settings.choices.at(0).watched, ElementsAre("C", "D"));
}

TEST_F(DumpConfigTest, EverythingElse) {
  const DumpSettings settings = Accept(
      R"(,"dump_level":"op","dump_step":"0|3-3|10","dump_data":"stats","dump_kernel_data":)"
      R"("printf,assert","dump_stats":["L2norm","Max","Max"],"dump_list":[{"model_name":"g",)"
      R"("optype_blacklist":[{"name":"Add","pos":["input0","output12"]}],"opname_blacklist":)"
      R"([{"name":"mm","pos":[]},{"name":"x","pos":["workspace1"]}],)"
      R"("opname_range":[{"begin":"a","end":"b"}]}])");
  EXPECT_TRUE(settings.steps.Contains(3));
  EXPECT_FALSE(settings.steps.Contains(4));
  EXPECT_THAT(settings.statistics, ElementsAre(Statistic::kMax, Statistic::kL2norm));
  const OperatorChoice& choice = settings.choices.at(0);
  EXPECT_THAT(choice.type_blacklist.at(0).tensors,
              ElementsAre(BlackTensor{true, 0}, BlackTensor{false, 12}));
  EXPECT_TRUE(choice.name_blacklist.at(0).tensors.empty());
  EXPECT_FALSE(choice.name_blacklist.at(1).tensors.empty());  // ignored, not "the whole operator"
  EXPECT_EQ(choice.ranges.at(0).end, "b");
}

TEST_F(DumpConfigTest, NoDump) {
  for (const char* text :
       {"{}", "{\"dump\":{}}", "{\"other\":1}", "{\"dump\":{\"dump_op_switch\":\"off\"}}"}) {
    const auto settings = ParseDumpConfig(text, "f");
    ASSERT_TRUE(settings.ok()) << settings.status().ToString();
    EXPECT_FALSE(settings->has_value()) << text;
  }
}

TEST_F(DumpConfigTest, EmptyListsAreAllModels) {
  for (const char* list : {R"(,"dump_list":[])", R"(,"dump_list":[{}])"}) {
    const DumpSettings settings = Accept(list);
    EXPECT_TRUE(settings.models);
    EXPECT_TRUE(settings.choices.empty());
  }
}

// Each error names both keys.
TEST_F(DumpConfigTest, ForbiddenCombinations) {
  constexpr struct {
    const char* keys;
    const char* first;
    const char* second;
  } kCases[] = {
      {R"(,"dump_debug":"on","dump_op_switch":"on")", "dump_debug", "dump_op_switch"},
      {R"(,"dump_debug":"on","dump_list":[{"model_name":"m"}])", "dump_debug", "dump_list"},
      {R"(,"dump_scene":"watcher","dump_debug":"on")", "watcher", "dump_debug"},
      {R"(,"dump_scene":"watcher","dump_op_switch":"on")", "watcher", "dump_op_switch"},
      {R"(,"dump_scene":"watcher","dump_mode":"all")", "watcher", "dump_mode"},
      {R"(,"dump_scene":"watcher")", "watcher", "dump_list"},
      {R"(,"dump_scene":"watcher","dump_list":[{"model_name":"m","watcher_nodes":["a"]}])",
       "watcher", "model_name"},
      {R"(,"dump_scene":"watcher","dump_list":[{"layer":["a"]}])", "watcher", "watcher_nodes"},
      {R"(,"dump_list":[{"watcher_nodes":["a"]}])", "watcher_nodes", "dump_scene"},
      {R"(,"dump_scene":"aic_err_norm_dump","dump_debug":"on")", "dump_scene", "dump_debug"},
      {R"(,"dump_scene":"lite_exception","dump_op_switch":"on")", "dump_scene", "dump_op_switch"},
      {R"(,"dump_stats":["Max"],"dump_list":[])", "dump_stats", "dump_data"},
      {R"(,"dump_list":[{"optype_blacklist":[{"name":"a"}]}])", "optype_blacklist", "dump_level"},
      {R"(,"dump_list":[{"opname_blacklist":[{"name":"a"}]}])", "opname_blacklist", "dump_level"},
      {R"(,"dump_list":[{"model_name":"m","opname_range":[{"begin":"a","end":"b"}]}])",
       "opname_range", "dump_level"},
      {R"(,"dump_level":"op","dump_list":[{"opname_range":[{"begin":"a","end":"b"}]}])",
       "opname_range", "model_name"},
  };
  for (const auto& each : kCases) {
    const std::string message = Refuse(each.keys);
    EXPECT_THAT(message, HasSubstr("f.json: "));
    EXPECT_THAT(message, HasSubstr(each.first)) << each.keys;
    EXPECT_THAT(message, HasSubstr(each.second)) << each.keys;
  }
}

TEST_F(DumpConfigTest, WrongValues) {
  constexpr struct {
    const char* keys;
    const char* says;
  } kCases[] = {
      {R"(,"dump_mode":"both")", "dump_mode is \"both\"; accepted are input, output, all"},
      {R"(,"dump_op_switch":true)", "dump_op_switch is true; expected a string"},
      {R"(,"dump_level":"x")", "accepted are op, kernel, all"},
      {R"(,"dump_scene":"x")", "dump_scene is \"x\""},
      {R"(,"dump_data":"csv")", "accepted are tensor, stats"},
      {R"(,"dump_kernel_data":"printf,x")", "dump_kernel_data is \"x\""},
      {R"(,"dump_step":"5-3")", "does not rise"},
      {R"(,"dump_step":"a")", "dump_step"},
      {R"(,"dump_data":"stats","dump_stats":[])", "not empty"},
      {R"(,"dump_data":"stats","dump_stats":["Median"])", "dump_stats is \"Median\""},
      {R"(,"dump_list":{})", "dump_list is object; expected a list"},
      {R"(,"dump_list":[{"layer":[]}])", "dump_list[0]: layer is []"},
      {R"(,"dump_list":[{"layer":[1]}])", "layer is 1"},
      {R"(,"dump_list":[{"model_name":""}])", "model_name is \"\""},
      {R"(,"dump_list":[{"layers":["a"]}])", "\"layers\" is no key"},
      {R"(,"dump_lists":[])", "\"dump_lists\" is no key"},
      {R"(,"dump_list":[{"optype_blacklist":[{"pos":[]}]}])", "\"name\""},
  };
  for (const auto& each : kCases) EXPECT_THAT(Refuse(each.keys), HasSubstr(each.says));
  std::string many = R"(,"dump_list":[{"opname_blacklist":[{"name":"a"})";
  for (int i = 0; i < 100; ++i) many += R"(,{"name":"a"})";
  EXPECT_THAT(Refuse(many + "]}]"), HasSubstr("at most 100"));
}

TEST_F(DumpConfigTest, Paths) {
  const auto message = [](const std::string& path) {
    return std::string(
        ParseDumpConfig("{\"dump\":{\"dump_path\":\"" + path + "\",\"dump_list\":[]}}", "f")
            .status()
            .message());
  };
  EXPECT_THAT(message(""), HasSubstr("dump_path is missing or empty"));
  EXPECT_THAT(message(folder_.Path("absent")), HasSubstr("create the folder first"));
  ASSERT_TRUE(WriteFile(folder_.Path("file"), "x", FileKind::kData).ok());
  EXPECT_THAT(message(folder_.Path("file")), HasSubstr("not a folder"));
  EXPECT_THAT(message(std::string(513, 'a')), HasSubstr("at most 512"));
  const std::string link = folder_.Path("link");
  std::filesystem::create_directory_symlink(folder_.path(), link);
  EXPECT_THAT(message(link), HasSubstr("a symbolic link; name its target instead"));
  EXPECT_THAT(message(link + "//"), HasSubstr("a symbolic link"));
}

TEST_F(DumpConfigTest, HostileText) {
  EXPECT_THAT(std::string(ParseDumpConfig("{", "f").status().message()), HasSubstr("no JSON"));
  EXPECT_THAT(std::string(ParseDumpConfig("[1]", "f").status().message()), HasSubstr("object"));
  EXPECT_THAT(std::string(ParseDumpConfig("{\"dump\":\"on\"}", "f").status().message()),
              HasSubstr("\"dump\" is string"));
  std::string deep = "{\"dump\":";
  for (int i = 0; i < 100000; ++i) deep += '[';
  EXPECT_THAT(std::string(ParseDumpConfig(deep, "f").status().message()),
              HasSubstr("deeper than 10"));
  const std::string good = R"({"dump":{"dump_path":"/","dump_stats":["Max"],"dump_data":"stats"}})";
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char value : {'\0', '"', '{', '\xff', '9'}) {
      std::string text = good;
      text[at] = value;
      const auto settings = ParseDumpConfig(text, "f");
      if (!settings.ok()) {
        EXPECT_NE(settings.status().message(), "");
      }
    }
    EXPECT_FALSE(ParseDumpConfig(good.substr(0, at), "f").ok());
  }
}

TEST(StepSetTest, Parse) {
  const auto steps = StepSet::Parse("0|3-5|10", false, "dump_step");
  ASSERT_TRUE(steps.ok());
  for (uint64_t step = 0; step < 12; ++step) {
    EXPECT_EQ(steps->Contains(step), step == 0 || (step >= 3 && step <= 5) || step == 10);
  }
  EXPECT_TRUE(StepSet::Parse("", false, "k")->Contains(77));
  EXPECT_TRUE(StepSet::Parse("1|", false, "k").ok());
  EXPECT_TRUE(StepSet::Parse("3-3", true, "k").ok());
  for (const char* text : {"3-3", "5-3", "a", "-1", "1-", "|1", "1||2", "1-2-3", " 1"}) {
    const Status status = StepSet::Parse(text, false, "dump_step").status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("dump_step"));
  }
  std::string many = "0";
  for (int i = 1; i <= 100; ++i) many += "|" + std::to_string(i);
  EXPECT_FALSE(StepSet::Parse(many, false, "k").ok());
}

TEST(DumpOptions, CompilerFamily) {
  TemporaryFolder folder;
  DumpConfig options;
  EXPECT_FALSE(SettingsOf(options)->has_value());
  options.enable_dump = true;
  options.dump_path = folder.path();
  options.dump_layer = "Add_1  blk/MatMul.7";
  options.dump_data = "stats";
  options.dump_step = "0|1";
  const auto settings = SettingsOf(options);
  ASSERT_TRUE(settings.ok()) << settings.status().ToString();
  EXPECT_TRUE((*settings)->always_rank_folder);
  EXPECT_EQ((*settings)->mode, DumpMode::kAll);
  EXPECT_EQ((*settings)->content, DumpContent::kStatistics);
  EXPECT_THAT((*settings)->choices.at(0).layers, ElementsAre("Add_1", "blk/MatMul.7"));

  const auto refuse = [&](auto change, const char* says, const char* mode = "max-autotune") {
    DumpConfig wrong = options;
    change(wrong);
    const auto refused = SettingsOf(wrong, mode);
    ASSERT_FALSE(refused.ok()) << says;
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(says));
  };
  refuse([](auto& o) { o.dump_mode = "both"; }, "dump_config.dump_mode is \"both\"");
  refuse([](auto& o) { o.dump_data = "x"; }, "dump_config.dump_data");
  refuse([](auto& o) { o.dump_step = "3-1"; }, "dump_config.dump_step");
  refuse([](auto& o) { o.dump_layer = "a-b"; }, "dump_config.dump_layer");
  refuse([](auto& o) { o.dump_path = "/no/such"; }, "dump_config.dump_path");
  refuse([](auto&) {}, "dump_config.enable_dump needs mode \"max-autotune\", but mode is",
         "reduce-overhead");
  refuse([](auto& o) { o.enable_dump = false, o.dump_config_path = "x.txt"; }, "ends in .json");
  refuse([](auto& o) { o.enable_dump = false, o.dump_config_path = "absent.json"; }, "absent.json");
}

// Individual options win over the JSON, which may then even be absent; one warning names both.
TEST(DumpOptions, TheJsonHasNoEffectBesideIndividualOptions) {
  TemporaryFolder folder;
  DumpConfig options;
  options.enable_dump = true;
  options.dump_path = folder.path();
  options.dump_config_path = folder.Path("dump.json");
  SetLogLevel(LogLevel::kWarning);
  testing::internal::CaptureStderr();
  const auto settings = SettingsOf(options);
  const std::string log = testing::internal::GetCapturedStderr();
  SetLogLevel(LogLevel::kError);
  ASSERT_TRUE(settings.ok()) << settings.status().ToString();
  EXPECT_TRUE((*settings)->models);
  EXPECT_THAT(log, HasSubstr("dump_config.dump_config_path"));
  EXPECT_THAT(log, HasSubstr("dump_config.enable_dump"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);

  options.enable_dump = false;
  ASSERT_TRUE(
      WriteFile(folder.Path("dump.json"),
                "{\"dump\":{\"dump_debug\":\"on\",\"dump_path\":\"" + folder.path() + "\"}}",
                FileKind::kConfig)
          .ok());
  EXPECT_TRUE((**SettingsOf(options)).overflow);
}

TEST(DumpOptions, SessionFamily) {
  TemporaryFolder folder;
  SystemOptions options;
  EXPECT_FALSE(SettingsOf(options)->has_value());
  options.enable_dump = true;
  EXPECT_THAT(std::string(SettingsOf(options).status().message()), HasSubstr("dump_path"));
  options.dump_path = folder.path();
  EXPECT_EQ((**SettingsOf(options)).mode, DumpMode::kOutput);
  options.dump_mode = "everything";
  EXPECT_THAT(std::string(SettingsOf(options).status().message()), HasSubstr("dump_mode"));
  options.dump_mode = "input";
  options.dump_step = "1-1";
  EXPECT_THAT(std::string(SettingsOf(options).status().message()), HasSubstr("dump_step"));
  options.dump_step = "1-2";
  EXPECT_TRUE((**SettingsOf(options)).steps.Contains(2));
  options.enable_exception_dump = 2;
  EXPECT_THAT(std::string(SettingsOf(options).status().message()),
              HasSubstr("enable_exception_dump is 2"));
  options.enable_dump = false;
  options.enable_exception_dump = 1;
  EXPECT_FALSE((**SettingsOf(options)).dumps_steps());
}

TEST(DumpOptions, AFolderThatCannotBeWritten) {
  TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read);
  Status status;
  {
    const PlainUser user;
    status = CheckDumpFolder(folder.path(), "dump_path");
  }
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot read and write"));
}

}  // namespace
}  // namespace npumesh
