// The numbers of profiles made by hand, whose answers are computed here by head.
#include "launch/profile/profile_facts.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "launch/profile/machine_limits.h"
#include "launch/profile/profile_compare.h"
#include "launch/profile/profile_report.h"
#include "launch/profile/rank_parts.h"
#include "launch/profile/units.h"
#include "tests/unit/profile_view/profiles.h"

namespace npumesh::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

ProfileFacts MustFacts(const std::vector<RankProfile>& profiles) {
  return FactsOf(profiles, CollectiveCalls(profiles), CommonClock(profiles));
}

int64_t SumOf(const TimeParts& parts) {
  return parts.computing_ns + parts.overlapped_ns + parts.moving_ns + parts.waiting_ns +
         parts.preparing_ns + parts.idle_ns;
}

TEST(ProfileFactsTest, AStepIsDividedIntoItsParts) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 1)};
  RankProfile& profile = profiles[0];
  const uint32_t add = AddTask(profile, "add", "Add");
  AddOperator(profile, add, 10, 40);                       // computing 10-30, overlapped 30-40
  AddCollective(profile, 0, 1, 30, 60, 80);                // waiting 40-60, moving 60-80
  AddOperator(profile, 0, 75, 95).kind = SpanKind::kCopy;  // preparing 80-95
  AddStep(profile, 0, 0, 100);
  const ProfileFacts facts = MustFacts(profiles);
  ASSERT_THAT(facts.steps, SizeIs(1));
  const TimeParts& parts = facts.steps[0].parts;
  EXPECT_EQ(parts.wall_ns, 100);
  EXPECT_EQ(parts.computing_ns, 20);
  EXPECT_EQ(parts.overlapped_ns, 10);
  EXPECT_EQ(parts.waiting_ns, 20);
  EXPECT_EQ(parts.moving_ns, 20);
  EXPECT_EQ(parts.preparing_ns, 15);
  EXPECT_EQ(parts.idle_ns, 15);
}

TEST(ProfileFactsTest, ACallInsideOfAnOperatorIsNoComputation) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 1)};
  RankProfile& profile = profiles[0];
  AddOperator(profile, AddTask(profile, "fused", "MatmulAllReduce"), 0, 100);
  AddCollective(profile, AddTask(profile, "fused", "allreduce"), 1, 60, 70, 90);
  AddCollective(profile, AddTask(profile, "other", "allreduce"), 2, 10, 10, 30);
  AddOperator(profile, AddTask(profile, "reduce", "HcomAllReduce"), 100, 150);
  AddStep(profile, 0, 0, 150);
  const TimeParts parts = MustFacts(profiles).steps[0].parts;
  EXPECT_EQ(parts.computing_ns, 50);  // 0-60 and 90-100, without 10-30
  EXPECT_EQ(parts.overlapped_ns, 20);
  EXPECT_EQ(parts.waiting_ns, 10);
  EXPECT_EQ(parts.moving_ns, 20);
  EXPECT_EQ(parts.idle_ns, 50);
}

TEST(ProfileFactsTest, PartsSumToTheWallTimeOfAnySpans) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    RankProfile profile = ProfileOf(0, 1);
    const uint32_t task = AddTask(profile, "a", "Add");
    for (int i = 0; i < 30; ++i) {
      const auto begin = static_cast<int64_t>(random() % 1000);
      const auto end = begin + static_cast<int64_t>(random() % 200);
      constexpr SpanKind kKinds[] = {SpanKind::kTask, SpanKind::kMessage, SpanKind::kCopy,
                                     SpanKind::kCompile, SpanKind::kApi};
      Span& span = AddOperator(profile, task, begin, end);
      span.kind = kKinds[random() % 5];
      span.lane = static_cast<uint16_t>(random() % 3);
      span.arrived_ns = random() % 2 == 0 ? 0 : begin + static_cast<int64_t>(random() % 300);
    }
    AddStep(profile, 0, 100, 700);
    AddStep(profile, 1, 700, 900);
    for (const StepFacts& step : StepsOf(profile)) {
      EXPECT_EQ(SumOf(step.parts), step.parts.wall_ns);
      EXPECT_GE(step.parts.idle_ns, 0);
    }
  }
}

TEST(ProfileFactsTest, AKilledRanksLastStepHasNoEnd) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 2)};
  RankProfile& profile = profiles[0];
  const uint32_t add = AddTask(profile, "add", "Add");
  AddOperator(profile, add, 10, 20, 0);
  AddStep(profile, 0, 0, 30);
  AddOperator(profile, add, 40, 45, 1);
  profile.lost_full = 3;
  profile.lost_limit = 4;
  profile.ended = false;
  const ProfileFacts facts = MustFacts(profiles);
  ASSERT_THAT(facts.steps, SizeIs(2));
  EXPECT_TRUE(facts.steps[0].whole);
  EXPECT_FALSE(facts.steps[1].whole);
  EXPECT_EQ(facts.steps[1].parts.wall_ns, 5);
  EXPECT_THAT(facts.gaps, ElementsAre(HasSubstr("rank 1 left no profile"),
                                      HasSubstr("rank 0 (host-a) has no end"),
                                      HasSubstr("rank 0 lost 3 spans because its ring was full, "
                                                "and 4 because its file was")));
  EXPECT_THAT(ProfileText(facts, std::nullopt, 10), HasSubstr("no end\n"));
  EXPECT_EQ(ProfileReport(facts, std::nullopt).verdict, "partial");
}

TEST(ProfileFactsTest, AProgramWithoutSessionsHasOneStep) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 1)};
  AddCollective(profiles[0], 0, 1, 50, 60, 100);
  const ProfileFacts facts = MustFacts(profiles);
  ASSERT_THAT(facts.steps, SizeIs(1));
  EXPECT_EQ(facts.steps[0].parts.moving_ns, 40);
}

TEST(ProfileFactsTest, OperatorsHaveTotalsAndRates) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 1)};
  RankProfile& profile = profiles[0];
  const uint32_t product = AddTask(profile, "mm", "MatMul", 4000, 800);
  const uint32_t add = AddTask(profile, "add1", "Add", 0, 100);
  const uint32_t other = AddTask(profile, "add2", "Add");
  AddOperator(profile, product, 0, 100);
  AddOperator(profile, product, 100, 400);
  AddOperator(profile, add, 400, 450);
  AddOperator(profile, other, 450, 500);
  const ProfileFacts facts = MustFacts(profiles);
  ASSERT_THAT(facts.operators, SizeIs(3));
  const OperatorFacts& first = facts.operators[0];
  EXPECT_EQ(first.name, "mm");
  EXPECT_EQ(first.count, 2u);
  EXPECT_EQ(first.total_ns, 400);
  EXPECT_DOUBLE_EQ(first.mean_ns(), 200);
  EXPECT_DOUBLE_EQ(first.share, 0.8);
  EXPECT_DOUBLE_EQ(first.gflops, 20);  // 8000 operations in 400 ns
  EXPECT_DOUBLE_EQ(first.gbytes, 4);
  EXPECT_DOUBLE_EQ(first.intensity, 5);
  ASSERT_THAT(facts.types, SizeIs(2));
  EXPECT_EQ(facts.types[1].type, "Add");
  EXPECT_EQ(facts.types[1].count, 2u);
  EXPECT_DOUBLE_EQ(facts.types[1].gbytes, 2);  // of the call whose bytes are known
  EXPECT_EQ(facts.types[1].gflops, 0);
}

TEST(ProfileFactsTest, CollectivesOfAllMembersAreOneCall) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 2), ProfileOf(1, 2)};
  for (RankProfile& profile : profiles) {
    const uint32_t task = AddTask(profile, "node7", "HcomAllReduce");
    const int64_t late = 10 * profile.owner.rank;
    AddCollective(profile, task, 1, late, 20, 30, 500);
    AddCollective(profile, task, 2, 100 + late, 120, 130, 500);
  }
  const ProfileFacts facts = MustFacts(profiles);
  ASSERT_THAT(facts.collectives, SizeIs(1));
  const KindFacts& kind = facts.collectives[0];
  EXPECT_EQ(kind.kind, "HcomAllReduce");
  EXPECT_EQ(kind.calls, 2u);
  EXPECT_EQ(kind.spans, 4u);
  EXPECT_EQ(kind.bytes, 2000u);
  EXPECT_EQ(kind.moving_ns, 40);
  EXPECT_EQ(kind.waiting_ns, 60);
  EXPECT_DOUBLE_EQ(kind.bandwidth(), 50);
  EXPECT_EQ(facts.ranks[1].came_last, 2u);
  EXPECT_EQ(facts.ranks[1].others_waited_ns, 20);
  EXPECT_EQ(facts.ranks[0].came_last, 0u);
}

TEST(ProfileFactsTest, NamesTheRankThatOthersWaitFor) {
  const ProfileFacts facts = MustFacts(LikelyRun(4, 1000));
  EXPECT_EQ(facts.slowest.rank, 3);
  EXPECT_TRUE(facts.slowest.computes_longest);
  EXPECT_TRUE(facts.slowest.waits_least);
  EXPECT_TRUE(facts.slowest.enters_last);
  EXPECT_EQ(
      facts.slowest.text,
      "rank 3 holds the others up: it enters 17 of 17 collectives last, and is late by 510 us "
      "in all; it computes 510 us longer than the others, in layer0/attention/MatMul");
  EXPECT_THAT(facts.slowest.ranks, ElementsAre(3));
  EXPECT_EQ(facts.slowest.part, "computing");
  EXPECT_EQ(facts.slowest.op, "layer0/attention/MatMul");
  EXPECT_EQ(facts.causes.violations, 0u);
  EXPECT_EQ(facts.causes.calls, 17u);
}

TEST(ProfileFactsTest, NoRankStandsOutWhereNoneIsWaitedFor) {
  EXPECT_EQ(MustFacts(LikelyRun(1, 100)).slowest.rank, -1);
  std::vector<RankProfile> profiles = {ProfileOf(0, 2), ProfileOf(1, 2)};
  for (RankProfile& profile : profiles) {
    AddCollective(profile, 0, 1, 50'000, 50'000, 60'000);
    AddStep(profile, 0, 0, 100'000);
  }
  EXPECT_EQ(MustFacts(profiles).slowest.text, "no rank stands out");
}

TEST(ProfileFactsTest, SpansWithoutAnySubjectOrGroupAreRead) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 1)};
  AddCollective(profiles[0], 0, 1, 0, 500, 10).group = 0;  // the arrival lies outside
  const ProfileFacts facts = MustFacts(profiles);
  EXPECT_EQ(facts.collectives[0].calls, 1u);
  EXPECT_EQ(facts.collectives[0].waiting_ns, 10);
  EXPECT_EQ(MustFacts({ProfileOf(0, 1)}).steps.size(), 0u);
  EXPECT_THAT(ProfileText(MustFacts({ProfileOf(0, 1)}), std::nullopt, 3),
              HasSubstr("no step was recorded"));
}

TEST(ProfileTextTest, ShowsAsManyRowsAsAskedFor) {
  const ProfileFacts facts = MustFacts(LikelyRun(2, 1000));
  const std::string text = ProfileText(facts, MachineLimits{100, 10}, 2);
  EXPECT_THAT(text, HasSubstr("2 of 2 ranks on 1 host, 35 steps; npumesh run model.air\n"));
  EXPECT_THAT(text, HasSubstr("one core here: 100.0 GFLOP/s, 10.0 GB/s\n"));
  EXPECT_THAT(text, HasSubstr("66 rows more: --top, --json\n"));
  EXPECT_THAT(text, HasSubstr("layer0/attention/MatMul (MatMulV2)"));
}

// Regression: at 80 columns every row was folded.
TEST(ProfileTextTest, FitsOnANarrowScreen) {
  std::vector<RankProfile> profiles = LikelyRun(3, 1000);
  for (RankProfile& profile : profiles) {
    profile.tasks[0].name = std::string(100, 'a') + "/the end";
    profile.owner.command.clear();
  }
  const ProfileFacts facts = MustFacts(profiles);
  const auto widest = [](const std::string& text) {
    size_t most = 0;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      // Sentences are folded as ever.
      const bool is_row = text[begin] == ' ';
      if (is_row) most = std::max(most, end - begin);
      begin = end + 1;
    }
    return most;
  };
  const std::string text = ProfileText(facts, MachineLimits{100, 10}, 5, 80);
  EXPECT_LE(widest(text), 80u) << text;
  EXPECT_THAT(text, HasSubstr("a/the end\n"));
  EXPECT_THAT(text, HasSubstr("came last  others waited"));
  EXPECT_GT(widest(ProfileText(facts, MachineLimits{100, 10}, 5)), 100u);
  EXPECT_LE(widest(ComparedText(CompareProfiles(facts, facts), 5, 80)), 80u);
}

TEST(ProfileTextTest, TheRooflineIsTheSmallerLimit) {
  const MachineLimits limits{100, 10};
  EXPECT_DOUBLE_EQ(Roofline(limits, 2), 20);
  EXPECT_DOUBLE_EQ(Roofline(limits, 50), 100);
  OperatorFacts one{.gflops = 5, .gbytes = 2.5, .intensity = 2};
  EXPECT_EQ(LimitText(one, limits), "25% of what memory allows");
  one.intensity = 50;
  EXPECT_EQ(LimitText(one, limits), "5% of what one core allows");
  EXPECT_EQ(LimitText({.gbytes = 4}, limits), "40% of what memory allows");
  EXPECT_EQ(LimitText({}, limits), "");
}

TEST(ProfileTextTest, SaysWhatClocksLeaveOpen) {
  ProfileFacts facts{.hosts = 2, .clock_bound_ns = 12'300};
  EXPECT_THAT(ClockText(facts), HasSubstr("may be off by 12.3 us"));
  facts.clock_guessed = true;
  EXPECT_THAT(ClockText(facts), HasSubstr("were never compared"));
  EXPECT_EQ(CauseText({5, 0, 0}), "");
  EXPECT_THAT(CauseText({5, 1, 30}), HasSubstr("1 member of 5 collectives left a collective"));
}

TEST(ProfileTextTest, ForeignNamesCannotForgeLines) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 1)};
  AddOperator(profiles[0], AddTask(profiles[0], "a\nwarning: forged", "T\x1b[31m"), 0, 10);
  const std::string text = ProfileText(MustFacts(profiles), std::nullopt, 10);
  EXPECT_THAT(text, Not(HasSubstr("\nwarning: forged")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(UnitsTest, HaveThreeDigits) {
  EXPECT_EQ(DurationText(int64_t{0}), "0 ns");
  EXPECT_EQ(DurationText(int64_t{999}), "999 ns");
  EXPECT_EQ(DurationText(int64_t{1'234}), "1.23 us");
  EXPECT_EQ(DurationText(int64_t{12'340'000}), "12.3 ms");
  EXPECT_EQ(DurationText(int64_t{999'600}), "1.00 ms");
  EXPECT_EQ(DurationText(int64_t{5'000'000'000'000}), "5000 s");
  EXPECT_EQ(DurationText(int64_t{-1'234}), "-1.23 us");
  EXPECT_EQ(BytesText(1'500'000), "1.50 MB");
}

TEST(MachineLimitsTest, AreMeasured) {
  const MachineLimits limits = MeasureMachineLimits();
  EXPECT_GT(limits.gflops, 0.01);
  EXPECT_GT(limits.gbytes, 0.01);
}

TEST(ProfileCompareTest, SaysWhatGotSlower) {
  std::vector<RankProfile> before = {ProfileOf(0, 1)};
  std::vector<RankProfile> after = {ProfileOf(0, 1)};
  for (auto* profiles : {&before, &after}) {
    RankProfile& profile = (*profiles)[0];
    const int64_t slow = profiles == &after ? 3 : 1;
    const uint32_t product = AddTask(profile, "mm", "MatMul");
    const uint32_t add = AddTask(profile, profiles == &after ? "new" : "old", "Add");
    AddOperator(profile, product, 0, 100 * slow);
    AddOperator(profile, add, 300, 310);
    AddStep(profile, 0, 0, 400 * slow);
    if (slow == 1) AddStep(profile, 1, 400, 500);
  }
  const ComparedProfiles compared = CompareProfiles(MustFacts(before), MustFacts(after));
  ASSERT_THAT(compared.operators, SizeIs(3));
  EXPECT_EQ(compared.operators[0].name, "mm");
  EXPECT_EQ(compared.operators[0].slower_ns(), 200);
  EXPECT_EQ(compared.operators[1].name, "new");
  EXPECT_EQ(compared.operators[1].count_before, 0u);
  EXPECT_EQ(compared.operators[2].slower_ns(), -10);
  ASSERT_THAT(compared.types, SizeIs(2));
  EXPECT_EQ(compared.types[1].slower_ns(), 0);
  ASSERT_THAT(compared.steps, SizeIs(1));
  EXPECT_EQ(compared.steps[0].after.wall_ns - compared.steps[0].before.wall_ns, 800);
  EXPECT_EQ(compared.steps_only_before, 1u);
  EXPECT_THAT(compared.gaps, IsEmpty());
  const std::string text = ComparedText(compared, 10);
  EXPECT_THAT(text, HasSubstr("new (only in B)"));
  EXPECT_THAT(text, HasSubstr("+200 ns"));
  EXPECT_EQ(compared.verdict.text,
            "B is 800 ns a step slower (factor 3.00, median of 1 step): it idles 600 ns longer a "
            "step");
  EXPECT_EQ(ComparedReport(compared).verdict, "slower");
}

TEST(ProfileJsonTest, HasWhatTheTablesHave) {
  const ProfileFacts facts = MustFacts(LikelyRun(2, 200));
  const CommandReport report = ProfileReport(facts, MachineLimits{100, 10});
  EXPECT_EQ(report.verdict, "whole");
  const nlohmann::json& details = report.details;
  EXPECT_EQ(details.at("steps").size(), facts.steps.size());
  EXPECT_EQ(details.at("slowest").at("rank"), 1);
  EXPECT_EQ(details.at("limits").at("gflops"), 100.0);
  const auto& product = details.at("types").at(0);
  EXPECT_EQ(product.at("type"), "MatMulV2");
  EXPECT_EQ(product.at("roofline_gflops"), 100.0);
  EXPECT_TRUE(ProfileReport(facts, std::nullopt).details.at("limits").is_null());
}

}  // namespace
}  // namespace npumesh::testing
