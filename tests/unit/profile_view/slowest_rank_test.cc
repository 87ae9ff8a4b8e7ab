// Runs with ground truth: ranks that compute alike but for noise, and one fault in some of them.
// The rank, the part of its time and the operator that were planted are named; without a fault no
// rank is, however unlike the ranks are by chance.
#include "launch/profile/slowest_rank.h"

#include <gmock/gmock.h>

#include <random>

#include "launch/profile/profile_compare.h"
#include "launch/ranks/standing_out.h"
#include "tests/unit/planted_faults.h"
#include "tests/unit/profile_view/profiles.h"

namespace npumesh::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMicro = 1'000;
constexpr int kLayers = 6;

// What is done to a rank, in every step unless said otherwise.
enum class Planted {
  kNothing,
  kComputing,  // an operator takes longer
  kIdle,       // the rank idles before an operator
  kSometimes,  // the same, in every third step
  kPreparing,  // a copy takes longer
  kBetween,    // the rank begins its steps late
};

// A simulated tensor-parallel run: layers of a product, an activation and a sum over all ranks.
class SimulatedRun {
 public:
  SimulatedRun(Planted planted, unsigned seed) : planted_(planted), random_(seed) {
    ranks_ = 2 + static_cast<int>(random_() % 7);
    steps_ = 12 + static_cast<int>(random_() % 40);
    victim_ = static_cast<int>(random_() % static_cast<unsigned>(ranks_));
    layer_ = static_cast<int>(random_() % kLayers);
    // A step is about kLayers * 170 us. The fault is clearly more than the noise of a step, some
    // 100 us of a rank.
    longer_ = (400 + static_cast<int64_t>(random_() % 800)) * kMicro;
    if (planted == Planted::kSometimes) {
      longer_ *= 4;
      steps_ += 60;
    }
  }

  int victim() const { return victim_; }
  std::string product() const { return fmt::format("layer{}/MatMul", layer_); }

  // Every call simulates the same run with other noise.
  std::vector<RankProfile> Simulate() {
    std::vector<RankProfile> profiles;
    for (int rank = 0; rank < ranks_; ++rank) {
      profiles.push_back(ProfileOf(rank, ranks_));
      tasks_ = AddTasks(profiles.back());
    }
    std::vector<int64_t> at(Count(), 1'000 * kMicro);
    uint64_t call = 0;
    for (step_ = 0; step_ < steps_; ++step_) RunStep(profiles, at, call);
    return profiles;
  }

 private:
  struct Tasks {
    std::vector<uint32_t> products, activations, sums;
    uint32_t copy = 0;
  };

  static Tasks AddTasks(RankProfile& profile) {
    Tasks tasks;
    for (int layer = 0; layer < kLayers; ++layer) {
      tasks.products.push_back(AddTask(profile, fmt::format("layer{}/MatMul", layer), "MatMulV2"));
      tasks.activations.push_back(AddTask(profile, fmt::format("layer{}/Gelu", layer), "Gelu"));
      tasks.sums.push_back(AddTask(profile, fmt::format("layer{}/sum", layer), "HcomAllReduce"));
    }
    tasks.copy = AddTask(profile, "host to device", "");
    return tasks;
  }

  size_t Count() const { return static_cast<size_t>(ranks_); }

  bool Strikes(int rank, Planted planted) const {
    const bool now = planted != Planted::kSometimes || step_ % 3 == 0;
    return rank == victim_ && planted == planted_ && now;
  }

  // Mostly a little longer than `usual`; now and then a rank loses its processor for milliseconds.
  int64_t Noisy(int64_t usual) {
    std::lognormal_distribution<double> noise(0, 0.15);
    const auto length = static_cast<int64_t>(static_cast<double>(usual) * noise(random_));
    const bool lost = random_() % 8000 == 0;
    return lost ? length + 3'000 * kMicro + static_cast<int64_t>(random_() % 10'000) * kMicro
                : length;
  }

  void RunStep(std::vector<RankProfile>& profiles, std::vector<int64_t>& at, uint64_t& call) {
    const auto step = static_cast<uint32_t>(step_);
    std::vector<int64_t> begun(Count());
    for (size_t r = 0; r < Count(); ++r) {
      const int rank = static_cast<int>(r);
      if (Strikes(rank, Planted::kBetween)) at[r] += longer_;
      begun[r] = at[r];
      // The first step makes plans, on some rank for longer.
      const int64_t first = step_ == 0 ? Noisy(5'000 * kMicro) : 0;
      const int64_t copied =
          Noisy(20 * kMicro) + first + (Strikes(rank, Planted::kPreparing) ? longer_ : 0);
      Span& copy = AddOperator(profiles[r], tasks_.copy, at[r], at[r] + copied, step);
      copy.kind = SpanKind::kCopy;
      copy.lane = kHostLane;
      at[r] += copied;
    }
    for (int layer = 0; layer < kLayers; ++layer) RunLayer(profiles, at, layer, call++);
    for (size_t r = 0; r < Count(); ++r) AddStep(profiles[r], step, begun[r], at[r]);
  }

  void RunLayer(std::vector<RankProfile>& profiles, std::vector<int64_t>& at, int layer,
                uint64_t call) {
    const auto step = static_cast<uint32_t>(step_);
    const auto l = static_cast<size_t>(layer);
    int64_t arrived = 0;
    for (size_t r = 0; r < Count(); ++r) {
      const int rank = static_cast<int>(r);
      const bool here = layer == layer_;
      const bool idles = Strikes(rank, Planted::kIdle) || Strikes(rank, Planted::kSometimes);
      at[r] += Noisy(2 * kMicro) + (here && idles ? longer_ : 0);
      const bool slow = here && Strikes(rank, Planted::kComputing);
      const int64_t product = Noisy(100 * kMicro) + (slow ? longer_ : 0);
      AddOperator(profiles[r], tasks_.products[l], at[r], at[r] + product, step);
      at[r] += product + Noisy(1 * kMicro);
      const int64_t activation = Noisy(30 * kMicro);
      AddOperator(profiles[r], tasks_.activations[l], at[r], at[r] + activation, step);
      at[r] += activation + Noisy(1 * kMicro);
      arrived = std::max(arrived, at[r]);
    }
    for (size_t r = 0; r < Count(); ++r) {
      const int64_t end = arrived + Noisy(40 * kMicro);
      AddCollective(profiles[r], tasks_.sums[l], call, at[r], arrived, end).iteration = step;
      at[r] = end;
    }
  }

  const Planted planted_;
  std::mt19937 random_;
  int ranks_ = 0;
  int steps_ = 0;
  int victim_ = 0;
  int layer_ = 0;
  int64_t longer_ = 0;
  int step_ = 0;
  Tasks tasks_;
};

ProfileFacts FactsOfRun(SimulatedRun& run) {
  const std::vector<RankProfile> profiles = run.Simulate();
  return FactsOf(profiles, CollectiveCalls(profiles), CommonClock(profiles));
}

struct PlantCase {
  std::string name;
  Planted planted;
  std::string part;  // of the rank's time
  bool has_operator;
};

class PlantedRank : public ::testing::TestWithParam<PlantCase> {};

TEST_P(PlantedRank, IsNamedWithItsPartAndOperator) {
  for (int seed = 0; seed < PlantedFaults(100); ++seed) {
    SimulatedRun run(GetParam().planted, static_cast<unsigned>(seed));
    const SlowestFacts slowest = FactsOfRun(run).slowest;
    EXPECT_THAT(slowest.ranks, ElementsAre(run.victim())) << seed << ": " << slowest.text;
    EXPECT_EQ(slowest.rank, run.victim()) << seed << ": " << slowest.text;
    EXPECT_EQ(slowest.part, GetParam().part) << seed << ": " << slowest.text;
    EXPECT_EQ(slowest.op, GetParam().has_operator ? run.product() : "")
        << seed << ": " << slowest.text;
  }
}

// Faults of every step: what happens between steps, or in few of them, is no matter of the median
// step.
class PlantedInEveryStep : public PlantedRank {};

// The same run without the fault is A.
TEST_P(PlantedInEveryStep, IsNamedBesideARunWithoutTheFault) {
  for (int seed = 0; seed < PlantedFaults(100); ++seed) {
    SimulatedRun good(Planted::kNothing, static_cast<unsigned>(seed));
    SimulatedRun bad(GetParam().planted, static_cast<unsigned>(seed));
    const ProfileFacts before = FactsOfRun(good);
    const ProfileFacts after = FactsOfRun(bad);
    const ComparedVerdict slower = CompareProfiles(before, after).verdict;
    EXPECT_EQ(slower.word, "slower") << seed << ": " << slower.text;
    EXPECT_EQ(slower.rank, bad.victim()) << seed << ": " << slower.text;
    const ComparedVerdict faster = CompareProfiles(after, before).verdict;
    EXPECT_EQ(faster.word, "faster") << seed << ": " << faster.text;
    EXPECT_EQ(faster.rank, bad.victim()) << seed << ": " << faster.text;
  }
}

const PlantCase kEveryStep[] = {{"ComputesLong", Planted::kComputing, "computing", true},
                                {"Idles", Planted::kIdle, "idle", true},
                                {"Prepares", Planted::kPreparing, "preparing", false}};

INSTANTIATE_TEST_SUITE_P(, PlantedInEveryStep, ::testing::ValuesIn(kEveryStep),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(EveryStep, PlantedRank, ::testing::ValuesIn(kEveryStep),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(
    , PlantedRank,
    ::testing::Values(PlantCase{"IdlesSometimes", Planted::kSometimes, "idle", true},
                      PlantCase{"BeginsLate", Planted::kBetween, "between steps", false}),
    [](const auto& info) { return info.param.name; });

// Regression: some rank was always guilty.
TEST(SlowestRank, OfRanksThatDifferByChanceNoneStandsOut) {
  for (int seed = 0; seed < PlantedFaults(100); ++seed) {
    SimulatedRun run(Planted::kNothing, static_cast<unsigned>(seed));
    const ProfileFacts facts = FactsOfRun(run);
    EXPECT_THAT(facts.slowest.ranks, IsEmpty()) << seed << ": " << facts.slowest.text;
    EXPECT_EQ(facts.slowest.rank, -1);
    EXPECT_EQ(facts.slowest.text.substr(0, 18), "no rank stands out") << seed;
    const ComparedVerdict again = CompareProfiles(facts, FactsOfRun(run)).verdict;
    EXPECT_EQ(again.word, "same") << seed << ": " << again.text;
  }
}

TEST(SlowestRank, ASingleLongWaitIsToldButBlamesNoRank) {
  std::vector<RankProfile> profiles = {ProfileOf(0, 2), ProfileOf(1, 2)};
  for (RankProfile& profile : profiles) {
    const uint32_t sum = AddTask(profile, "sum7", "HcomAllReduce");
    for (int64_t call = 0; call < 20; ++call) {
      const int64_t begin = 1000 * call;
      const int64_t late = profile.owner.rank == 1 && call == 7 ? 500 : 0;
      AddCollective(profile, sum, static_cast<uint64_t>(call), begin + late,
                    begin + (call == 7 ? 500 : 0), begin + 900);
    }
    AddStep(profile, 0, 0, 20'000);
  }
  EXPECT_EQ(FactsOf(profiles, CollectiveCalls(profiles), CommonClock(profiles)).slowest.text,
            "no rank stands out; the longest single wait is 500 ns, for rank 1 before sum7 in step "
            "0");
}

TEST(StandingOut, NeedsRanksSamplesAndADistance) {
  EXPECT_THAT(StandingOut({}), IsEmpty());
  EXPECT_THAT(StandingOut({{1, 1, 1}}), IsEmpty());
  EXPECT_THAT(StandingOut({{9, 9}, {1, 1}}), IsEmpty());
  EXPECT_THAT(StandingOut({{9, 9, 9}, {1, 1, 1}}), ElementsAre(0));
  EXPECT_THAT(StandingOut({{0, 0, 0}, {0, 0, 0}}), IsEmpty());
  EXPECT_THAT(StandingOut({{0, 0, 0}, {0, 0, 0}, {2, 2, 2}}), ElementsAre(2));
  EXPECT_THAT(StandingOut({{1.9, 1.9, 1.9}, {1, 1, 1}}), IsEmpty()) << "less than twice";
  EXPECT_THAT(StandingOut({{30, 0, 0}, {0, 0, 0}}), IsEmpty()) << "only once";
  EXPECT_THAT(StandingOut({{5, 5, 5}, {1, 1, 1}, {5, 5, 5}, {1, 1, 1}}), ElementsAre(0, 2));
  EXPECT_THAT(StandingOut({{5, 5, 5}, {5, 5, 5}, {5, 5, 5}, {1, 1, 1}}), IsEmpty())
      << "more than half";
}

TEST(StandingOut, RanksThatDifferByChanceDoNot) {
  std::mt19937 random(1);
  std::lognormal_distribution<double> time(0, 2);
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::vector<double>> times(2 + random() % 15);
    const size_t samples = 3 + random() % 60;
    for (std::vector<double>& one : times) {
      for (size_t i = 0; i < samples; ++i) one.push_back(time(random));
    }
    EXPECT_THAT(StandingOut(LostAgainstOthers(times)), IsEmpty()) << round;
  }
}

TEST(LostAgainstOthers, IsWhatIsAboveTheLowerHalf) {
  EXPECT_THAT(LostAgainstOthers({{1, 5}, {4, 1}, {9, 3}}),
              ElementsAre(ElementsAre(0, 2), ElementsAre(0, 0), ElementsAre(5, 0)));
  EXPECT_THAT(LostAgainstOthers({{1}, {4}}), ElementsAre(ElementsAre(0), ElementsAre(3)));
  EXPECT_THAT(LostAgainstOthers({}), IsEmpty());
}

}  // namespace
}  // namespace npumesh::testing
