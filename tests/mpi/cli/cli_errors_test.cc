// Whatever goes wrong on however many ranks: one line, and the exit code of its kind.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>

#include "graph/io/model_file.h"
#include "graph/ir/graph_builder.h"
#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

void ExpectRunFailure(const CommandRun& run, int code, const std::string& text) {
  EXPECT_EQ(run.code, code) << run.err;
  const std::vector<std::string> lines = run.FailureLines();
  ASSERT_EQ(lines.size(), 1u) << run.err;
  EXPECT_THAT(lines[0], HasSubstr("npumesh run: "));
  EXPECT_THAT(lines[0], HasSubstr(text));
}

TEST(CliErrors, WrongOption) {
  ExpectRunFailure(RunAlone({"run", "m.air", "--nope"}), 2, "see npumesh run --help");
  ExpectRunFailure(RunRanksOf(2, {"run", "m.air", "--nope"}), 2, "rank 0 of 2: ");
}

// What `run` refuses is invalid for `validate` and an error of `graph --types`.
TEST(CliErrors, ARefusedGraphIsRefusedEverywhere) {
  const TestFolder folder;
  GraphBuilder g("refused");
  const Value x = g.Data("x", {DataType::kFloat, {4}});
  const Value three = g.Const("three", Tensor::Allocate({DataType::kFloat, {3}}));
  g.Output({g.Op("Add", {{"x1", x}, {"x2", three}}, {}, "sum")});
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  ASSERT_TRUE(SaveAir(*model, folder / "export.air").ok());
  ExpectRunFailure(RunAlone({"run", folder / "export.air"}), 3, "node \"sum\" (Add)");
  const CommandRun types = RunAlone({"graph", folder / "export.air", "--types"});
  EXPECT_EQ(types.code, 3);
  EXPECT_THAT(types.err, HasSubstr("node \"sum\" (Add)"));
  EXPECT_THAT(types.out, HasSubstr("sum:0"));
  EXPECT_EQ(RunAlone({"graph", folder / "export.air"}).code, 0) << "what the file holds is shown";
  const CommandRun validate = RunAlone({"validate", folder.path()});
  EXPECT_EQ(validate.code, 1);
  EXPECT_THAT(validate.out, HasSubstr("error: export.air: npumesh cannot run it: "));
}

TEST(CliErrors, MissingFile) {
  ExpectRunFailure(RunAlone({"run", "absent.air"}), 3, "absent.air: no such file or folder");
  ExpectRunFailure(RunRanksOf(2, {"run", "absent.air"}), 3, "rank 0 of 2: absent.air");
}

TEST(CliErrors, OneRankWithoutAFileStopsAll) {
  const TestFolder folder;
  folder.PutModels(1);
  ExpectRunFailure(
      RunRanksOf(2, {"run", folder.path()}), 3,
      "rank 1 of 2: " + folder.path() + ": no .air whose name ends in 1; found m0.air");
}

TEST(CliErrors, DamagedModel) {
  const TestFolder folder;
  folder.PutModels(2);
  std::ofstream(folder / "m1.air", std::ios::trunc) << "this is no model";
  ExpectRunFailure(RunRanksOf(2, {"run", folder.path()}), 3, "rank 1 of 2: ");
}

TEST(CliErrors, WrongInputShapeOnOneRank) {
  const TestFolder folder;
  folder.PutModels(2);
  folder.PutTensor("in", 0, 1);
  folder.PutTensor("in", 1, 1, 5);
  ExpectRunFailure(RunRanksOf(2, {"run", folder.path(), "--inputs", folder / "in"}), 3,
                   "input 0 (x): the graph declares float32[4], given is float32[5]");
}

TEST(CliErrors, MissingGoldenOnOneRank) {
  const TestFolder folder;
  folder.PutModels(2);
  folder.PutTensor("golden", 0, 2);
  std::filesystem::create_directories(folder / "golden/rank_1");
  ExpectRunFailure(RunRanksOf(2, {"run", folder.path(), "--check", folder / "golden"}), 3,
                   "rank 1 of 2: golden of output 0");
}

// Regression: what is wrong with the golden graph was noticed after the run.
TEST(CliErrors, AGoldenGraphThatCannotBeIsRefusedBeforeTheRun) {
  const TestFolder folder;
  folder.PutModels(2);
  const TestFolder others;
  others.PutProducts(1);
  const TestFolder many;
  many.PutModels(3);
  const std::pair<std::string, std::string> cases[] = {
      {"absent.air", "--golden: absent.air: no such file or folder"},
      {others / "m0.air", "is it the unsharded graph of the same model?"},
      {folder / "m0.air", "the golden graph has collectives"},
      {many.path(), "expected the unsharded graph, which one rank runs"}};
  for (const auto& [golden, said] : cases) {
    const CommandRun run = RunRanksOf(2, {"run", folder.path(), "--golden", golden});
    ExpectRunFailure(run, 3, said);
    EXPECT_EQ(run.out, "") << golden;
  }
}

TEST(CliErrors, TooFewRanks) {
  const TestFolder folder;
  folder.PutModels(3);
  ExpectRunFailure(RunRanksOf(2, {"run", folder.path()}), 3, "start 3 ranks");
}

// Rank 1 waits in the collective that rank 0 never reaches.
TEST(CliErrors, AnOperatorThatFailsOnOneRankFreesTheOthers) {
  const TestFolder folder;
  folder.PutModelsThatFailOnRank0();
  const CommandRun run = RunRanksOf(2, {"run", folder.path()});
  EXPECT_NE(run.code, 0);
  const std::vector<std::string> lines = run.FailureLines();
  ASSERT_EQ(lines.size(), 1u) << run.err;
  EXPECT_THAT(lines[0], HasSubstr("npumesh run: rank 0 of 2: "));
  EXPECT_THAT(lines[0], HasSubstr("lookup"));
}

TEST(CliErrors, StartThatContradictsTheLauncher) {
  ASSERT_EQ(setenv("LOCAL_WORLD_SIZE", "3", 1), 0);
  const CommandRun run = RunRanksOf(2, {"run", "m.air"});
  unsetenv("LOCAL_WORLD_SIZE");
  ExpectRunFailure(run, 3, "rank 0 of 2: LOCAL_WORLD_SIZE is 3");
}

TEST(CliErrors, LaunchHidesWhatMpirunRepeats) {
  const CommandRun run = RunAlone({"launch", "-n", "2", "--", "run", "absent.air"});
  EXPECT_EQ(run.code, 3);
  EXPECT_EQ(run.err, "npumesh run: rank 0 of 2: absent.air: no such file or folder\n");
}

}  // namespace
}  // namespace npumesh
