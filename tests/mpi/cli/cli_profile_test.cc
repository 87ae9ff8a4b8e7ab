// Profiles as a user asks for them: which files a run leaves, what they sum up to, and what is said
// when something is missing.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>

#include "launch/mpirun/child_process.h"
#include "runtime/base/text/json.h"
#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr int kRanks = 2;
constexpr int kSteps = 3;
constexpr const char* kParts[] = {"computing_ns", "overlapped_ns", "moving_ns",
                                  "waiting_ns",   "preparing_ns",  "idle_ns"};

// A program with its words, in a working folder.
CommandRun RunIn(const std::string& folder, std::vector<std::string> words) {
  words.insert(words.begin(), {"/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", folder});
  CommandRun run;
  const Result<int> code = RunChild(
      words, [&](std::string_view bytes) { run.out += bytes; },
      [&](std::string_view bytes) { run.err += bytes; });
  EXPECT_TRUE(code.ok()) << code.status().message();
  run.code = code.ok() ? *code : -1;
  return run;
}

bool PythonIsThere() {
  return RunIn("/", {"/bin/sh", "-c", "command -v python3"}).code == 0;
}

class CliProfile : public testing::Test {
 protected:
  CliProfile() { folder_.PutChains(kRanks); }
  ~CliProfile() override { unsetenv("ASCEND_WORK_PATH"); }

  // The chains, launched with more words; the working folder is that of the test.
  CommandRun Launch(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {
        NPUMESH_COMMAND, "launch", "-n", std::to_string(kRanks), "--", "run", folder_.path()};
    words.insert(words.end(), more.begin(), more.end());
    return RunIn(folder_.path(), words);
  }

  // What `npumesh profile --json` says of a folder.
  json Facts(const std::string& folder) const {
    const CommandRun run = RunAlone({"profile", folder, "--json", "--no-limits"});
    EXPECT_EQ(run.code, 0) << run.err;
    const json facts = json::parse(run.out, nullptr, false);
    EXPECT_FALSE(facts.is_discarded()) << run.out;
    return facts;
  }

  // Each rank has its profile and one folder of each kind of the vendor's files.
  void ExpectFilesOfAllRanks(const std::string& folder) const {
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string file = folder + "/rank_" + std::to_string(rank) + ".npprof";
      EXPECT_TRUE(fs::exists(file)) << file;
    }
    EXPECT_EQ(EntriesOf(folder + "/msprof"), static_cast<size_t>(kRanks));
    EXPECT_EQ(EntriesOf(folder + "/torch"), static_cast<size_t>(kRanks));
  }

  // Files and folders in a folder, hidden ones too; 0 without it.
  static size_t EntriesOf(const std::string& folder) {
    if (!fs::exists(folder)) return 0;
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }

  const TestFolder folder_;
};

std::string FindingsOf(const json& facts) {
  std::string text;
  for (const json& finding : facts.at("findings")) text += std::string(finding.at("text")) + "\n";
  return text;
}

// How many finished steps of a rank the facts have.
size_t WholeSteps(const json& facts, int rank) {
  size_t count = 0;
  for (const json& step : facts.at("steps")) {
    if (step.at("rank") == rank && step.at("whole") == true) ++count;
  }
  return count;
}

// The parts of a step, which never overlap, make up its wall time; 2 % are left to rounding.
void ExpectPartsMakeUpTheWall(const json& owner) {
  int64_t sum = 0;
  for (const char* part : kParts) sum += owner.at(part).get<int64_t>();
  const auto wall = owner.at("wall_ns").get<int64_t>();
  EXPECT_GT(wall, 0) << owner.dump();
  EXPECT_LE(std::abs(sum - wall), wall / 50) << owner.dump();
}

TEST_F(CliProfile, EachRankLeavesItsFiles) {
  const CommandRun run = Launch({"--profile", "prof", "--steps", std::to_string(kSteps)});
  ASSERT_EQ(run.code, 0) << run.err;
  ExpectFilesOfAllRanks(folder_ / "prof");
}

TEST_F(CliProfile, AnotherReaderTakesTheVendorsFiles) {
  if (!PythonIsThere()) GTEST_SKIP() << "no python3";
  const CommandRun run = Launch({"--profile", "prof", "--steps", std::to_string(kSteps)});
  ASSERT_EQ(run.code, 0) << run.err;
  const CommandRun read = RunIn(folder_.path(), {MSPROF_READER, "prof", std::to_string(kRanks)});
  EXPECT_EQ(read.code, 0) << read.out << read.err;
}

TEST_F(CliProfile, ThePartsOfEachStepSumUp) {
  const CommandRun run = Launch({"--profile", "prof", "--steps", std::to_string(kSteps)});
  ASSERT_EQ(run.code, 0) << run.err;
  const json facts = Facts(folder_ / "prof");
  EXPECT_EQ(facts.at("verdict"), "whole") << FindingsOf(facts);
  EXPECT_EQ(facts.at("world_size"), kRanks);
  EXPECT_THAT(facts.at("steps"), SizeIs(kRanks * kSteps));
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(WholeSteps(facts, rank), static_cast<size_t>(kSteps));
  }
  for (const json& step : facts.at("steps")) ExpectPartsMakeUpTheWall(step);
  for (const json& rank : facts.at("ranks")) ExpectPartsMakeUpTheWall(rank);
}

// The report says that a rank's steps, and the making of the plan in the first of them, took
// another time than the profile says: by how much, as a share; the most of all ranks.
double DifferenceOf(const json& report, const json& facts) {
  double most = 0;
  for (size_t rank = 0; rank < kRanks; ++rank) {
    const json& said = report.at("ranks")[rank];
    const double seconds =
        said.at("total_seconds").get<double>() + said.at("compile_seconds").get<double>();
    const double wall = facts.at("ranks")[rank].at("wall_ns").get<double>() / 1e9;
    most = std::max(most, std::abs(seconds - wall) / seconds);
  }
  return most;
}

// The delays make each step so long that what lies between the two clocks does not count, unless
// the rank loses its processor just there: of ten runs one must agree.
TEST_F(CliProfile, TheStepsLastAsLongAsTheRunSays) {
  double least = 1;
  for (int trial = 0; trial < 10 && least > 0.02; ++trial) {
    const CommandRun run =
        Launch({"--profile", "prof", "--steps", "20", "--report", "report.json", "--inject",
                "delay:rank=0,op=Relu,ms=20", "--inject", "delay:rank=1,op=Relu,ms=20"});
    ASSERT_EQ(run.code, 0) << run.err;
    const CommandRun report_file = RunIn(folder_.path(), {"/bin/cat", "report.json"});
    const json report = json::parse(report_file.out, nullptr, false);
    ASSERT_FALSE(report.is_discarded()) << report_file.out;
    least = std::min(least, DifferenceOf(report, Facts(folder_ / "prof")));
  }
  EXPECT_LE(least, 0.02);
}

// A run whose steps are short packs its operators; none of them may get lost on the way.
TEST_F(CliProfile, EveryOperatorRanOnAllRanksInAllSteps) {
  const CommandRun run = Launch({"--profile", "prof", "--steps", std::to_string(kSteps)});
  ASSERT_EQ(run.code, 0) << run.err;
  const json operators = Facts(folder_ / "prof").at("operators");
  EXPECT_THAT(operators, Not(IsEmpty()));
  for (const json& one : operators) EXPECT_EQ(one.at("count"), kRanks * kSteps) << one.dump();
}

TEST_F(CliProfile, EveryCollectiveHasAllItsRanks) {
  const CommandRun run = Launch({"--profile", "prof", "--steps", std::to_string(kSteps)});
  ASSERT_EQ(run.code, 0) << run.err;
  const json facts = Facts(folder_ / "prof");
  ASSERT_THAT(facts.at("collectives"), SizeIs(1));
  const json& one = facts.at("collectives")[0];
  EXPECT_EQ(one.at("calls"), kSteps);
  EXPECT_EQ(one.at("spans"), kSteps * kRanks);
  // Each member reduces float32[3,20].
  EXPECT_EQ(one.at("bytes"), kSteps * kRanks * 3 * 20 * 4);
  EXPECT_EQ(facts.at("clock").at("collectives_checked"), kSteps);
  EXPECT_EQ(facts.at("clock").at("effects_before_causes"), 0);
}

TEST_F(CliProfile, SaysWhatALimitLeftOut) {
  const CommandRun run =
      Launch({"--profile", "prof", "--profile-max-bytes", "20kB", "--steps", "150"});
  ASSERT_EQ(run.code, 0) << run.err;
  const json facts = Facts(folder_ / "prof");
  EXPECT_EQ(facts.at("verdict"), "partial");
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string name = std::to_string(rank);
    EXPECT_THAT(FindingsOf(facts), HasSubstr("rank " + name + " lost "));
    // What spans are about, and the end, are written all the same.
    EXPECT_LT(fs::file_size(folder_ / ("prof/rank_" + name + ".npprof")), 10'500u);
  }
  EXPECT_THAT(FindingsOf(facts), HasSubstr("because its file was: its sums are too low"));
}

// The delay gives the profiler the time to write what was before it.
TEST_F(CliProfile, OfARankThatIsKilledIsReadAndNamed) {
  const CommandRun run =
      Launch({"--profile", "prof", "--steps", "9", "--inject", "delay:rank=1,op=Relu,ms=200,step=5",
              "--inject", "kill:rank=1,step=6"});
  ASSERT_EQ(run.code, 5) << run.err;
  const json facts = Facts(folder_ / "prof");
  EXPECT_EQ(facts.at("verdict"), "partial");
  EXPECT_THAT(FindingsOf(facts), AllOf(HasSubstr("the profile of rank 1 ("),
                                       HasSubstr("has no end: the rank was killed or still runs")));
  EXPECT_GE(WholeSteps(facts, 1), 5u);
  EXPECT_LE(WholeSteps(facts, 1), 6u);
  const CommandRun shown = RunAlone({"profile", folder_ / "prof", "--no-limits"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("warning: the profile of rank 1 ("));
}

TEST_F(CliProfile, AFolderThatCannotBeMadeIsOneLine) {
  const std::string file = folder_ / "m0.air";
  const CommandRun run = Launch({"--profile", file + "/prof"});
  EXPECT_EQ(run.code, 4) << run.err;
  ASSERT_THAT(run.FailureLines(), SizeIs(1)) << run.err;
  EXPECT_THAT(run.FailureLines()[0], AllOf(HasSubstr("--profile"), HasSubstr(file)));
}

TEST_F(CliProfile, AFolderWithoutProfilesIsOneLine) {
  const CommandRun run = RunAlone({"profile", folder_.path()});
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_THAT(run.out, IsEmpty());
  ASSERT_THAT(run.FailureLines(), SizeIs(1)) << run.err;
  EXPECT_THAT(run.FailureLines()[0], HasSubstr(folder_.path()));
}

TEST_F(CliProfile, OfASessionIsInTheWorkingFolder) {
  const CommandRun run =
      Launch({"--steps", std::to_string(kSteps), "-o", "session.profiling_mode=true", "-o",
              "session.profiling_options=task_trace"});
  ASSERT_EQ(run.code, 0) << run.err;
  ExpectFilesOfAllRanks(folder_ / "profiling");
  const json facts = Facts(folder_ / "profiling");
  EXPECT_EQ(facts.at("verdict"), "whole") << FindingsOf(facts);
  EXPECT_THAT(facts.at("steps"), SizeIs(kRanks * kSteps));
}

TEST_F(CliProfile, OfASessionIsInTheWorkPath) {
  setenv("ASCEND_WORK_PATH", (folder_ / "work").c_str(), 1);
  const CommandRun run =
      Launch({"--steps", std::to_string(kSteps), "-o", "session.profiling_mode=true", "-o",
              "session.profiling_options=task_trace"});
  ASSERT_EQ(run.code, 0) << run.err;
  ExpectFilesOfAllRanks(folder_ / "work/profiling");
  EXPECT_FALSE(fs::exists(folder_ / "profiling"));
}

}  // namespace
}  // namespace npumesh
