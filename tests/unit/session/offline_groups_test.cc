#include "graph/session/offline_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace npumesh {
namespace {

using testing::ElementsAre;

const GroupTable& Table() {
  static const GroupTable table = {{"pair", {3, 1}}, {"wide", {0, 9}}};
  return table;
}

TEST(OfflineGroups, NobodyCommunicates) {
  OfflineGroups groups = OfflineGroups::InWorld(Table(), 1, 4);
  const Result<Communicator*> group = groups.Group("pair");
  ASSERT_TRUE(group.ok()) << group.status().ToString();
  EXPECT_EQ(*group, nullptr);
}

TEST(OfflineGroups, InAWorldARankMayBeNoMember) {
  OfflineGroups groups = OfflineGroups::InWorld(Table(), 1, 4);
  const Result<GroupProvider::Members> members = groups.MembersOf("pair");
  ASSERT_TRUE(members.ok()) << members.status().ToString();
  EXPECT_THAT(members->world_ranks, ElementsAre(3, 1));
  EXPECT_EQ(members->rank, 1);
  OfflineGroups others = OfflineGroups::InWorld(Table(), 0, 4);
  EXPECT_EQ(others.MembersOf("pair")->rank, -1);
}

TEST(OfflineGroups, InAWorldAMemberOutsideOfItIsRefused) {
  OfflineGroups groups = OfflineGroups::InWorld(Table(), 0, 4);
  EXPECT_EQ(groups.MembersOf("wide").status().code(), Code::kInvalidArgument);
}

TEST(OfflineGroups, BeforeAWorldAllMembersCount) {
  OfflineGroups groups = OfflineGroups::BeforeWorld(Table(), 0, 4);
  const Result<GroupProvider::Members> members = groups.MembersOf("wide");
  ASSERT_TRUE(members.ok()) << members.status().ToString();
  EXPECT_THAT(members->world_ranks, ElementsAre(0, 9));
  EXPECT_EQ(groups.MembersOf("pair")->rank, 0);  // that of the first member
  EXPECT_EQ(groups.MembersOf("unknown").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace npumesh
