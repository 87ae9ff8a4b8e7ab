#include "runtime/base/text/strings.h"

#include <gmock/gmock.h>

#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

TEST(Split, KeepsEmptyParts) {
  EXPECT_THAT(Split("a,b", ","), ElementsAre("a", "b"));
  EXPECT_THAT(Split(",a,,b,", ","), ElementsAre("", "a", "", "b", ""));
  EXPECT_THAT(Split("", ","), ElementsAre(""));
}

TEST(Split, TakesEachSeparatorAlone) {
  EXPECT_THAT(Split("a \tb", " \t"), ElementsAre("a", "", "b"));
}

TEST(Trimmed, LeavesBlanksInside) {
  EXPECT_EQ(Trimmed("  a b "), "a b");
  EXPECT_EQ(Trimmed("   "), "");
  EXPECT_EQ(Trimmed(""), "");
}

TEST(RankList, AllRanksAndTheirText) {
  EXPECT_THAT(AllRanks(0), ElementsAre());
  EXPECT_THAT(AllRanks(3), ElementsAre(0, 1, 2));
  EXPECT_EQ(RanksText({3}), "rank 3");
  EXPECT_EQ(RanksText({1, 2, 5}), "ranks 1-2,5");
}

}  // namespace
}  // namespace npumesh
