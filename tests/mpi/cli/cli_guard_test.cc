// npumesh run --guard: what an operator of a library does wrong is named, on the rank that does it.
#include <gmock/gmock.h>

#include "graph/io/model_file.h"
#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// y = allreduce(careless(x)) for x float32[4].
void PutCareless(const TestFolder& folder, const std::string& mistake, int64_t at) {
  GraphBuilder g("careless");
  const Value x = g.Data("x", {DataType::kFloat, {4}});
  const Value y =
      g.Op("Careless", {{"x", x}},
           {{"mistake", AttrValue::String(mistake)}, {"at", AttrValue::Int(at)}}, "own");
  g.Output({g.Op("HcomAllReduce", {{"x", y}},
                 {{"reduction", AttrValue::String("sum")},
                  {"group", AttrValue::String("hccl_world_group")}})});
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  ASSERT_TRUE(SaveAir(*model, folder / "m.air").ok());
}

// Rank 1 makes the mistake.
CommandRun RunCareless(const TestFolder& folder, bool guard) {
  folder.PutTensor("in", 0, 0);
  folder.PutTensor("in", 1, 1);
  std::vector<std::string> words = {"run",      folder / "m.air", "--op-library", CARELESS_LIBRARY,
                                    "--inputs", folder / "in"};
  if (guard) words.push_back("--guard");
  return RunRanksOf(2, words);
}

struct Mistake {
  std::string name;
  int64_t at;
  std::string told;
};

class CliGuarded : public testing::TestWithParam<Mistake> {};

TEST_P(CliGuarded, NamesRankNodeAndByte) {
  const TestFolder folder;
  PutCareless(folder, GetParam().name, GetParam().at);
  const CommandRun run = RunCareless(folder, true);
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_THAT(run.FailureLines(),
              ElementsAre("npumesh run: rank 1 of 2: " + folder / "m.air" +
                          ": node \"own\" (Careless): step 0 of 2: " + GetParam().told))
      << run.err;
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, CliGuarded,
    testing::Values(
        Mistake{"past", 0,
                "it wrote 1 byte outside of its outputs: byte 16 of output 0 (float32[4], 16 "
                "bytes), which is memory of no tensor (a5 became 07)"},
        Mistake{"past", 1200,
                "it wrote 1 byte outside of its outputs: byte 1216 of output 0 (float32[4], 16 "
                "bytes), which is memory of no tensor (a5 became 07)"},
        Mistake{"before", 2,
                "it wrote 1 byte outside of its outputs: byte -2 of output 0 (float32[4], 16 "
                "bytes), which is memory of no tensor (a5 became 07)"},
        Mistake{"input", 6,
                "it wrote 1 byte outside of its outputs: byte 6 of input 0 (float32[4], 16 bytes), "
                "which is byte 6 of input \"x\" of the graph (80 became 07)"},
        Mistake{"scratch", 3,
                "it wrote 1 byte outside of its outputs: byte 67 of scratch memory, of which it "
                "asked for 64 (a5 became 07)"},
        Mistake{"unwritten", 3, "it does not write element 3 of output 0 (float32[4], 16 bytes)"},
        Mistake{"unset", 2,
                "element 2 of output 0 (float32[4], 16 bytes) depends on what scratch memory or "
                "outputs held before the step: it reads there what it has not written"},
        Mistake{"unsteady", 0,
                "it gives other outputs when it runs again with the same inputs; an operator for "
                "which that is right says pure = false"}),
    [](const auto& test) { return test.param.name + std::to_string(test.param.at); });

// It ran to "0 NaN, min 0 max 0" and exit code 0.
TEST(CliGuard, WithoutItAWritePastAnOutputIsNoticed) {
  const TestFolder folder;
  PutCareless(folder, "past", 1199);
  const CommandRun run = RunCareless(folder, false);
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_THAT(
      run.FailureLines(),
      ElementsAre("npumesh run: rank 1 of 2: " + folder / "m.air" +
                  ": node \"own\" (Careless): it wrote past the end of output 0 (float32[4], "
                  "16 bytes), 1200 bytes too far; run --guard checks all that it writes and "
                  "reads"))
      << run.err;
}

TEST(CliGuard, WithoutItOtherMistakesAreNot) {
  const TestFolder folder;
  PutCareless(folder, "unwritten", 3);
  EXPECT_EQ(RunCareless(folder, false).code, 0);
}

TEST(CliGuard, SaysWhatItChecked) {
  const TestFolder folder;
  PutCareless(folder, "none", 0);
  const CommandRun run = RunCareless(folder, true);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.FailureLines(), IsEmpty());
  EXPECT_THAT(run.out,
              HasSubstr("guard: 4 operator runs checked, 2 of them twice; nothing else was "
                        "written\n"));
}

}  // namespace
}  // namespace npumesh
