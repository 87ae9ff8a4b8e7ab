// The words of the hang verdict for scenes made by hand.
#include <gmock/gmock.h>

#include "collectives/contract/hang_verdict.h"
#include "collectives/contract/request.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNow = 100'000'000'000;

Sight At(uint64_t group, const char* name, uint64_t call, Phase phase, const char* node = "n") {
  Sight sight;
  sight.visible = true;
  sight.process = 7;
  sight.process_state = 'S';
  sight.positions.push_back({group, call, static_cast<uint32_t>(CollectiveKind::kAllReduce), phase,
                             kNow - 9'800'000'000, name, node});
  return sight;
}

// Rank 0 waits in call 412 of "tp" for rank 3 alone; ranks 1 and 2 are not visible.
WaitScene Scene(const Sight& third) {
  WaitScene scene{0, "tp", "creating group \"tp\"", {3}, std::chrono::seconds(10), kNow};
  scene.sights[0] = At(1, "tp", 412, Phase::kArriving, "layer7/attn/out");
  scene.sights[3] = third;
  return scene;
}

const char kFront[] =
    "rank 0 has waited 10 s in allreduce \"layer7/attn/out\" (group tp, call 412) for rank 3, "
    "which ";

TEST(Verdict, SaysWhatTheMissingRankDoes) {
  Sight elsewhere = At(1, "tp", 411, Phase::kOutside);
  elsewhere.positions.push_back(At(2, "dp", 17, Phase::kRunning, "x").positions[0]);
  Sight ended = At(1, "tp", 411, Phase::kOutside);
  ended.leaving = true;
  Sight lost = At(1, "tp", 411, Phase::kOutside);
  lost.lost = Error(Code::kPeerLost, "rank 3 of 4 (process 7) has ended");
  Sight stopped = At(1, "tp", 411, Phase::kOutside);
  stopped.process_state = 'T';
  Sight nothing;
  nothing.visible = true;
  const std::pair<Sight, std::string> cases[] = {
      {At(1, "tp", 411, Phase::kOutside),
       "is not in any collective since 9.8 s (its last call of this group is 411)"},
      {At(1, "tp", 0, Phase::kOutside),
       "is not in any collective since 9.8 s (it has not used this group yet)"},
      {elsewhere, "is in allreduce \"x\" (group dp, call 17) since 9.8 s and waits for no rank"},
      {At(1, "tp", 412, Phase::kRunning), "is in this call since 9.8 s and waits for no rank"},
      {At(1, "tp", 411, Phase::kClosed), "has left the group after call 411"},
      {At(1, "tp", 411, Phase::kBroken), "has given up allreduce \"n\" (group tp, call 411)"},
      {At(2, "dp", 3, Phase::kOutside),
       "has not used this group yet and is not in any collective since 9.8 s"},
      {At(2, "dp", 0, Phase::kCreating), "creates group dp since 9.8 s"},
      {ended, "has ended its work after call 411"},
      {lost, "is lost (rank 3 of 4 (process 7) has ended)"},
      {stopped,
       "is not in any collective since 9.8 s (its last call of this group is 411); its process 7 "
       "is "
       "stopped"},
      {nothing, "has not used any group yet"},
      {Sight(), "is on another node, where it cannot be seen from here"},
  };
  for (const auto& [sight, words] : cases) EXPECT_EQ(Verdict(Scene(sight)), kFront + words);
}

TEST(NoticeOf, HasTheMostCertainReasonAndItsRanks) {
  const auto notice_of = [](const Sight& third) { return NoticeOf(Scene(third), true); };
  Sight ended = At(1, "tp", 411, Phase::kOutside);
  ended.leaving = true;
  Sight stopped = At(1, "tp", 411, Phase::kOutside);
  stopped.process_state = 'T';
  const std::pair<Sight, WaitReason> cases[] = {
      {At(1, "tp", 411, Phase::kOutside), WaitReason::kLate},
      {At(1, "tp", 411, Phase::kClosed), WaitReason::kEnded},
      {ended, WaitReason::kEnded},
      {stopped, WaitReason::kStopped},
      {Sight(), WaitReason::kLate},
  };
  for (const auto& [sight, reason] : cases) {
    const WaitNotice notice = notice_of(sight);
    EXPECT_EQ(Name(notice.reason), Name(reason)) << notice.text;
    EXPECT_THAT(notice.ranks, ::testing::ElementsAre(3));
    EXPECT_EQ(notice.group, 1u);
    EXPECT_EQ(notice.call, 412u);
    EXPECT_EQ(notice.waited, std::chrono::seconds(10));
    EXPECT_TRUE(notice.gave_up);
    EXPECT_EQ(notice.text, Verdict(Scene(sight)));
  }
}

// Rank 0 waits for rank 3, rank 3 for rank 5 in another group.
TEST(NoticeOf, NamesTheEndOfTheChain) {
  WaitScene scene = Scene(At(1, "tp", 411, Phase::kOutside));
  scene.sights[3].positions.push_back(At(2, "dp", 18, Phase::kArriving, "x").positions[0]);
  scene.sights[5] = At(2, "dp", 17, Phase::kOutside);
  EXPECT_THAT(NoticeOf(scene, false).ranks, ::testing::ElementsAre(5));
  EXPECT_FALSE(NoticeOf(scene, false).gave_up);
  // A stopped rank is the reason, whatever it was in.
  scene.sights[3].process_state = 'T';
  EXPECT_THAT(NoticeOf(scene, false).ranks, ::testing::ElementsAre(3));
  EXPECT_EQ(NoticeOf(scene, false).reason, WaitReason::kStopped);
}

TEST(NoticeOf, ACircleIsAllItsRanks) {
  WaitScene scene = Scene(At(1, "tp", 411, Phase::kOutside));
  scene.sights[3].positions.push_back(At(2, "dp", 18, Phase::kArriving, "x").positions[0]);
  scene.sights[0].positions.push_back(At(2, "dp", 17, Phase::kOutside).positions[0]);
  EXPECT_EQ(NoticeOf(scene, true).reason, WaitReason::kCircle);
  EXPECT_THAT(NoticeOf(scene, true).ranks, ::testing::ElementsAre(0, 3));
}

TEST(Verdict, ManyMissingRanksAreARange) {
  WaitScene scene = Scene(Sight());
  scene.missing = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(
      Verdict(scene),
      HasSubstr("for rank 1, which is on another node, where it cannot be seen from here, and "
                "for ranks 2-6"));
}

Position Loop(uint64_t turn, const char* name, int64_t seconds) {
  Position loop;
  loop.call = turn;
  loop.node = name;
  loop.since_ns = kNow - seconds * 1'000'000'000;
  return loop;
}

TEST(Verdict, TellsTheTurnOfTheMissingRank) {
  WaitScene scene = Scene(At(1, "tp", 411, Phase::kOutside));
  scene.loops[3] = {Loop(2, "outer", 30), Loop(51200, "decode", 12)};
  EXPECT_EQ(
      Verdict(scene),
      std::string(kFront) +
          "is not in any collective since 9.8 s (its last call of this group is 411), in turn "
          "2 of loop \"outer\", which began 30.0 s ago, in turn 51200 of loop \"decode\", "
          "which began 12.0 s ago");
}

TEST(Verdict, TellsTheTurnOfTheWaitingRank) {
  WaitScene scene = Scene(At(1, "tp", 411, Phase::kOutside));
  scene.loops[0] = {Loop(17, "decode", 12)};
  EXPECT_THAT(Verdict(scene), HasSubstr("; rank 0 waits in turn 17 of loop \"decode\", which "
                                        "began 12.0 s ago"));
}

TEST(Verdict, OutsideOfCollectivesTheWaiterSaysWhere) {
  WaitScene scene = Scene(Sight());
  scene.sights.erase(0);
  EXPECT_THAT(Verdict(scene), HasSubstr("has waited 10 s in creating group \"tp\" for rank 3"));
}

}  // namespace
}  // namespace npumesh
