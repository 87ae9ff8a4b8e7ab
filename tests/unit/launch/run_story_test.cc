// A report says how a run ended, whichever way that was.
#include "launch/run/run_story.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

RunOptions Options(bool check = true) {
  RunOptions options;
  options.path = "mp";
  if (check) options.check = "golden";
  return options;
}

OutputCheck Check(int rank, bool ok) {
  OutputCheck check;
  check.rank = rank;
  check.dtype = "float32";
  check.shape = "[4]";
  check.ok = ok;
  check.atol = 2e-6;
  check.tolerance = "close";
  if (!ok) check.detail = "1 of 4 elements";
  return check;
}

RunStory Ended(std::vector<OutputCheck> checks, int code) {
  RunStory story;
  story.ended = true;
  story.outcome.exit_code = code;
  story.measured.checks = std::move(checks);
  story.measured.ranks.resize(2);
  return story;
}

RunStory Failed(int code, const std::string& message, int culprit) {
  RunStory story;
  story.ended = true;
  story.outcome = {code, message, false};
  story.culprit = culprit;
  return story;
}

json Report(const RunStory& story, const RunOptions& options) {
  return json::parse(ToJson(story, options, {{"version", "0"}}));
}

TEST(RunStory, BeforeTheEndItIsUnfinished) {
  const json report = Report({}, Options());
  EXPECT_EQ(report.at("verdict"), "unfinished");
  EXPECT_TRUE(report.at("exit_code").is_null());
  EXPECT_THAT(report.at("error"), HasSubstr("has not come to an end"));
  EXPECT_THAT(ToJunit({}, Options()), HasSubstr("errors=\"1\""));
}

TEST(RunStory, AMatchHasNobodyToBlame) {
  const json report = Report(Ended({Check(0, true), Check(1, true)}, 0), Options());
  EXPECT_EQ(report.at("verdict"), "match");
  EXPECT_EQ(report.at("exit_code"), 0);
  for (const char* key : {"error", "rank", "operator", "golden"}) {
    EXPECT_TRUE(report.at(key).is_null()) << key;
  }
  EXPECT_EQ(report.at("checks")[1].at("atol"), 2e-6);
  EXPECT_EQ(report.at("checks")[1].at("tolerance"), "close");
  EXPECT_EQ(Report(Ended({}, 0), Options(false)).at("verdict"), "not checked");
}

TEST(RunStory, ADifferenceNamesTheFirstRank) {
  const RunStory story = Ended({Check(0, true), Check(1, false), Check(2, false)}, 1);
  const json report = Report(story, Options());
  EXPECT_EQ(report.at("verdict"), "differ");
  EXPECT_EQ(report.at("exit_code"), 1);
  EXPECT_EQ(report.at("rank"), 1);
  EXPECT_TRUE(report.at("error").is_null());
  ASSERT_EQ(report.at("findings").size(), 2u);
  EXPECT_EQ(report.at("findings")[0].at("severity"), "error");
  EXPECT_EQ(report.at("findings")[0].at("rank"), 1);
  EXPECT_EQ(report.at("findings")[0].at("output"), 0);
  EXPECT_TRUE(Report(Ended({Check(0, false), Check(1, false)}, 1), Options()).at("rank").is_null());
  const std::string junit = ToJunit(story, Options());
  EXPECT_THAT(junit, HasSubstr("tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"0\""));
  EXPECT_THAT(junit, HasSubstr("<testcase classname=\"rank 0\" name=\"output 0 float32[4]\"/>"));
  EXPECT_THAT(junit, HasSubstr("<failure message=\"1 of 4 elements\">rank 1 output 0"));
}

// A weight from another package passed, and only the terminal said so.
TEST(RunStory, WarningsAreInBothReports) {
  RunStory story = Ended({Check(0, true)}, 0);
  story.warnings = {"the package mp lacks weight files"};
  const json report = Report(story, Options());
  EXPECT_EQ(report.at("verdict"), "match");
  EXPECT_EQ(
      report.at("findings"),
      json::array({{{"severity", "warning"}, {"text", "the package mp lacks weight files"}}}));
  EXPECT_THAT(ToJunit(story, Options()),
              HasSubstr("<system-err>warning: the package mp lacks weight files"));
}

TEST(RunStory, AGoldenThatDiffersIsTheVerdict) {
  RunOptions options = Options(false);
  options.golden = "whole.air";
  RunStory story = Ended({}, 1);
  story.golden = GoldenFinding{
      true, {1}, "Swish", "Swish", {"rank 1 differs first: Swish (Swish)", "its weight w: ..."}};
  const json report = Report(story, options);
  EXPECT_EQ(report.at("verdict"), "differ");
  EXPECT_EQ(report.at("rank"), 1);
  EXPECT_EQ(report.at("operator"), "Swish");
  EXPECT_EQ(report.at("golden"), (json{{"graph", "whole.air"},
                                       {"compared", true},
                                       {"differs", true},
                                       {"rank", 1},
                                       {"ranks", {1}},
                                       {"operator", "Swish"},
                                       {"type", "Swish"}}));
  EXPECT_EQ(report.at("findings")[0].at("text"),
            "rank 1 differs first: Swish (Swish); its weight w: ...");
  EXPECT_THAT(
      ToJunit(story, options),
      HasSubstr("<failure message=\"rank 1 differs first: Swish (Swish); its weight w: "
                "...\">rank 1 differs first: Swish (Swish)&#10;its weight w: ...</failure>"));
  story.golden = GoldenFinding{};
  story.outcome.exit_code = 0;
  EXPECT_EQ(Report(story, options).at("verdict"), "match");
  // Outputs that match do not excuse a golden that differs.
  story = Ended({Check(0, true)}, 1);
  story.golden = GoldenFinding{true, {}, "Add", "Add", {"all ranks hold the same wrong sum: Add"}};
  options.check = "golden";
  EXPECT_EQ(Report(story, options).at("verdict"), "differ");
  // Where no rank is known, none is blamed because of the outputs that follow from it.
  story.measured.checks = {Check(0, false), Check(1, false)};
  EXPECT_TRUE(Report(story, options).at("rank").is_null());
}

TEST(RunStory, AnErrorHasItsRankAndOperator) {
  for (const int code : {2, 3, 4, 5, 130}) {
    const RunStory story =
        Failed(code, "mp/m0.air: node \"lookup_3\" (GatherV2): indices holds 7, expected < 4", 2);
    const json report = Report(story, Options());
    EXPECT_EQ(report.at("verdict"), code == 130 ? "stopped" : "error");
    EXPECT_EQ(report.at("exit_code"), code);
    EXPECT_EQ(report.at("rank"), 2);
    EXPECT_EQ(report.at("operator"), "lookup_3");
    EXPECT_THAT(report.at("error"), HasSubstr("indices holds 7"));
    EXPECT_THAT(ToJunit(story, Options()),
                HasSubstr("<testcase classname=\"rank 2\" name=\"run\""));
  }
  const json report = Report(Failed(3, "absent.air: no such file", -1), Options());
  EXPECT_TRUE(report.at("rank").is_null());
  EXPECT_TRUE(report.at("operator").is_null());
}

TEST(RunStory, ALostRankIsBlamedNotTheOneThatNoticed) {
  const auto rank_of = [](const std::string& message) {
    RunStory story = Failed(5, message, 0);
    story.outcome.consequence = true;
    return RankToBlame(story);
  };
  EXPECT_EQ(rank_of("node \"all\" (HcomAllReduce): rank 12 of 16 (process 15303) has ended"), 12);
  EXPECT_EQ(rank_of("rank 0 waits: rank 3, whose process 77 is stopped"), 3);
  EXPECT_EQ(rank_of("a rank has ended"), -1);
  EXPECT_EQ(rank_of("timed out"), -1);
}

TEST(EndUnfinishedReports, GivesKilledRunsTheirEndAndLeavesOthersAlone) {
  const TemporaryFolder folder;
  RunOptions options = Options();
  options.report = folder.Path("r.json");
  options.junit = folder.Path("r.xml");
  const auto end = [&] {
    return EndUnfinishedReports(options.report, options.junit, 5, "lost", 2.5);
  };
  EXPECT_TRUE(end().ok());
  EXPECT_TRUE(folder.List().empty());
  ASSERT_TRUE(WriteReports({}, options, {}).ok());
  EXPECT_TRUE(end().ok());
  const json killed = json::parse(std::ifstream(options.report));
  EXPECT_EQ(killed.at("verdict"), "error");
  EXPECT_EQ(killed.at("exit_code"), 5);
  EXPECT_EQ(killed.at("error"), "lost");
  EXPECT_EQ(killed.at("options").at("path"), "mp");
  std::ostringstream junit;
  junit << std::ifstream(options.junit).rdbuf();
  EXPECT_THAT(junit.str(), HasSubstr("<error message=\"lost\">"));
  EXPECT_THAT(junit.str(), HasSubstr("time=\"2.500000\""));
  ASSERT_TRUE(WriteReports(Ended({}, 0), options, {}).ok());
  EXPECT_TRUE(end().ok());
  EXPECT_EQ(json::parse(std::ifstream(options.report)).at("exit_code"), 0);
}

// Regression: the reports of a run whose rank was killed did not know the signal, and that it
// lasted.
TEST(ExplainLostRank, TellsWhatEndedTheRankThatOthersLost) {
  const TemporaryFolder folder;
  RunOptions options = Options();
  options.report = folder.Path("r.json");
  options.junit = folder.Path("r.xml");
  const auto text_of = [](const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  };
  const auto explain = [&](int rank) {
    return ExplainLostRank(options.report, options.junit, rank, "SIGKILL ended it");
  };
  EXPECT_TRUE(explain(1).ok());
  RunStory story = Failed(5, "node \"a\" (Add): rank 1 of 2 (process 7) has ended", 0);
  story.outcome.consequence = true;
  story.seconds = 1.5;
  ASSERT_TRUE(WriteReports(story, options, {}).ok());
  ASSERT_TRUE(explain(0).ok());
  EXPECT_THAT(text_of(options.report), Not(HasSubstr("SIGKILL")));
  EXPECT_THAT(text_of(options.junit), HasSubstr("time=\"1.500000\""));
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(explain(1).ok());
    EXPECT_EQ(json::parse(text_of(options.report)).at("error"),
              "node \"a\" (Add): rank 1 of 2 (process 7) has ended; SIGKILL ended it");
    EXPECT_THAT(text_of(options.junit),
                HasSubstr("rank 1 of 2 (process 7) has ended; SIGKILL ended it\"></error>"));
  }
}

// The rank that fails is mostly one that waited; the flight records of all ranks know more.
TEST(AddBlame, TellsReportsOfAnErrorAtWhomToLookFirst) {
  const TemporaryFolder folder;
  RunOptions options = Options();
  options.report = folder.Path("r.json");
  options.junit = folder.Path("r.xml");
  const json blame = {{"ranks", {2}}, {"cause", "missing"}, {"text", "others wait for it"}};
  const auto add = [&] {
    return AddBlame(options.report, options.junit, blame, "look first at \"rank 2\"");
  };
  const auto junit = [&] {
    std::ostringstream text;
    text << std::ifstream(options.junit).rdbuf();
    return text.str();
  };
  EXPECT_TRUE(add().ok());
  ASSERT_TRUE(WriteReports(Ended({Check(0, true)}, 0), options, {}).ok());
  EXPECT_TRUE(add().ok());
  EXPECT_FALSE(json::parse(std::ifstream(options.report)).contains("look_first_at"));
  EXPECT_THAT(junit(), Not(HasSubstr("look first")));

  ASSERT_TRUE(WriteReports(Failed(5, "rank(s) 2 did not come", 0), options, {}).ok());
  ASSERT_TRUE(add().ok());
  const json report = json::parse(std::ifstream(options.report));
  EXPECT_EQ(report.at("look_first_at"), blame);
  EXPECT_EQ(report.at("rank"), 2);
  EXPECT_EQ(report.at("error"), "rank(s) 2 did not come");
  EXPECT_THAT(junit(), HasSubstr("did not come; look first at &quot;rank 2&quot;\"></error>"));
}

TEST(RunStory, OutputsThatNobodyCheckedAreSkipped) {
  RunStory story = Ended({}, 0);
  story.measured.outputs.push_back({1, 0, "float32", "[4]", -1, 1, 0, 4, 0, 0});
  EXPECT_THAT(ToJunit(story, Options(false)),
              HasSubstr("<skipped message=\"not checked: no --check\">rank 1 output 0"));
  EXPECT_EQ(Report(story, Options(false)).at("outputs")[0].at("max"), 1);
  EXPECT_THAT(ToJunit(story, Options(true)), Not(HasSubstr("skipped message")));
}

TEST(WriteReports, WritesWhatWasAskedForAndNamesWhatItCannot) {
  const TemporaryFolder folder;
  RunOptions options = Options();
  EXPECT_TRUE(WriteReports({}, options, {}).ok());
  EXPECT_TRUE(folder.List().empty());
  options.report = folder.Path("r.json");
  options.junit = folder.Path("r.xml");
  EXPECT_TRUE(WriteReports({}, options, {}).ok());
  EXPECT_THAT(folder.List(), testing::ElementsAre("r.json", "r.xml"));
  options.report = folder.Path("none/r.json");
  EXPECT_THAT(std::string(WriteReports({}, options, {}).message()), HasSubstr("--report: "));
  options.report.clear();
  options.junit = folder.Path("none/r.xml");
  EXPECT_THAT(std::string(WriteReports({}, options, {}).message()), HasSubstr("--junit: "));
}

}  // namespace
}  // namespace npumesh
