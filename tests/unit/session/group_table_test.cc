// Group names: the table of model_relation_config.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "graph/session/group_table.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GroupTableTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/group_table_test";
    ::mkdir(folder_.c_str(), 0750);
    path_ = folder_ + "/model_relation_config.json";
    std::remove(path_.c_str());
  }

  Result<GroupTable> Read(const std::string& text) {
    std::ofstream(path_) << text;
    return ReadGroupTable(folder_);
  }

  std::string folder_;
  std::string path_;
};

TEST_F(GroupTableTest, AbsentFileIsAnEmptyTable) {
  const Result<GroupTable> table = ReadGroupTable(folder_);
  ASSERT_TRUE(table.ok()) << table.status().ToString();
  EXPECT_THAT(*table, IsEmpty());
}

TEST_F(GroupTableTest, ReadsBothSpellingsAndKeepsOrder) {
  const Result<GroupTable> table = Read(R"({"rank_table": [], "comm_group": [
      {"group_name": "hccl_world_group", "group_rank_list": "[0, 1, 2, 3]"},
      {"group_name": "group_name_1", "group_rank_list": "[3,1]"},
      {"group_name": "group_name_1", "group_rank_list": "[3, 1]"}]})");
  ASSERT_TRUE(table.ok()) << table.status().ToString();
  EXPECT_EQ(*table, (GroupTable{{"hccl_world_group", {0, 1, 2, 3}}, {"group_name_1", {3, 1}}}));
}

TEST_F(GroupTableTest, WithoutGroups) {
  for (const char* text : {"{}", R"({"comm_group": []})", R"({"deploy_config": 7})"}) {
    const Result<GroupTable> table = Read(text);
    ASSERT_TRUE(table.ok()) << text << table.status().ToString();
    EXPECT_THAT(*table, IsEmpty());
  }
}

TEST_F(GroupTableTest, HostileFilesNameFileAndField) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"", "expected a JSON object"},
      {"{", "expected a JSON object"},
      {"[]", "expected a JSON object"},
      {"\xff\xfe", "expected a JSON object"},
      {R"({"comm_group": {}})", "comm_group: expected a list"},
      {R"({"comm_group": [3]})", "comm_group[0]: group_name: expected a string"},
      {R"({"comm_group": [{"group_name": 3}]})", "comm_group[0]: group_name: expected a string"},
      {R"({"comm_group": [{"group_name": "a"}]})",
       "comm_group[0]: group_rank_list of \"a\": expected a string like \"[0, 1]\""},
      {R"({"comm_group": [{"group_name": "a", "group_rank_list": [0, 1]}]})",
       "expected a string like"},
      {R"({"comm_group": [{"group_name": "a", "group_rank_list": "0, 1"}]})",
       "expected \"[0, 1]\" or the like, seen \"0, 1\""},
      {R"({"comm_group": [{"group_name": "a", "group_rank_list": "["}]})", "or the like"},
      {R"({"comm_group": [{"group_name": "a", "group_rank_list": "[]"}]})",
       "expected an integer in [0, 2147483647], got \"\""},
      {R"({"comm_group": [{"group_name": "a", "group_rank_list": "[0,]"}]})", "got \"\""},
      {R"({"comm_group": [{"group_name": "a", "group_rank_list": "[0, x]"}]})", "got \"x\""},
      {R"({"comm_group": [{"group_name": "a", "group_rank_list": "[-1]"}]})", "got \"-1\""},
      {R"({"comm_group": [{"group_name": "a", "group_rank_list": "[99999999999]"}]})",
       "got \"99999999999\""},
      {R"({"comm_group": [{"group_name": "a", "group_rank_list": "[1, 1]"}]})",
       "rank 1 is listed twice"},
      {R"({"comm_group": [{"group_name": "a", "group_rank_list": "[0]"},
                          {"group_name": "a", "group_rank_list": "[1]"}]})",
       "comm_group[1]: group_rank_list of \"a\": the group is listed twice"},
  };
  for (const Case& c : cases) {
    const Status status = Read(c.text).status();
    EXPECT_EQ(status.code(), Code::kCorrupt) << c.text;
    EXPECT_THAT(status.message(), HasSubstr(path_));
    EXPECT_THAT(status.message(), HasSubstr(c.message));
  }
}

TEST_F(GroupTableTest, DeepNestingIsNoProblem) {
  const Status status = Read(std::string(100000, '[')).status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
}

}  // namespace
}  // namespace npumesh
