#include "graph/dump/format/format_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/dump/format/format_mapping.h"
#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

TEST(DumpNames, Sanitized) {
  EXPECT_EQ(SanitizedName("model/blk 0.Add\\1"), "model_blk_0_Add_1");
  EXPECT_EQ(SanitizedName("a:b-c"), "a:b-c");  // not in the table
  EXPECT_EQ(SanitizedName(".."), "__");
  EXPECT_EQ(SanitizedName("../../etc"), "______etc");
  EXPECT_EQ(SanitizedName(""), "_");
  EXPECT_EQ(SanitizedName(std::string("a\0b\nc\x7f", 6)), "a_b_c_");
}

TEST(DumpNames, FileNamesOfTheReference) {
  const DumpFileName add{"Add", "model/blk_0/Add_1", 3, 7, 1700000000123456};
  EXPECT_EQ(add.ToString(), "Add.model_blk_0_Add_1.3.7.1700000000123456");
  DumpFileName stats = add;
  stats.stats = true;
  EXPECT_EQ(stats.ToString(), "Add.model_blk_0_Add_1.3.7.1700000000123456.csv");
  const DumpFileName exception{"MatMulV2", "mm", 4, std::nullopt, 20241121145738123};
  EXPECT_EQ(exception.ToString(), "MatMulV2.mm.4.20241121145738123");
  DumpFileName sub = add;
  sub.op_name = "x";
  sub.subtask = {4, 1, 2, 0};
  EXPECT_EQ(sub.ToString(), "Add.x.3.7.1700000000123456.4.1.2.0");
  for (const DumpFileName& name : {stats, exception, sub}) {
    DumpFileName expected = name;
    expected.op_name = SanitizedName(name.op_name);
    EXPECT_EQ(ParseDumpFileName(name.ToString()), expected);
  }
}

TEST(DumpNames, WhatIsNoDumpFile) {
  for (const char* name :
       {"", ".", "mapping.csv", "123456", "Add.x", "Add.x.1", "Add.x.1.2.3.4", "Add..1.2.3",
        ".x.1.2.3", "Add.x.1.2.", "Add.x.-1.2.3", "Add.x.1.2.3 ", "Add.x.4294967296.2.3",
        "Add.x.1.2.99999999999999999999", "Add.x.1.2.3.tmp", "Add.x.1.2.3.4.5.6.7.8"}) {
    EXPECT_EQ(ParseDumpFileName(name), std::nullopt) << name;
  }
}

TEST(DumpNames, WatchedNames) {
  EXPECT_EQ(JoinWatchedName("A", "C"), "A_To_C");
  const auto name = ParseWatchedName("blk_A_To_C");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->layer, "blk_A");
  EXPECT_EQ(name->watched, "C");
  EXPECT_FALSE(ParseWatchedName("A_to_C").has_value());
}

TEST(DumpNames, Folders) {
  EXPECT_EQ(RankFolderName(4, 2), "worldsize4_global_rank2");
  const auto folder = ParseRankFolderName("worldsize16_global_rank15");
  ASSERT_TRUE(folder.has_value());
  EXPECT_EQ(folder->world_size, 16);
  EXPECT_EQ(folder->rank, 15);
  for (const char* name : {"worldsize_global_rank0", "worldsize2_global_rank2", "worldsize2",
                           "worldsize2_global_rank", "worldsize2_global_rank1x", "rank_0"}) {
    EXPECT_FALSE(ParseRankFolderName(name).has_value()) << name;
  }
  EXPECT_EQ(TimeFolderName(1700000000).size(), 14u);
  EXPECT_TRUE(TimeFolderName(1700000000).starts_with("202311"));
}

TEST(DumpMapping, LongNamesStandUnderTheirHash) {
  TemporaryFolder folder;
  const std::string fits(255, 'x');
  EXPECT_EQ(StorableName(folder.path(), fits), fits);
  const std::string name = "Add." + std::string(300, 'x') + ".1.0.1700000000123456";
  const std::string stored = StorableName(folder.path(), name);
  EXPECT_EQ(stored, std::to_string(std::hash<std::string>()(folder.path() + "/" + name)));
  EXPECT_EQ(ReadMapping(folder.path())->size(), 0u);
  ASSERT_TRUE(AddMapping(folder.path(), stored, name).ok());
  ASSERT_TRUE(AddMapping(folder.path(), "42", "with,comma").ok());
  EXPECT_EQ(*ReadFile(folder.Path("mapping.csv")), stored + "," + name + "\n42,with,comma\n");
  EXPECT_THAT(*ReadMapping(folder.path()),
              testing::UnorderedElementsAre(testing::Pair(stored, name),
                                            testing::Pair("42", "with,comma")));
}

TEST(DumpMapping, LinesThatAreNoneArePassedOver) {
  TemporaryFolder folder;
  ASSERT_TRUE(
      AppendToFile(folder.Path("mapping.csv"), "hello\n,x\n7,a\n\n8", FileKind::kData).ok());
  EXPECT_THAT(*ReadMapping(folder.path()), testing::ElementsAre(testing::Pair("7", "a")));
}

TEST(DumpMapping, RefusesALink) {
  TemporaryFolder folder;
  std::filesystem::create_symlink("elsewhere", folder.Path("mapping.csv"));
  const Status status = AddMapping(folder.path(), "7", "a");
  EXPECT_NE(status.message().find("symbolic link"), std::string_view::npos) << status.message();
  EXPECT_FALSE(std::filesystem::exists(folder.Path("elsewhere")));
}

}  // namespace
}  // namespace npumesh
