// Reports are there and true however a run ends.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/text/json.h"
#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string TextOf(const std::string& file) {
  std::ifstream stream(file);
  EXPECT_TRUE(stream.good()) << file << " is absent";
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

json JsonOf(const std::string& file) {
  const json report = json::parse(TextOf(file), nullptr, false);
  EXPECT_FALSE(report.is_discarded()) << file;
  return report;
}

class CliReport : public testing::Test {
 protected:
  // `words` with both reports, which must agree on whether all went well.
  json Run(int ranks, std::vector<std::string> words) {
    words.insert(words.begin(), "run");
    words.insert(words.end(), {"--report", folder_ / "r.json", "--junit", folder_ / "r.xml"});
    run_ = ranks == 0 ? RunAlone(words) : RunRanksOf(ranks, words);
    junit_ = TextOf(folder_ / "r.xml");
    return JsonOf(folder_ / "r.json");
  }

  const TestFolder folder_;
  CommandRun run_;
  std::string junit_;
};

TEST_F(CliReport, OfARunThatIsNotChecked) {
  folder_.PutModels(2);
  const json report = Run(2, {folder_.path()});
  EXPECT_EQ(run_.code, 0) << run_.err;
  EXPECT_EQ(report.at("verdict"), "not checked");
  EXPECT_EQ(report.at("exit_code"), 0);
  EXPECT_EQ(report.at("outputs").size(), 2u);
  EXPECT_THAT(junit_, HasSubstr("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"2\""));
  // Nothing else shows the outputs of a run without --outputs and --check.
  EXPECT_THAT(run_.out, HasSubstr("inputs: random, seed 0\n"));
  EXPECT_THAT(run_.out, HasSubstr("ranks 0-1 output 0 float32[4]: min "));
}

TEST_F(CliReport, OfOutputsThatDiffer) {
  folder_.PutModels(2);
  for (const int rank : {0, 1}) {
    folder_.PutTensor("in", rank, 1);
    folder_.PutTensor("golden", rank, rank == 0 ? 2 : 4);
  }
  const json report =
      Run(2, {folder_.path(), "--inputs", folder_ / "in", "--check", folder_ / "golden"});
  EXPECT_EQ(run_.code, 1) << run_.err;
  EXPECT_EQ(report.at("verdict"), "differ");
  EXPECT_EQ(report.at("rank"), 1);
  EXPECT_THAT(std::string(report.at("checks")[1].at("tolerance")), HasSubstr("close: float32"));
  EXPECT_EQ(report.at("checks")[1].at("needs_atol").is_null(), false);
  EXPECT_THAT(run_.out, HasSubstr("the worst element needs atol 2"));
  EXPECT_THAT(junit_, HasSubstr("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""));
}

TEST_F(CliReport, OfAGoldenThatDiffers) {
  folder_.PutModels(1);
  const json report = Run(
      0, {folder_ / "m0.air", "--golden", folder_ / "m0.air", "--inject", "corrupt:rank=0,op=Add"});
  EXPECT_EQ(run_.code, 1) << run_.out << run_.err;
  EXPECT_EQ(report.at("verdict"), "differ");
  EXPECT_EQ(report.at("operator"), "Add");
  EXPECT_EQ(report.at("golden").at("differs"), true);
  EXPECT_THAT(junit_, HasSubstr("classname=\"golden\""));
}

TEST_F(CliReport, OfWrongWords) {
  folder_.PutModels(1);
  const json report = Run(0, {folder_.path(), "--int-range", "x"});
  EXPECT_EQ(run_.code, 2) << run_.err;
  EXPECT_EQ(report.at("verdict"), "error");
  EXPECT_EQ(report.at("exit_code"), 2);
  EXPECT_THAT(std::string(report.at("error")), HasSubstr("expected NAME=LOW:HIGH"));
}

TEST_F(CliReport, OfAnInputError) {
  for (const int ranks : {0, 2}) {
    const json report = Run(ranks, {"absent.air"});
    EXPECT_EQ(run_.code, 3) << run_.err;
    EXPECT_EQ(report.at("exit_code"), 3);
    EXPECT_EQ(report.at("rank"), 0);
    EXPECT_THAT(std::string(report.at("error")), HasSubstr("absent.air: no such file"));
    EXPECT_THAT(junit_, HasSubstr("errors=\"1\""));
  }
}

TEST_F(CliReport, OfARunTimeErrorWithItsOperator) {
  folder_.PutModelsThatFailOnRank0();
  const json report = Run(2, {folder_.path()});
  EXPECT_EQ(report.at("verdict"), "error");
  EXPECT_EQ(report.at("exit_code"), run_.code);
  EXPECT_EQ(report.at("rank"), 0);
  EXPECT_EQ(report.at("operator"), "lookup");
}

// A killed job may be cut off by its launcher before a rank that is left can say what happened; the
// report then says what it said before the run.
TEST_F(CliReport, OfALostRank) {
  folder_.PutModels(2);
  const json report = Run(2, {folder_.path(), "--inject", "kill:rank=1"});
  EXPECT_NE(run_.code, 0);
  if (report.at("verdict") == "error") {
    EXPECT_EQ(report.at("exit_code"), 5);
  } else {
    EXPECT_EQ(report.at("verdict"), "unfinished");
    EXPECT_TRUE(report.at("exit_code").is_null());
  }
  EXPECT_FALSE(report.at("error").is_null());
  EXPECT_THAT(junit_, HasSubstr("errors=\"1\""));
}

// The launcher knows the end of ranks that could not say it.
TEST_F(CliReport, OfALostRankUnderLaunch) {
  folder_.PutModels(2);
  const CommandRun run =
      RunAlone({"launch", "-n", "2", "--", "run", folder_.path(), "--inject", "kill:rank=1",
                "--report", folder_ / "r.json", "--junit", folder_ / "r.xml"});
  EXPECT_EQ(run.code, 5) << run.err;
  const json report = JsonOf(folder_ / "r.json");
  EXPECT_EQ(report.at("verdict"), "error");
  EXPECT_EQ(report.at("exit_code"), 5);
  EXPECT_THAT(TextOf(folder_ / "r.xml"), HasSubstr("errors=\"1\""));
}

// Regression: a failure under `npumesh launch` left it to the user to ask for the verdict.
TEST_F(CliReport, SaysAtWhomToLookFirstUnderLaunch) {
  folder_.PutModels(2);
  const std::string record = folder_ / "records";
  const auto launch = [&](const std::string& inject) {
    setenv("NPUMESH_RECORD", record.c_str(), 1);
    setenv("HCCL_EXEC_TIMEOUT", "2", 1);
    std::vector<std::string> words = {"launch",   "-n",
                                      "2",        "--",
                                      "run",      folder_.path(),
                                      "--report", folder_ / "r.json",
                                      "--junit",  folder_ / "r.xml"};
    if (!inject.empty()) words.insert(words.end(), {"--inject", inject});
    CommandRun run = RunAlone(words);
    unsetenv("HCCL_EXEC_TIMEOUT");
    unsetenv("NPUMESH_RECORD");
    return run;
  };
  const CommandRun late = launch("delay:rank=1,ms=8000");
  EXPECT_EQ(late.code, 5) << late.err;
  EXPECT_THAT(late.err, HasSubstr("npumesh launch: look first at rank 1: "));
  EXPECT_THAT(late.err, HasSubstr("npumesh launch: next: npumesh record " + record + " --html"));
  const json report = JsonOf(folder_ / "r.json");
  EXPECT_EQ(report.at("look_first_at").at("ranks"), json::array({1}));
  EXPECT_EQ(report.at("rank"), 1);
  EXPECT_THAT(TextOf(folder_ / "r.xml"), HasSubstr("; look first at rank 1: "));
  // What went well has no verdict, and what never began not that of the job before.
  EXPECT_THAT(launch("").err, Not(HasSubstr("look first")));
  EXPECT_FALSE(JsonOf(folder_ / "r.json").contains("look_first_at"));
}

TEST_F(CliReport, IsTriedBeforeTheRun) {
  folder_.PutModels(2);
  for (const char* option : {"--report", "--junit"}) {
    const CommandRun run = RunRanksOf(
        2, {"run", folder_.path(), "--outputs", folder_ / "out", option, folder_ / "none/r"});
    EXPECT_EQ(run.code, 4) << run.err;
    EXPECT_THAT(run.err, HasSubstr(std::string(option) + ": "));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
  }
}

TEST_F(CliReport, SaysWhichToleranceWasApplied) {
  folder_.PutModels(1);
  folder_.PutTensor("in", 0, 1);
  folder_.PutTensor("golden", 0, 2.5f);
  const std::vector<std::string> words = {folder_.path(), "--inputs", folder_ / "in", "--check",
                                          folder_ / "golden"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return Run(0, more).at("checks")[0];
  };
  EXPECT_FALSE(with({"--tolerance", "exact"}).at("ok"));
  EXPECT_FALSE(with({"--tolerance", "close"}).at("ok"));
  const json given = with({"--tolerance", "0,0.5"});
  EXPECT_TRUE(given.at("ok"));
  EXPECT_EQ(given.at("atol"), 0.5);
  EXPECT_TRUE(with({"--atol", "0.5"}).at("ok"));
  std::ofstream(folder_ / "golden/tolerance.json") << R"({"outputs": {"0": {"atol": 0.5}}})";
  const json listed = with({});
  EXPECT_TRUE(listed.at("ok"));
  EXPECT_EQ(listed.at("tolerance"), "given (tolerance.json)");
  EXPECT_FALSE(with({"--tolerance", "exact"}).at("ok"));
}

TEST_F(CliReport, WrongTolerancesAreUsage) {
  for (const auto& [option, value] : {std::pair("--rtol", "-1"),
                                      {"--atol", "-0.5"},
                                      {"--rtol", "nan"},
                                      {"--tolerance", "near"}}) {
    const CommandRun run = RunAlone({"run", "m.air", option, value});
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr("from 0 on"));
    EXPECT_LT(run.err.size(), 200u) << run.err;
  }
  const CommandRun both = RunAlone({"run", "m.air", "--tolerance", "exact", "--rtol", "1"});
  EXPECT_EQ(both.code, 2) << both.err;
}

TEST_F(CliReport, FilesThatNobodyReadsAreNamed) {
  folder_.PutModels(2);
  for (const int rank : {0, 1}) {
    folder_.PutTensor("in", rank, 1);
    folder_.PutTensor("golden", rank, 2);
  }
  const auto more = [&](const std::string& name) {
    std::filesystem::copy_file(folder_ / "in/rank_0/0.npy", folder_ / name);
  };
  more("in/rank_1/7.npy");
  more("golden/rank_0/1.npy");
  Run(2, {folder_.path(), "--inputs", folder_ / "in", "--check", folder_ / "golden"});
  EXPECT_EQ(run_.code, 0) << run_.err;
  EXPECT_THAT(run_.err, HasSubstr("npumesh run: warning: " + (folder_ / "in/rank_1/7.npy")));
  EXPECT_THAT(run_.err, HasSubstr("npumesh run: warning: " + (folder_ / "golden/rank_0/1.npy")));
}

}  // namespace
}  // namespace npumesh
