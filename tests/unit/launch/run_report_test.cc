#include "launch/run/run_report.h"

#include <gmock/gmock.h>

#include <limits>

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<RankReport> TwoRanks() {
  RankReport fast;
  fast.compute_seconds = 0.001;
  fast.collective_seconds = 0.250;
  fast.total_seconds = 0.252;
  fast.away_seconds = {0.0006, 0.0007, 0.0007};
  RankReport slow;
  slow.rank = 1;
  slow.compute_seconds = 0.25;
  slow.collective_seconds = 0.001;
  slow.total_seconds = 0.252;
  slow.away_seconds = {0.083, 0.084, 0.084};
  slow.peak_hbm_bytes = 2048;
  return {fast, slow};
}

TEST(RunReport, TheTableMarksTheSlowestRankAndSaysWhatTimesAre) {
  const std::string table = ReportTable(TwoRanks(), 3);
  EXPECT_THAT(table, HasSubstr("250.000"));
  EXPECT_THAT(table, HasSubstr("2.0 <- slowest\n"));
  EXPECT_THAT(table, HasSubstr("3 steps; all times are wall-clock time on this machine's CPU"));
  EXPECT_THAT(SlowestRanks(TwoRanks()), ElementsAre(1));
  EXPECT_THAT(ReportTable({TwoRanks()[0]}, 1), Not(HasSubstr("slowest")));
}

// What delays a rank between its operators is in no column but the total.
TEST(RunReport, TheSlowestIsTheOneThatWaitedLeastForTheOthers) {
  std::vector<RankReport> ranks(3);
  for (RankReport& rank : ranks) {
    rank.rank = static_cast<int>(&rank - ranks.data());
    rank.total_seconds = 3.129;
    rank.away_seconds = {0.029, 0.030, 0.031, 0.030};
  }
  ranks[1].away_seconds = {0.78, 0.77, 0.79, 0.78};
  ranks[2].compute_seconds = 0.120;  // computes longest, and waits all the same
  EXPECT_THAT(SlowestRanks(ranks), ElementsAre(1));
  EXPECT_THAT(SlowestRanks({}), IsEmpty());
}

// Regression: of 1121.8 and 1132.9 ms the larger was marked.
TEST(RunReport, NoRankIsMarkedThatDoesNotStandOut) {
  std::vector<RankReport> ranks = TwoRanks();
  ranks[0].away_seconds = {0.374, 0.372, 0.376};
  ranks[1].away_seconds = {0.377, 0.379, 0.377};
  ranks[0].total_seconds = ranks[1].total_seconds = 1.2;
  EXPECT_THAT(SlowestRanks(ranks), IsEmpty());
  EXPECT_THAT(ReportTable(ranks, 3), Not(HasSubstr("slowest")));
  // One step says nothing, however it went.
  ranks[0].away_seconds = {0.001};
  ranks[1].away_seconds = {1.1};
  EXPECT_THAT(SlowestRanks(ranks), IsEmpty());
}

TEST(RunReport, TellsWhatOfTheCollectivesWasHidden) {
  std::vector<RankReport> ranks = TwoRanks();
  EXPECT_THAT(ReportTable(ranks, 1), Not(HasSubstr("beside computing")));
  ranks[1].hidden_seconds = 0.0125;
  EXPECT_THAT(ReportTable(ranks, 1),
              HasSubstr("\nrank 1: 12.500 ms of its collectives passed beside computing\n"));
}

TEST(RunReport, CheckLines) {
  OutputCheck check;
  check.dtype = "float32";
  check.shape = "[2,4]";
  EXPECT_EQ(CheckLine(check), "rank 0 output 0 float32[2,4] max abs diff 0 OK");
  check.ok = false;
  check.max_abs_diff = 0.5;
  check.where = "[1,3]";
  check.step = 2;
  check.detail = "1 of 8 elements";
  EXPECT_EQ(CheckLine(check),
            "rank 0 output 0 float32[2,4] max abs diff 0.5 at [1,3] of step 2 DIFFERS: 1 of 8 "
            "elements");
}

TEST(RunReport, ALineMoreSaysWhatIsAllowedAndNeeded) {
  OutputCheck check;
  check.dtype = "float32";
  check.shape = "[2]";
  check.where = "[1]";
  check.max_abs_diff = 0.5;
  check.atol = 1;
  check.rtol = 0.25;
  check.tolerance = "given";
  check.needs_atol = 0.375;
  EXPECT_EQ(CheckLine(check),
            "rank 0 output 0 float32[2] max abs diff 0.5 at [1] of step 0 OK\n"
            "    tolerance atol 1 rtol 0.25 (given); the worst element needs atol 0.375");
  check.ok = false;
  check.needs_atol = std::numeric_limits<double>::infinity();
  EXPECT_THAT(CheckLine(check), HasSubstr("(given); no atol is enough for the worst element"));
  const nlohmann::json json = check;
  EXPECT_TRUE(nlohmann::json::parse(json.dump()).at("needs_atol").is_null());
  const auto copy = nlohmann::json::from_cbor(nlohmann::json::to_cbor(json)).get<OutputCheck>();
  EXPECT_EQ(copy.needs_atol, check.needs_atol);
  EXPECT_EQ(copy.tolerance, "given");
}

TEST(RunReport, OutputsAreSummarisedAndEqualRanksShareALine) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor mixed =
      Tensor::FromVector<float>({DataType::kFloat, {2, 3}}, {-1, nan, 2, inf, 0.5f, nan});
  const Tensor ints = Tensor::FromVector<int32_t>({DataType::kInt32, {2}}, {3, 4});
  const Tensor empty = Tensor::Allocate({DataType::kFloat, {0}});
  EXPECT_EQ(SummaryLines({Summarise(0, 0, mixed), Summarise(1, 0, mixed), Summarise(3, 0, mixed),
                          Summarise(0, 1, ints), Summarise(1, 2, empty)}),
            "ranks 0-1,3 output 0 float32[2,3]: min -1 max 2 mean 0.5, 2 NaN, 1 Inf\n"
            "rank 0 output 1 int32[2]: min 3 max 4 mean 3.5, 0 NaN\n"
            "rank 1 output 2 float32[0]: no finite element, 0 NaN\n");
}

TEST(RunReport, Verdict) {
  OutputCheck fine;
  OutputCheck wrong;
  wrong.ok = false;
  EXPECT_EQ(CheckVerdict({fine, fine}, 2), "check: OK, 2 outputs of 2 ranks match");
  EXPECT_EQ(CheckVerdict({fine, wrong}, 2),
            "check: DIFFERS, 1 of 2 outputs of 2 ranks do not match");
}

TEST(RunReport, SurvivesJson) {
  const RankReport report = TwoRanks()[1];
  const auto copy = nlohmann::json::parse(nlohmann::json(report).dump()).get<RankReport>();
  EXPECT_EQ(copy.rank, 1);
  EXPECT_EQ(copy.compute_seconds, 0.25);
  EXPECT_EQ(copy.peak_hbm_bytes, 2048u);
}

}  // namespace
}  // namespace npumesh
