#include "launch/run/run_dump.h"

#include <gmock/gmock.h>

#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

TEST(RunDump, WithoutOptionsNothingIsDumped) {
  const auto dump = ChooseDump({}, {}, {});
  ASSERT_TRUE(dump.ok());
  EXPECT_FALSE(dump->wanted());
}

TEST(RunDump, OptionsAreThoseOfDumpConfig) {
  TemporaryFolder folder;
  DumpArguments arguments;
  arguments.mode = "input";
  arguments.path = folder.path();
  arguments.step = "1|3-4";
  arguments.layer = "a b";
  arguments.data = "stats";
  arguments.max_bytes = 7;
  arguments.stop_on_error = true;
  const auto dump = ChooseDump(arguments, {}, {});
  ASSERT_TRUE(dump.ok()) << dump.status().ToString();
  const DumpSettings& settings = dump->operators.value();
  EXPECT_EQ(settings.mode, DumpMode::kInput);
  EXPECT_EQ(settings.content, DumpContent::kStatistics);
  EXPECT_TRUE(settings.steps.Contains(4));
  EXPECT_EQ(settings.choices.at(0).layers.size(), 2u);
  EXPECT_EQ(dump->limits.max_bytes, 7u);
  EXPECT_TRUE(dump->limits.stop_on_error);
  arguments.step = "4-3";
  EXPECT_THAT(std::string(ChooseDump(arguments, {}, {}).status().message()),
              HasSubstr("dump_step"));
}

TEST(RunDump, ArgumentsBeatTheCompilersConfigAndThatTheSessions) {
  TemporaryFolder folder;
  CompilerConfig config;
  config.debug.data_dump.type = "npy";
  SystemOptions session;
  session.enable_dump = true;
  session.dump_path = folder.path();
  session.dump_mode = "all";
  DumpArguments arguments;
  arguments.mode = "input";
  arguments.path = folder.path();

  const auto of_arguments = ChooseDump(arguments, *TensorDumpOf(config), session);
  EXPECT_EQ(of_arguments->operators->mode, DumpMode::kInput);
  EXPECT_FALSE(of_arguments->npy);
  const auto of_compiler = ChooseDump({}, *TensorDumpOf(config), session);
  EXPECT_TRUE(of_compiler->npy);
  EXPECT_FALSE(of_compiler->operators);
  EXPECT_EQ(ChooseDump({}, {}, session)->operators->mode, DumpMode::kAll);
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
