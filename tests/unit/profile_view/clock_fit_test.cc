// Clocks whose offset and drift are known.
#include "launch/profile/clock_fit.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/unit/profile_view/profiles.h"

namespace npumesh::testing {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Samples of a clock that is `offset_ns` behind node 0's at time 0 and loses `drift` more; every
// tenth is a slow one that is 1 ms wrong.
std::vector<ClockSample> SamplesOf(int64_t offset_ns, double drift, size_t count) {
  std::vector<ClockSample> samples;
  for (size_t i = 0; i < count; ++i) {
    const auto local = static_cast<int64_t>(i) * kSecond;
    const auto offset = offset_ns + static_cast<int64_t>(drift * static_cast<double>(local));
    const bool is_slow = i % 10 == 3;
    samples.push_back({local, offset + (is_slow ? 1'000'000 : 0), is_slow ? 2'000'000 : 5'000});
  }
  return samples;
}

RankProfile OtherHost(int rank, int world_size) {
  RankProfile profile = ProfileOf(rank, world_size);
  profile.owner.host = "host-b";
  profile.owner.boot_id = "boot-b";
  profile.owner.node = 1;
  return profile;
}

TEST(ClockFitTest, FindsOffsetAndDriftWithoutTheSlowestTenth) {
  const ClockFit fit = FitClock(SamplesOf(-123'456'789, 20e-6, 100));
  EXPECT_EQ(fit.dropped, 10u);
  EXPECT_EQ(fit.samples, 90u);
  EXPECT_NEAR(fit.drift, 20e-6, 1e-12);
  EXPECT_NEAR(static_cast<double>(fit.At(50 * kSecond)), 50e9 - 123'456'789 + 1e6, 2);
  // Every sample that counts is exact: the bound is the half round trip, and a rounded nanosecond.
  EXPECT_NEAR(static_cast<double>(fit.bound_ns), 5'000, 2);
}

TEST(ClockFitTest, TheBoundHasTheLargestResidual) {
  const ClockFit fit = FitClock({{0, 100, 50}, {kSecond, 160, 50}, {2 * kSecond, 100, 40}});
  EXPECT_NEAR(fit.offset_ns, 120, 1e-6);
  EXPECT_NEAR(fit.drift, 0, 1e-15);
  EXPECT_EQ(fit.bound_ns, 40 + 40);  // 160 - 120, and the smallest half round trip
}

TEST(ClockFitTest, SamplesThatLieCloseTogetherGiveNoDrift) {
  const ClockFit fit = FitClock({{0, 1000, 500}, {1000, 2000, 500}});
  EXPECT_EQ(fit.drift, 0);
  EXPECT_NEAR(fit.offset_ns, 1500, 1e-6);
  EXPECT_EQ(fit.bound_ns, 500 + 500);
}

TEST(ClockFitTest, OneSampleIsEnough) {
  const ClockFit fit = FitClock({{kSecond, -7, 3}});
  EXPECT_EQ(fit.At(5 * kSecond), 5 * kSecond - 7);
  EXPECT_EQ(fit.bound_ns, 3);
}

TEST(ClockFitTest, RanksOfOneBootShareTheClock) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 2), ProfileOf(1, 2)};
  profiles[1].owner.host = "another name";  // of a container
  AddStep(profiles[0], 0, 5000, 6000);
  AddStep(profiles[1], 0, 4000, 7000);
  const CommonClock clock(profiles);
  EXPECT_EQ(clock.hosts(), 1u);
  EXPECT_EQ(clock.bound_ns(), 0);
  EXPECT_EQ(clock.At(1, 4000), 0);
  EXPECT_EQ(clock.At(0, 5000), 1000);
  EXPECT_EQ(clock.length_ns(), 3000);
}

TEST(ClockFitTest, AnotherHostIsReadByItsSamples) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 2), OtherHost(1, 2)};
  profiles[1].clocks = SamplesOf(10 * kSecond, 0, 20);
  AddStep(profiles[0], 0, 12 * kSecond, 13 * kSecond);
  AddStep(profiles[1], 0, 2 * kSecond + 500, 3 * kSecond);
  const CommonClock clock(profiles);
  EXPECT_EQ(clock.hosts(), 2u);
  EXPECT_EQ(clock.At(1, 2 * kSecond + 500), 500);
  EXPECT_EQ(clock.BoundBetween(0, 1), 5000);
  EXPECT_EQ(clock.bound_ns(), 5000);
  EXPECT_FALSE(clock.guessed());
}

TEST(ClockFitTest, WithoutSamplesTheTimeOfDayStandsIn) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 2), OtherHost(1, 2)};
  profiles[0].owner.start_monotonic_ns = 100;
  profiles[0].owner.start_realtime_ns = 1100;
  profiles[1].owner.start_monotonic_ns = 50;
  profiles[1].owner.start_realtime_ns = 1150;
  AddStep(profiles[0], 0, 100, 200);
  AddStep(profiles[1], 0, 50, 60);
  const CommonClock clock(profiles);
  EXPECT_TRUE(clock.guessed());
  EXPECT_EQ(clock.At(1, 50) - clock.At(0, 100), 50);
}

TEST(ClockFitTest, WithoutNode0HostsWithSamplesStillAgree) {
  std::vector<RankProfile> profiles = {OtherHost(1, 3), OtherHost(2, 3)};
  profiles[1].owner.boot_id = "boot-c";
  profiles[1].owner.node = 2;
  profiles[0].clocks = {{0, 1000, 5}};
  profiles[1].clocks = {{0, 3000, 7}};
  AddStep(profiles[0], 0, 5000, 6000);
  AddStep(profiles[1], 0, 3000, 4000);
  const CommonClock clock(profiles);
  EXPECT_EQ(clock.At(0, 5000), clock.At(1, 3000));
  EXPECT_EQ(clock.BoundBetween(0, 1), 12);
  EXPECT_FALSE(clock.guessed());
  profiles[0].clocks.clear();
  EXPECT_TRUE(CommonClock(profiles).guessed());
  profiles.pop_back();
  EXPECT_FALSE(CommonClock(profiles).guessed());  // one host has no other to compare with
}

TEST(CheckTimesTest, RefusesWhatNoClockShows) {
  const std::vector<RankProfile> good = LikelyRun(2, 100);
  EXPECT_TRUE(CheckTimes(good).ok());
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::vector<void (*)(RankProfile&)> damages = {
      [](RankProfile& one) { one.spans[3].end_ns = kMost; },
      [](RankProfile& one) { one.spans[3].begin_ns = -1; },
      [](RankProfile& one) { one.spans[3].end_ns = one.spans[3].begin_ns - 1; },
      [](RankProfile& one) { one.owner.start_realtime_ns = kMost; },
      [](RankProfile& one) { one.owner.start_monotonic_ns = -5; },
      [](RankProfile& one) {
        one.clocks = {{0, -kMost, 1}};
      },
      [](RankProfile& one) {
        one.clocks = {{kMost, 0, 1}};
      },
      [](RankProfile& one) {
        one.clocks = {{0, 0, -1}};
      },
      [](RankProfile& one) {
        for (Span& span : one.spans) span.end_ns = int64_t{1} << 59;
      },
  };
  for (const auto damage : damages) {
    std::vector<RankProfile> bad = good;
    damage(bad[1]);
    const Status status = CheckTimes(bad);
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("rank 1: "));
  }
}

// Two ranks in one call: rank 0 from 0 to `end`, rank 1 from `begin` on.
std::vector<RankProfile> OneCall(int64_t end, int64_t begin) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 2), ProfileOf(1, 2)};
  AddCollective(profiles[0], 0, 1, 0, end, end);
  AddCollective(profiles[1], 0, 1, begin, begin + 10, begin + 20);
  return profiles;
}

TEST(CauseCheckTest, NoRankLeavesBeforeAllHaveEntered) {
  const std::vector<RankProfile> good = OneCall(100, 90);
  const CauseCheck none = CheckCauses(CollectiveCalls(good), CommonClock(good));
  EXPECT_EQ(none.calls, 1u);
  EXPECT_EQ(none.violations, 0u);
  const std::vector<RankProfile> bad = OneCall(100, 130);
  const CauseCheck one = CheckCauses(CollectiveCalls(bad), CommonClock(bad));
  EXPECT_EQ(one.violations, 1u);
  EXPECT_EQ(one.worst_ns, 30);
}

TEST(CauseCheckTest, TheBoundOfTheClocksIsAllowed) {
  std::vector<RankProfile> profiles = OneCall(100, 130);
  profiles[1].owner = OtherHost(1, 2).owner;
  profiles[1].clocks = {{0, 0, 40}};
  EXPECT_EQ(CheckCauses(CollectiveCalls(profiles), CommonClock(profiles)).violations, 0u);
  profiles[1].clocks = {{0, 0, 20}};
  EXPECT_EQ(CheckCauses(CollectiveCalls(profiles), CommonClock(profiles)).violations, 1u);
}

TEST(CauseCheckTest, ARootThatRanAheadIsNoWitness) {
  std::vector<RankProfile> profiles = OneCall(100, 130);
  profiles[0].spans[0].arrived_ns = 0;
  EXPECT_EQ(CheckCauses(CollectiveCalls(profiles), CommonClock(profiles)).violations, 0u);
}

}  // namespace
}  // namespace npumesh::testing
