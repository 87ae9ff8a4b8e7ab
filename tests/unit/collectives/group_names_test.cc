#include "collectives/group_names.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const GroupTable kTable = {{"tp", {1, 0}}, {"nobody", {}}, {"tag=x;rank_list=0,1", {2, 3}}};

TEST(GroupNames, AreListsOrStandInTheTable) {
  EXPECT_THAT(*RanksOfGroup("", kTable, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(*RanksOfGroup("hccl_world_group", kTable, 2), ElementsAre(0, 1));
  EXPECT_THAT(*RanksOfGroup("tp", kTable, 4), ElementsAre(1, 0));
  EXPECT_THAT(*RanksOfGroup("tag=;rank_list=3, 1", kTable, 4), ElementsAre(3, 1));
  EXPECT_THAT(*RanksOfGroup("tag=a;rank_list=9;rank_list=2", kTable, 4), ElementsAre(2));
  EXPECT_THAT(*RanksOfGroup("tag=x;rank_list=0,1", kTable, 4), ElementsAre(0, 1))
      << "the list, not the table";
}

TEST(GroupNames, WhatNothingExplainsIsAnError) {
  for (const char* group : {"dp", "nobody", "rank_list=0,1", "x;rank_list=0,1"}) {
    const auto ranks = RanksOfGroup(group, kTable, 4);
    EXPECT_EQ(ranks.status().code(), Code::kNotFound) << group;
    EXPECT_THAT(ranks.status().message(), HasSubstr(group));
  }
  for (const char* group : {"tag=;rank_list=", "tag=;rank_list=0,0", "tag=;rank_list=a"}) {
    const auto ranks = RanksOfGroup(group, kTable, 4);
    EXPECT_EQ(ranks.status().code(), Code::kCorrupt) << group;
    EXPECT_THAT(ranks.status().message(), HasSubstr(group));
  }
}

TEST(GroupNames, MembersMayBeAskedToBeInTheWorld) {
  EXPECT_TRUE(RanksOfGroup("tag=;rank_list=0,5", kTable, 4).ok());
  const auto ranks = RanksInWorld("tag=;rank_list=0,5", kTable, 4);
  EXPECT_EQ(ranks.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(ranks.status().message(), HasSubstr("start at least 6 ranks"));
  EXPECT_THAT(*RanksInWorld("tp", kTable, 2), ElementsAre(1, 0));
  EXPECT_EQ(PlaceIn({1, 0}, 0), 1);
  EXPECT_EQ(PlaceIn({1, 0}, 2), -1);
}

}  // namespace
}  // namespace npumesh
