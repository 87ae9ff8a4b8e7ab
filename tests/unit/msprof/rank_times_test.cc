#include "runtime/msprof/rank_times.h"

#include <gmock/gmock.h>

#include <array>
#include <random>

#include "tests/unit/msprof/made_up_profile.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kMoments = 64;

// The same sets, one flag for each moment.
using Moments = std::array<bool, kMoments>;

Moments MomentsOf(const std::vector<Interval>& parts) {
  Moments moments{};
  for (const Interval& part : parts) {
    for (int64_t ns = part.begin_ns; ns < part.end_ns; ++ns) moments[ns] = true;
  }
  return moments;
}

void ExpectNormal(const Intervals& set) {
  for (size_t i = 0; i < set.size(); ++i) {
    EXPECT_LT(set[i].begin_ns, set[i].end_ns);
    if (i > 0) {
      EXPECT_LT(set[i - 1].end_ns, set[i].begin_ns);
    }
  }
}

class RandomIntervals {
 public:
  explicit RandomIntervals(unsigned seed) : random_(seed) {}
  std::vector<Interval> Some() {
    std::vector<Interval> parts(random_() % 9);
    for (Interval& part : parts) {
      part.begin_ns = static_cast<int64_t>(random_() % kMoments);
      part.end_ns = part.begin_ns + static_cast<int64_t>(random_() % 12) - 1;
      part.end_ns = std::min(part.end_ns, kMoments);
    }
    return parts;
  }

 private:
  std::mt19937 random_;
};

TEST(Intervals, AgreeWithFlagsOfEachMoment) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    RandomIntervals random(seed);
    const auto a = random.Some();
    const auto b = random.Some();
    const Moments in_a = MomentsOf(a);
    const Moments in_b = MomentsOf(b);
    Moments rest{};
    Moments inside{};
    int64_t count = 0;
    for (int64_t ns = 0; ns < kMoments; ++ns) {
      rest[ns] = in_a[ns] && !in_b[ns];
      inside[ns] = in_a[ns] && ns >= 10 && ns < 40;
      count += in_a[ns];
    }
    const Intervals set = Union(a);
    const Intervals without = Without(set, Union(b));
    const Intervals within = Within(set, {10, 40});
    for (const Intervals& each : {set, without, within}) ExpectNormal(each);
    ASSERT_EQ(MomentsOf(set), in_a) << seed;
    ASSERT_EQ(MomentsOf(without), rest) << seed;
    ASSERT_EQ(MomentsOf(within), inside) << seed;
    ASSERT_EQ(Length(set), count) << seed;
  }
}

TEST(CallTimes, DivideTheSpan) {
  using Times = std::pair<int64_t, int64_t>;
  const auto times = [](int64_t begin, int64_t arrived, int64_t end) {
    Span span;
    span.begin_ns = begin;
    span.arrived_ns = arrived;
    span.end_ns = end;
    const CallTimes result = CallTimesOf(span);
    return Times(result.waiting_ns, result.moving_ns);
  };
  EXPECT_EQ(times(100, 130, 180), Times(30, 50));
  EXPECT_EQ(times(100, 0, 180), Times(0, 80));    // not known
  EXPECT_EQ(times(100, 90, 180), Times(0, 80));   // the others were there
  EXPECT_EQ(times(100, 200, 180), Times(80, 0));  // the clock of another host
  EXPECT_EQ(times(100, 100, 90), Times(0, 0));
}

TEST(RankTimes, DivideAnIterationInFour) {
  ProfileMaker maker(0, 2);
  const uint32_t matmul = maker.Task("a", "MatMul");
  const uint32_t reduce = maker.Task("r", "HcomAllReduce");
  const uint32_t world = maker.Group("world", 1, {0, 1});
  maker.Iteration(0, 100, 200);
  maker.Compute(matmul, 110, 130);
  maker.Compute(matmul, 120, 140);                    // another stream
  maker.Call(reduce, world, 0, 130, 150, 160, 1000);  // shares 10 ns with it
  maker.Compute(matmul, 190, 230);                    // 30 ns after the end of the iteration
  const RankTimes times = RankTimesOf(maker.profile());

  ASSERT_EQ(times.steps.size(), 1U);
  const StepTimes& step = times.steps[0];
  EXPECT_THAT(step.busy.computing, ElementsAre(Interval{110, 140}, Interval{190, 200}));
  EXPECT_THAT(step.busy.communication, ElementsAre(Interval{130, 160}));
  EXPECT_THAT(step.busy.not_overlapped, ElementsAre(Interval{140, 160}));
  EXPECT_THAT(step.busy.free, ElementsAre(Interval{100, 110}, Interval{160, 190}));
  EXPECT_EQ(step.busy.overlapped_ns(), 10);
  EXPECT_EQ(step.waiting_ns, 20);
  EXPECT_EQ(step.moving_ns, 10);
  EXPECT_EQ(times.busy.wall, (Interval{100, 230}));
  EXPECT_EQ(Length(times.busy.computing), 70);
}

TEST(RankTimes, SumsAreTheWallTime) {
  for (int rank = 0; rank < 4; ++rank) {
    const RankProfile profile = MadeUpRank(rank, 4);
    const RankTimes times = RankTimesOf(profile);
    ASSERT_EQ(times.steps.size(), 3U);
    std::vector<const WorkTimes*> all{&times};
    for (const StepTimes& step : times.steps) all.push_back(&step);
    for (const WorkTimes* work : all) {
      const BusyTimes& busy = work->busy;
      EXPECT_EQ(Length(busy.computing) + Length(busy.not_overlapped) + Length(busy.free),
                busy.wall.length());
    }
  }
}

TEST(RankTimes, OperatorsThatCallACommunicatorDoNotCompute) {
  ProfileMaker maker(0, 1);
  maker.Iteration(0, 0, 100);
  maker.Compute(maker.Task("r", "HcomAllReduce"), 10, 90);
  const RankTimes times = RankTimesOf(maker.profile());
  EXPECT_THAT(times.steps[0].busy.computing, IsEmpty());
  EXPECT_THAT(times.computations, IsEmpty());
}

TEST(RankTimes, PointsAreTheFirstBeginAndTheLastEnd) {
  ProfileMaker maker(0, 1);
  maker.owner().fp_point = "first";
  maker.owner().bp_point = "last";
  const uint32_t first = maker.Task("first", "Add");
  const uint32_t last = maker.Task("last", "Add");
  maker.Iteration(0, 0, 100);
  maker.Compute(last, 60, 70);
  maker.Compute(last, 50, 55);
  maker.Compute(first, 20, 30);
  maker.Compute(first, 10, 15);
  maker.Iteration(1, 100, 200);
  maker.Compute(first, 110, 120);
  const RankTimes times = RankTimesOf(maker.profile());
  EXPECT_EQ(times.steps[0].fp_start_ns, 10);
  EXPECT_EQ(times.steps[0].bp_end_ns, 70);
  EXPECT_EQ(times.steps[1].fp_start_ns, 110);
  EXPECT_EQ(times.steps[1].bp_end_ns, std::nullopt);
}

TEST(RankTimes, WithoutPointsThereAreNone) {
  ProfileMaker maker(0, 1);
  maker.Iteration(0, 0, 100);
  maker.Compute(0, 10, 20);  // without a name, as the points
  const RankTimes times = RankTimesOf(maker.profile());
  EXPECT_EQ(times.steps[0].fp_start_ns, std::nullopt);
  EXPECT_EQ(times.steps[0].bp_end_ns, std::nullopt);
}

TEST(RankTimes, SpansBelongToTheStepOfTheirNumber) {
  ProfileMaker maker(0, 1);
  const uint32_t add = maker.Task("a", "Add");
  maker.Iteration(0, 0, 100);
  const Span inside = maker.Compute(add, 10, 20);
  const Span between = maker.Compute(add, 105, 108);
  const Span late = maker.Compute(add, 130, 140);  // of iteration 0, in the time of the next
  maker.Iteration(1, 110, 200);
  const Span next = maker.Compute(add, 120, 220);
  // A session within the first one, whose iterations have numbers from 0, too.
  maker.Iteration(0, 150, 160);
  const Span inner = maker.Compute(add, 155, 156);
  const RankTimes times = RankTimesOf(maker.profile());
  ASSERT_EQ(times.steps.size(), 3U);
  EXPECT_EQ(times.StepOf(inside), 0U);
  EXPECT_EQ(times.StepOf(between), std::nullopt);
  EXPECT_EQ(times.StepOf(late), std::nullopt);
  EXPECT_EQ(times.StepOf(next), 1U);
  EXPECT_EQ(times.StepOf(inner), 2U);
}

TEST(RankTimes, OfNothingAreNothing) {
  const RankProfile profile;
  const RankTimes times = RankTimesOf(profile);
  EXPECT_EQ(times.busy.wall, Interval{});
  EXPECT_THAT(times.steps, IsEmpty());
  EXPECT_THAT(times.busy.free, IsEmpty());
}

TEST(TaskWaits, AreTheGapsBeforeTasks) {
  std::vector<Span> spans(4);
  const std::array<std::pair<int64_t, int64_t>, 4> moments = {
      {{10, 20}, {25, 40}, {30, 35}, {36, 50}}};
  std::vector<const Span*> computations;
  for (size_t i = 0; i < spans.size(); ++i) {
    spans[i].begin_ns = moments[i].first;
    spans[i].end_ns = moments[i].second;
    computations.push_back(&spans[i]);
  }
  EXPECT_THAT(TaskWaits(computations), ElementsAre(0, 5, 0, 1));
}

}  // namespace
}  // namespace npumesh
