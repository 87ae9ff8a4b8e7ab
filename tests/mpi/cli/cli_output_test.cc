// What a run leaves behind: outputs, verdict, report.
#include <gmock/gmock.h>

#include <fstream>

#include "graph/io/npy.h"
#include "runtime/base/text/json.h"
#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

TEST(CliOutput, OutputsOfOneRunAreTheGoldensOfTheNext) {
  const TestFolder folder;
  folder.PutModels(2);
  const CommandRun first = RunRanksOf(2, {"run", folder.path(), "--seed", "3", "--steps", "2",
                                          "--per-rank-inputs", "--outputs", folder / "out"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("not the time of an NPU"));
  ASSERT_TRUE(std::filesystem::exists(folder / "out/step_1/rank_1/0.npy"));
  const CommandRun second =
      RunRanksOf(2, {"run", folder.path(), "--seed", "3", "--steps", "2", "--per-rank-inputs",
                     "--check", folder / "out", "--rtol", "0", "--atol", "0"});
  EXPECT_EQ(second.code, 0) << second.out << second.err;
  EXPECT_THAT(second.out, HasSubstr("check: OK, 2 outputs of 2 ranks match"));
  const CommandRun other = RunRanksOf(
      2, {"run", folder.path(), "--seed", "4", "--steps", "2", "--check", folder / "out"});
  EXPECT_EQ(other.code, 1) << other.out << other.err;
  EXPECT_THAT(other.out, HasSubstr("DIFFERS"));
}

TEST(CliOutput, ADifferenceOnOneRankIsTheExitCodeOfAll) {
  const TestFolder folder;
  folder.PutModels(2);
  for (const int rank : {0, 1}) {
    folder.PutTensor("in", rank, static_cast<float>(rank + 1));
    folder.PutTensor("golden", rank, rank == 0 ? 3 : 4);
  }
  const CommandRun run = RunRanksOf(2, {"run", folder.path(), "--inputs", folder / "in", "--check",
                                        folder / "golden", "--report", folder / "report.json"});
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("rank 0 output 0 float32[4] max abs diff 0 OK\n"));
  EXPECT_THAT(run.out, HasSubstr("rank 1 output 0 float32[4] max abs diff 1 at [0] of step 0 "
                                 "DIFFERS: 4 of 4 elements, [0] is 3, expected 4\n"));
  const auto report = nlohmann::json::parse(std::ifstream(folder / "report.json"));
  EXPECT_EQ(report.at("verdict"), "differ");
  EXPECT_EQ(report.at("ranks").size(), 2u);
  EXPECT_EQ(report.at("ranks")[1].at("collectives"), 1);
  EXPECT_EQ(report.at("options").at("inputs"), folder / "in");
}

// Rank 0 speaks for all ranks of npumesh's own commands; others say who they are.
TEST(CliOutput, LaunchPrefixesLinesOnlyWhereRanksDiffer) {
  const TestFolder folder;
  folder.PutModels(2);
  const CommandRun run = RunAlone({"launch", "-n", "2", "--", "run", folder.path()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\n1 step; all times"));
  EXPECT_THAT(run.out, testing::Not(HasSubstr("[0]")));
}

}  // namespace
}  // namespace npumesh
