// Operators of a user's own, from a shared library, in every command that takes one.
#include <gmock/gmock.h>

#include "graph/io/model_file.h"
#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// y = allreduce(1 + 2 x) for x float32[4].
void PutPolynomial(const TestFolder& folder) {
  GraphBuilder g("polynomial");
  const Value x = g.Data("x", {DataType::kFloat, {4}});
  const Value p = g.Op("Polynomial", {{"x", x}}, {{"coefficients", AttrValue::Floats({1, 2})}});
  g.Output({g.Op("HcomAllReduce", {{"x", p}},
                 {{"reduction", AttrValue::String("sum")},
                  {"group", AttrValue::String("hccl_world_group")}})});
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  ASSERT_TRUE(SaveAir(*model, folder / "m.air").ok());
}

void ExpectFailure(const CommandRun& run, int code, const std::string& text) {
  EXPECT_EQ(run.code, code) << run.err;
  const std::vector<std::string> lines = run.FailureLines();
  ASSERT_EQ(lines.size(), 1u) << run.err;
  EXPECT_THAT(lines[0], HasSubstr(text));
}

TEST(CliLibrary, TwoRanksRunItsOperator) {
  const TestFolder folder;
  PutPolynomial(folder);
  for (int rank = 0; rank < 2; ++rank) {
    folder.PutTensor("in", rank, static_cast<float>(rank + 3));
    folder.PutTensor("golden", rank, (1 + 2 * 3) + (1 + 2 * 4));
  }
  const CommandRun run = RunRanksOf(2, {"run", folder / "m.air", "--op-library", POLYNOMIAL_LIBRARY,
                                        "--inputs", folder / "in", "--check", folder / "golden"});
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST(CliLibrary, WithoutItTheOperatorIsUnknown) {
  const TestFolder folder;
  PutPolynomial(folder);
  const CommandRun run = RunAlone({"run", folder / "m.air"});
  ExpectFailure(run, 3, "1 operator type cannot be run");
  EXPECT_THAT(run.err, HasSubstr("\n  Polynomial: 1 node"));
}

TEST(CliLibrary, OtherCommandsKnowItToo) {
  const TestFolder folder;
  PutPolynomial(folder);
  const CommandRun ops = RunAlone({"ops", "Polynomial", "--op-library", POLYNOMIAL_LIBRARY});
  EXPECT_EQ(ops.code, 0) << ops.err;
  EXPECT_THAT(ops.out, StartsWith("Polynomial(x; coefficients:floats) -> y\n"));
  EXPECT_THAT(ops.out, HasSubstr("traits      elementwise\n"));
  const CommandRun other = RunAlone({"ops", "Polynom"});
  EXPECT_EQ(other.code, 3);
  EXPECT_THAT(other.err, HasSubstr("there is no operator \"Polynom\""));
  EXPECT_EQ(RunAlone({"graph", folder / "m.air", "--op-library", POLYNOMIAL_LIBRARY}).code, 0);
  const std::string error = "npumesh cannot run it";
  const CommandRun without = RunAlone({"validate", folder.path()});
  EXPECT_EQ(without.code, 1);
  EXPECT_THAT(without.out, HasSubstr(error));
  EXPECT_THAT(RunAlone({"validate", folder.path(), "--op-library", POLYNOMIAL_LIBRARY}).out,
              Not(HasSubstr(error)));
}

TEST(CliLibrary, WhatIsNoLibraryIsSaidOnce) {
  const TestFolder folder;
  PutPolynomial(folder);
  ExpectFailure(RunRanksOf(2, {"run", folder / "m.air", "--op-library", "absent.so"}), 3,
                "rank 0 of 2: operator library: ");
  ExpectFailure(RunAlone({"run", folder / "m.air", "--op-library", folder / "m.air"}), 3,
                "cannot be loaded as a shared library");
  ExpectFailure(RunAlone({"ops", "--op-library", "absent.so"}), 3, "absent.so");
}

}  // namespace
}  // namespace npumesh
