#include "launch/run/run_report.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<RankReport> TwoRanks() {
  RankReport fast;
  fast.compute_seconds = 0.001;
  RankReport slow;
  slow.rank = 1;
  slow.compute_seconds = 0.25;
  slow.peak_hbm_bytes = 2048;
  return {fast, slow};
}

TEST(RunReport, TheTableMarksTheSlowestRankAndSaysWhatTimesAre) {
  const std::string table = ReportTable(TwoRanks(), 3);
  EXPECT_THAT(table, HasSubstr("250.000"));
  EXPECT_THAT(table, HasSubstr("2.0  <- slowest\n"));
  EXPECT_THAT(table, HasSubstr("3 steps; all times are wall-clock time on this machine's CPU"));
  EXPECT_EQ(SlowestRank(TwoRanks()), 1u);
  EXPECT_THAT(ReportTable({TwoRanks()[0]}, 1), Not(HasSubstr("slowest")));
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
