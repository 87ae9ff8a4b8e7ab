// Options, graph dumps and the doctor as a user meets them.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

// Names of all files below a folder, sorted.
std::vector<std::string> FilesBelow(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CliConfig, WrongOptionsAreOneErrorForAllRanks) {
  const TestFolder folder;
  folder.PutModels(2);
  const CommandRun run = RunRanksOf(2, {"run", folder.path(), "-o", "debug.graph_dump.typ=txt"});
  EXPECT_EQ(run.code, 3) << run.err;
  ASSERT_THAT(run.FailureLines(), SizeIs(1));
  EXPECT_THAT(run.FailureLines()[0], HasSubstr("did you mean debug.graph_dump.type?"));
  std::ofstream(folder / "config.json") << R"({"dump_config": {"dump_mode": "both"}})";
  const CommandRun file = RunAlone({"run", folder / "m0.air", "--config", folder / "config.json"});
  EXPECT_EQ(file.code, 3) << file.err;
  EXPECT_THAT(file.err, HasSubstr("config.json: dump_config.dump_mode: \"both\" is refused"));
}

TEST(CliConfig, EachRankDumpsBothGraphs) {
  const TestFolder folder;
  folder.PutModels(2);
  const CommandRun run =
      RunRanksOf(2, {"run", folder.path(), "-o", "debug.graph_dump.type=pbtxt", "-o",
                     "debug.graph_dump.path=" + folder / "dumps", "-o", "ge_config.oo_level=O1"});
  EXPECT_EQ(run.code, 0) << run.err;
  const std::vector<std::string> files = FilesBelow(folder / "dumps");
  ASSERT_THAT(files, SizeIs(4));
  EXPECT_THAT(files[0], HasSubstr("dynamo_optimized_"));
  EXPECT_THAT(files[0], HasSubstr("_rank_0_pid_"));
  EXPECT_THAT(files[3], HasSubstr("dynamo_original_"));
  EXPECT_THAT(files[3], HasSubstr("_rank_1_pid_"));
}

// The lines that docs/graph_dump.md greps for: name fields of operators, and of nothing else.
void ExpectOperatorNames(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  size_t names = 0;
  size_t operators = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with("ge_proto")) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("    name:")) ++names;
      if (line.starts_with("  op {")) ++operators;
    }
  }
  EXPECT_GT(operators, 0u);
  EXPECT_EQ(names, operators);
}

TEST(CliConfig, StagesAreDumped) {
  const TestFolder folder;
  folder.PutModels(2);
  ASSERT_EQ(setenv("DUMP_GE_GRAPH", "3", 1), 0);
  ASSERT_EQ(setenv("DUMP_GRAPH_PATH", (folder / "ge").c_str(), 1), 0);
  ASSERT_EQ(setenv("DUMP_GRAPH_LEVEL", "3", 1), 0);
  const CommandRun run = RunRanksOf(2, {"run", folder.path()});
  for (const char* name : {"DUMP_GE_GRAPH", "DUMP_GRAPH_PATH", "DUMP_GRAPH_LEVEL"}) unsetenv(name);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(FilesBelow(folder / "ge"),
              testing::ElementsAre(
                  "ge_onnx_00000000_graph_0_Build.pbtxt", "ge_onnx_00000000_graph_0_Build.pbtxt",
                  "ge_proto_00000000_graph_0_Build.txt", "ge_proto_00000000_graph_0_Build.txt"));
  ExpectOperatorNames(folder / "ge");
}

TEST(CliConfig, AnOptionWithoutEffectSaysWhy) {
  const TestFolder folder;
  folder.PutModels(1);
  ASSERT_EQ(setenv("TNG_LOG_LEVEL", "2", 1), 0);
  const CommandRun run = RunAlone(
      {"run", folder / "m0.air", "-o", "experimental_config.tiling_schedule_optimize=true"});
  unsetenv("TNG_LOG_LEVEL");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr("experimental_config.tiling_schedule_optimize=true has no effect on a "
                        "simulated NPU: There is no tiling to move to the device"));
}

TEST(CliConfig, PrecisionModeReachesRunsAndPlans) {
  const TestFolder folder;
  folder.PutChains(1);
  const std::string mode = "session.precision_mode=force_fp16";
  const CommandRun plan = RunAlone({"graph", folder / "m0.air", "--plan", "-o", mode});
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("types that precision_mode chose"));
  EXPECT_THAT(plan.out, HasSubstr("float16 for float32: force_fp16"));
  const CommandRun kept = RunAlone({"graph", folder / "m0.air", "--plan"});
  EXPECT_THAT(kept.out, testing::Not(HasSubstr("precision_mode")));
  const CommandRun run = RunAlone({"run", folder / "m0.air", "-o", mode});
  EXPECT_EQ(run.code, 0) << run.err;
  const CommandRun wrong =
      RunAlone({"run", folder / "m0.air", "-o", "session.modify_mixlist=absent.json"});
  EXPECT_EQ(wrong.code, 3);
  EXPECT_THAT(wrong.err, HasSubstr("session.modify_mixlist: \"absent.json\" is refused"));
}

TEST(CliConfig, ConfigChecksWithoutRunning) {
  const CommandRun valid = RunAlone({"config", "-o", "aoe_config.aoe_mode=2"});
  EXPECT_EQ(valid.code, 0) << valid.err;
  EXPECT_EQ(valid.out, "valid\n");
  const CommandRun idle =
      RunAlone({"config", "-o", "experimental_config.tiling_schedule_optimize=true"});
  EXPECT_EQ(idle.code, 0) << idle.err;
  EXPECT_THAT(idle.out,
              StartsWith("experimental_config.tiling_schedule_optimize=true has no effect"));
  EXPECT_THAT(idle.out, testing::EndsWith("valid\n"));
  const CommandRun wrong = RunAlone({"config", "-o", "mode=fast"});
  EXPECT_EQ(wrong.code, 3);
  EXPECT_THAT(wrong.err, HasSubstr("npumesh config: mode: \"fast\" is refused"));
}

TEST(CliDoctor, SaysSomethingAboutEverything) {
  for (const CommandRun& run : {RunAlone({"doctor"}), RunRanksOf(2, {"doctor"})}) {
    EXPECT_THAT(run.code, testing::AnyOf(0, 1)) << run.err;
    for (const char* subject : {"MPI", "device memory", "/dev/shm", "limits", "hwloc", "umask",
                                "ASLR", "account", "versions"}) {
      EXPECT_THAT(run.out, HasSubstr(fmt::format(" {:<14} ", subject))) << run.out;
    }
  }
}

TEST(CliDoctor, AnswersWhenTheRanksCannotStart) {
  ASSERT_EQ(setenv("NPUMESH_SOFT_TIMEOUT", "soon", 1), 0);
  const CommandRun run = RunAlone({"doctor"});
  unsetenv("NPUMESH_SOFT_TIMEOUT");
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("wrong   start"));
  EXPECT_THAT(run.out, HasSubstr("NPUMESH_SOFT_TIMEOUT"));
}

TEST(CliEnv, ShowsWhatIsSet) {
  ASSERT_EQ(setenv("NPUMESH_TRACE", "1", 1), 0);
  const CommandRun run = RunAlone({"env"});
  unsetenv("NPUMESH_TRACE");
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.out, HasSubstr("NPUMESH_TRACE                1\n"));
}

}  // namespace
}  // namespace npumesh
