#include "launch/run/run_dump.h"

#include <gmock/gmock.h>

#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

TEST(RunDump, WithoutOptionsNothingIsDumped) {
  const auto settings = DumpSettingsOf({}, {});
  ASSERT_TRUE(settings.ok());
  EXPECT_FALSE(settings->has_value());
}

TEST(RunDump, OptionsAreThoseOfDumpConfig) {
  TemporaryFolder folder;
  DumpArguments arguments;
  arguments.mode = "input";
  arguments.path = folder.path();
  arguments.step = "1|3-4";
  arguments.layer = "a b";
  arguments.data = "stats";
  const auto settings = DumpSettingsOf(arguments, {});
  ASSERT_TRUE(settings.ok()) << settings.status().ToString();
  EXPECT_EQ((*settings)->mode, DumpMode::kInput);
  EXPECT_EQ((*settings)->content, DumpContent::kStatistics);
  EXPECT_TRUE((*settings)->steps.Contains(4));
  EXPECT_EQ((*settings)->choices.at(0).layers.size(), 2u);
  arguments.step = "4-3";
  EXPECT_THAT(std::string(DumpSettingsOf(arguments, {}).status().message()),
              HasSubstr("dump_step"));
}

TEST(RunDump, ConfigIsAskedWhenTheCommandLineSaysNothing) {
  TemporaryFolder folder;
  Configuration config;
  config.compiler.dump_config.enable_dump = true;
  config.compiler.dump_config.dump_path = folder.path();
  config.compiler.dump_config.dump_mode = "input";
  auto settings = DumpSettingsOf({}, config);
  ASSERT_TRUE(settings.ok()) << settings.status().ToString();
  EXPECT_EQ((*settings)->mode, DumpMode::kInput);
  DumpArguments arguments;
  arguments.mode = "output";
  arguments.path = folder.path();
  EXPECT_EQ((*DumpSettingsOf(arguments, config))->mode, DumpMode::kOutput);
  config.compiler.dump_config.enable_dump = false;
  config.session.enable_dump = true;
  config.session.dump_path = folder.path();
  config.session.dump_mode = "all";
  EXPECT_EQ((*DumpSettingsOf({}, config))->mode, DumpMode::kAll);
}

TEST(RunDump, LinesSayWhatWasWrittenAndWhatWasNot) {
  EXPECT_EQ(DumpLines({RankDump(), RankDump()}), "");
  DumpReport report;
  report.folder = "d/worldsize2_global_rank1/20241121145738";
  report.counts.files = 3;
  report.counts.bytes = 400;
  EXPECT_EQ(DumpLines({RankDump(), ToRankDump(report)}),
            "rank 1 dump: 3 tensor files, 400 bytes, 0 statistics files in "
            "d/worldsize2_global_rank1/20241121145738\n");
  report.degraded_files = 2;
  report.counts.lost_files = 5;
  report.error = Error(Code::kIo, "the disk is full");
  const std::string line = DumpLines({ToRankDump(report)});
  EXPECT_THAT(line, HasSubstr("; 2 statistics in place of tensors (--dump-max-bytes)"));
  EXPECT_THAT(line, HasSubstr("; 5 files lost; stopped: the disk is full\n"));
}

TEST(RunDump, SurvivesJson) {
  RankDump dump;
  dump.folder = "f";
  dump.lost_files = 7;
  const auto copy = nlohmann::json::parse(nlohmann::json(dump).dump()).get<RankDump>();
  EXPECT_EQ(copy.folder, "f");
  EXPECT_EQ(copy.lost_files, 7u);
}

}  // namespace
}  // namespace npumesh
