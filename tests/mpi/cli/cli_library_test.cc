// Operators of a user's own, from a shared library, in every command that takes one.
#include <gmock/gmock.h>
#include <signal.h>

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

// y = allreduce(crash(x)) for x float32[4], with a step before the crash.
void PutCrash(const TestFolder& folder) {
  GraphBuilder g("crash");
  const Value x = g.Data("x", {DataType::kFloat, {4}});
  const Value same = g.Op("Crash", {{"x", x}}, {}, "first");
  const Value sum = g.Op(
      "HcomAllReduce", {{"x", same}},
      {{"reduction", AttrValue::String("sum")}, {"group", AttrValue::String("hccl_world_group")}});
  g.Output({sum});
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  ASSERT_TRUE(SaveAir(*model, folder / "m.air").ok());
}

// Of lines on standard error those that name a step.
std::vector<std::string> CrashLines(const CommandRun& run) {
  std::vector<std::string> lines;
  for (const std::string& line : run.FailureLines()) {
    if (line.find(" in operator ") != std::string::npos) lines.push_back(line);
  }
  return lines;
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

TEST(CliLibrary, AlgorithmsOfOnesOwnAreMeasuredAndRun) {
  const CommandRun bench = RunRanksOf(2, {"bench", "allreduce", "-b", "64", "-e", "64", "-n", "2",
                                          "--algorithm-library", DOUBLING_LIBRARY});
  EXPECT_EQ(bench.code, 0) << bench.err;
  EXPECT_THAT(bench.out, HasSubstr("doubling"));
  const TestFolder folder;
  folder.PutModels(2);
  for (int rank = 0; rank < 2; ++rank) {
    folder.PutTensor("in", rank, static_cast<float>(rank + 3));
    folder.PutTensor("golden", rank, 3 + 4);
  }
  const CommandRun run =
      RunRanksOf(2, {"run", folder.path(), "--algorithm-library", DOUBLING_LIBRARY, "--inputs",
                     folder / "in", "--check", folder / "golden"});
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST(CliLibrary, AlgorithmsThatDoNotLoadAreSaidOnce) {
  const TestFolder folder;
  folder.PutModels(2);
  ExpectFailure(RunRanksOf(2, {"run", folder.path(), "--algorithm-library", POLYNOMIAL_LIBRARY}), 3,
                "it has no symbol NpumeshAlgorithmAbi");
  ExpectFailure(RunRanksOf(2, {"bench", "allreduce", "--algorithm-library", "absent.so"}), 2,
                "algorithm library absent.so: ");
}

// The ranks die of the signal also in a build with sanitizers, which report it and end with code 1
// otherwise.
class CliCrash : public testing::TestWithParam<std::pair<int, std::string>> {
 protected:
  void SetUp() override {
    const char* options = std::getenv("ASAN_OPTIONS");
    setenv("ASAN_OPTIONS",
           ((options == nullptr ? "" : std::string(options) + ":") +
            "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0")
               .c_str(),
           1);
  }
};

TEST_P(CliCrash, NamesRankOperatorAndStepAndDiesOfTheSignal) {
  const auto& [signal, name] = GetParam();
  const TestFolder folder;
  PutCrash(folder);
  folder.PutTensor("in", 0, 0);
  folder.PutTensor("in", 1, static_cast<float>(signal));
  const CommandRun run = RunRanksOf(
      2, {"run", folder / "m.air", "--op-library", CRASHING_LIBRARY, "--inputs", folder / "in"});
  EXPECT_EQ(run.code, kOfMpich ? signal : 128 + signal) << run.err;
  EXPECT_THAT(CrashLines(run),
              testing::ElementsAre("npumesh run: rank 1 of 2: " + name +
                                   " in operator Crash, node \"first\", step 0 of 2 of the graph"))
      << run.err;
}

INSTANTIATE_TEST_SUITE_P(Signals, CliCrash,
                         testing::Values(std::pair(SIGSEGV, "SIGSEGV"), std::pair(SIGBUS, "SIGBUS"),
                                         std::pair(SIGFPE, "SIGFPE"), std::pair(SIGILL, "SIGILL"),
                                         std::pair(SIGABRT, "SIGABRT")),
                         [](const auto& test) { return test.param.second; });

TEST(CliLibrary, AnOperatorThatDoesNotCrashSaysNothing) {
  const TestFolder folder;
  PutCrash(folder);
  for (int rank = 0; rank < 2; ++rank) folder.PutTensor("in", rank, 0);
  const CommandRun run = RunRanksOf(
      2, {"run", folder / "m.air", "--op-library", CRASHING_LIBRARY, "--inputs", folder / "in"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(CrashLines(run), testing::IsEmpty());
}

}  // namespace
}  // namespace npumesh
