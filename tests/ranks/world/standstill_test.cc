// The proof that a wait never ends: what it follows from, and what it must not follow from.
#include "runtime/world/standstill.h"

#include <gmock/gmock.h>

#include <random>

namespace npumesh {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

RankStanding Waits(int process, std::vector<std::set<int>> waits) {
  RankStanding standing;
  standing.process = process;
  standing.still = true;
  standing.rounds = 100;
  standing.waits = std::move(waits);
  return standing;
}

RankStanding Runs(int process) {
  RankStanding standing;
  standing.process = process;
  return standing;
}

RankStanding Ended(int process) {
  RankStanding standing = Runs(process);
  standing.ended = true;
  return standing;
}

TEST(NeverMoving, ACircle) {
  EXPECT_THAT(NeverMoving({{0, Waits(0, {{1}})}, {1, Waits(1, {{0}})}}),
              UnorderedElementsAre(0, 1));
}

TEST(NeverMoving, WhoWaitsForACircleAndWhoDoesNot) {
  const Standings all = {{0, Waits(0, {{1, 3}})},
                         {1, Waits(1, {{0}})},
                         {2, Waits(2, {{1}})},
                         {3, Runs(3)},
                         {4, Waits(4, {{3}})}};
  EXPECT_THAT(NeverMoving(all), UnorderedElementsAre(0, 1, 2));
}

TEST(NeverMoving, ARankThatMayMoveOpensTheCircle) {
  EXPECT_THAT(NeverMoving({{0, Waits(0, {{1}})}, {1, Waits(1, {{2}})}, {2, Runs(2)}}), IsEmpty());
}

TEST(NeverMoving, EveryWaitOfARankMustBeStuck) {
  const Standings all = {{0, Waits(0, {{1}, {2}})}, {1, Waits(1, {{0}})}, {2, Runs(2)}};
  EXPECT_THAT(NeverMoving(all), IsEmpty());
}

TEST(NeverMoving, WhoHasEndedNeverComes) {
  const Standings all = {
      {0, Waits(0, {{1}})}, {1, Ended(1)}, {2, Waits(2, {{0, 3}})}, {3, Runs(3)}};
  EXPECT_THAT(NeverMoving(all), UnorderedElementsAre(0, 1, 2));
}

TEST(NeverMoving, ARankWithoutAWaitIsNotStuck) {
  EXPECT_THAT(NeverMoving({{0, Waits(0, {})}, {1, Waits(1, {{0}})}}), IsEmpty());
}

TEST(Steady, OnlyWhoHasLookedAgainAndNotMoved) {
  const Standings before = {
      {0, Waits(0, {{1}})}, {1, Waits(1, {{0}})}, {2, Waits(2, {{0}})}, {3, Waits(2, {{0}})}};
  Standings now = before;
  for (auto& [rank, standing] : now) standing.rounds += 3;
  EXPECT_TRUE(Steady(before, now).at(0).still);
  now[0].rounds -= 1;
  now[2].version += 1;
  const Standings steady = Steady(before, now);
  EXPECT_FALSE(steady.at(0).still) << "its last look may have begun before";
  EXPECT_TRUE(steady.at(1).still);
  EXPECT_FALSE(steady.at(2).still) << "it waits anew";
  EXPECT_FALSE(steady.at(3).still) << "a rank of the same process waits anew";
}

// Ranks that wait as chance wants it: whatever remains must be closed, and nothing else may be.
TEST(NeverMoving, IsTheLargestClosedSet) {
  std::minstd_rand random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    Standings all;
    const int ranks = 2 + static_cast<int>(random() % 5);
    for (int rank = 0; rank < ranks; ++rank) {
      const unsigned kind = random() % 8;
      if (kind == 0) {
        all[rank] = Runs(rank);
      } else if (kind == 1) {
        all[rank] = Ended(rank);
      } else {
        std::vector<std::set<int>> waits(1 + random() % 2);
        for (auto& wait : waits) {
          for (int other = 0; other < ranks; ++other) {
            if (other != rank && random() % 3 == 0) wait.insert(other);
          }
        }
        all[rank] = Waits(rank, waits);
      }
    }
    // Plainly: a rank that can move sets free those who miss only ranks that can move.
    std::set<int> moves;
    for (bool more = true; more;) {
      more = false;
      for (const auto& [rank, standing] : all) {
        if (standing.ended || moves.contains(rank)) continue;
        bool free = !standing.still;
        for (const auto& wait : standing.waits) {
          free = free || std::all_of(wait.begin(), wait.end(),
                                     [&](int other) { return moves.contains(other); });
        }
        if (!free) continue;
        moves.insert(rank);
        more = true;
      }
    }
    std::set<int> rest;
    for (const auto& [rank, standing] : all) {
      if (!moves.contains(rank)) rest.insert(rank);
    }
    EXPECT_EQ(NeverMoving(all), rest) << trial;
  }
}

}  // namespace
}  // namespace npumesh
