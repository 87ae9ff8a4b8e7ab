// What a C++ program gets of dump_config, debug.data_dump, debug.fx_summary, the dump options of a
// System and the exception dump of the environment.
#include "graph/session/tensor_dump.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "graph/dump/format/format_data.h"
#include "graph/dump/format/format_name.h"
#include "graph/dump/options/options.h"
#include "graph/session/npu_backend.h"
#include "graph/session/session_config.h"
#include "graph/session/system.h"
#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// y = |-x| + (-w), where -w folds.
Model AbsModel() {
  const TensorType type = {DataType::kFloat, Shape({2})};
  GraphBuilder g("graph_1");
  const Value minus = g.Op("Neg", {{"x", g.Data("x", type)}}, {}, "minus");
  const Value abs = g.Op("Abs", {{"x", minus}}, {}, "abs");
  const Value w = g.Const("w", Tensor::FromVector<float>(type, {1, 2}));
  const Value fold = g.Op("Neg", {{"x", w}}, {}, "fold");
  g.Output({g.Op("Add", {{"x1", abs}, {"x2", fold}}, {}, "sum")});
  return std::move(g.Build()).value();
}

Tensor AbsInput() {
  return Tensor::FromVector<float>({DataType::kFloat, Shape({2})}, {3, -4});
}

// "data_index Type.name" of the dump files below `folder`, "Type.name.csv" of statistics; and
// "step node-type.SIDE.i" of .npy files.
std::vector<std::string> FilesBelow(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string step = entry.path().parent_path().filename().string();
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".npy")) {
      names.push_back(step + " " + name.substr(0, name.size() - 25));
    } else if (const auto parsed = ParseDumpFileName(name)) {
      names.push_back(fmt::format("{} {}.{}{}", step, parsed->op_type, parsed->op_name,
                                  parsed->stats ? ".csv" : ""));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

class TensorDumpTest : public testing::Test {
 protected:
  TensorDumpTest() { config_.dump_config.dump_path = folder_.path(); }

  // Two steps of AbsModel on one rank, under a backend of `config_`.
  std::vector<std::string> RunTwice() {
    const auto backend = GetNpuBackend({config_});
    EXPECT_TRUE(backend.ok()) << backend.status().ToString();
    if (!backend.ok()) return {};
    const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto session, (*backend)(world, memory, AbsModel()));
      for (int step = 0; step < 2; ++step) {
        NPUMESH_RETURN_IF_ERROR(session->Run({AbsInput()}).status());
      }
      report_ = session->FinishDump();
      return report_.error;
    });
    EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
    return FilesBelow(folder_.path());
  }

  TemporaryFolder folder_;
  CompilerConfig config_;
  DumpReport report_;
};

TEST_F(TensorDumpTest, ABackendDumpsAsItsConfigSays) {
  EXPECT_THAT(RunTwice(), IsEmpty());
  EXPECT_EQ(report_.folder, "");
  config_.dump_config.enable_dump = true;
  config_.dump_config.dump_mode = "output";
  config_.dump_config.dump_step = "1";
  EXPECT_THAT(RunTwice(), ElementsAre("1 Abs.abs", "1 Add.sum", "1 Data.x", "1 Neg.minus"));
  EXPECT_EQ(report_.counts.files, 4u);
  EXPECT_THAT(report_.folder, HasSubstr("/worldsize1_global_rank0/"));
}

TEST_F(TensorDumpTest, ADumpConfigFileDoesToo) {
  const std::string text =
      R"({"dump":{"dump_list":[{"model_name":"graph_1","layer":["abs"]}],"dump_data":"stats",)"
      R"("dump_path":")" +
      folder_.path() + "\"}}";
  ASSERT_TRUE(WriteFile(folder_.Path("dump.json"), text, FileKind::kConfig).ok());
  config_.dump_config.dump_config_path = folder_.Path("dump.json");
  EXPECT_THAT(RunTwice(), ElementsAre("0 Abs.abs.csv", "1 Abs.abs.csv"));
}

TEST_F(TensorDumpTest, NothingIsDumpedWhereGraphsAreCaptured) {
  config_.mode = "reduce-overhead";
  config_.dump_config.enable_dump = true;
  config_.debug.data_dump.type = "npy";
  config_.debug.data_dump.path = folder_.path();
  EXPECT_THAT(RunTwice(), IsEmpty());
}

// An eager run folds nothing, so "fold" runs.
TEST_F(TensorDumpTest, DataDumpRunsEagerlyAndWritesEveryTensor) {
  config_.debug.data_dump.type = "npy";
  config_.debug.data_dump.path = folder_.Path("npy");
  const std::vector<std::string> files = RunTwice();
  EXPECT_THAT(files, SizeIs(2 * (2 + 2 + 2 + 3)));
  EXPECT_THAT(files, testing::Contains("1 fold-Neg.OUTPUT.0"));
  EXPECT_EQ(report_.steps, 2u);
}

TEST_F(TensorDumpTest, AFilterChoosesNodes) {
  config_.debug.data_dump.type = "npy";
  config_.debug.data_dump.path = folder_.path();
  config_.debug.data_dump.filter = [](const Node& node) { return node.name == "abs"; };
  EXPECT_THAT(RunTwice(), ElementsAre("0 abs-Abs.INPUT.0", "0 abs-Abs.OUTPUT.0",
                                      "1 abs-Abs.INPUT.0", "1 abs-Abs.OUTPUT.0"));
}

TEST_F(TensorDumpTest, ASummaryIsWrittenAndSkipsTheCompiler) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  config_.debug.fx_summary.type = "csv";
  EXPECT_TRUE(RunTwice().empty());
  fs::current_path(before);
  ASSERT_THAT(folder_.List(), SizeIs(1));
  EXPECT_THAT(folder_.List()[0], testing::StartsWith("summary_rank_0_pid_"));
  const Result<std::string> text = ReadFile(folder_.Path(folder_.List()[0]));
  EXPECT_THAT(*text, HasSubstr("\"Neg\",ascend_ir,已支持,2,"));

  EXPECT_FALSE(SessionOptionsFor(config_)->compile.fold_constants);
  config_.debug.fx_summary.skip_compile = false;
  EXPECT_TRUE(SessionOptionsFor(config_)->compile.fold_constants);
  EXPECT_TRUE(SessionOptionsFor(config_)->compile.drop_dead_nodes);
  config_.debug.fx_summary = {};
  EXPECT_TRUE(SessionOptionsFor(config_)->compile.fold_constants);
}

// Several graphs of one job: one time folder, a number for each.
TEST_F(TensorDumpTest, SessionsOfAWorldHaveNumbers) {
  config_.dump_config.enable_dump = true;
  config_.dump_config.dump_mode = "output";
  config_.dump_config.dump_layer = "abs";
  const auto options = SessionOptionsFor(config_);
  ASSERT_TRUE(options.ok());
  const auto statuses = OnRanks(2, [&](World& world, DeviceMemory& memory) -> Status {
    for (int graph = 0; graph < 2; ++graph) {
      NPUMESH_ASSIGN_OR_RETURN(const auto session,
                               Session::Create(world, memory, AbsModel(), *options));
      NPUMESH_RETURN_IF_ERROR(session->Run({AbsInput()}).status());
    }
    return world.Shutdown();
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.ToString();
  std::vector<std::string> times;
  for (const int rank : {0, 1}) {
    const std::string root = folder_.Path(RankFolderName(2, rank));
    for (const auto& time : fs::directory_iterator(root)) {
      times.push_back(time.path().filename().string());
      for (const char* path : {"/manifest.json", "/manifest_2.json"}) {
        EXPECT_TRUE(fs::exists(time.path().string() + path)) << time.path() << path;
      }
      for (const char* id : {"1", "2"}) {
        const std::string step = fmt::format("{}/{}/graph_1/{}/0", time.path().string(), rank, id);
        EXPECT_TRUE(fs::exists(step)) << step;
      }
    }
  }
  ASSERT_THAT(times, SizeIs(2));
  EXPECT_EQ(times[0], times[1]);
}

class SystemDump : public TensorDumpTest {
 protected:
  std::vector<std::string> RunUnder(const SystemOptions& options) {
    const auto backend = GetNpuBackend({config_});
    EXPECT_TRUE(backend.ok());
    const auto statuses = RunRanks(1, SmallEnv(), [&](World& world) -> Status {
      System system;
      NPUMESH_RETURN_IF_ERROR(system.Initialize(world, options));
      NPUMESH_ASSIGN_OR_RETURN(auto session, system.Compile(AbsModel(), *backend));
      for (int step = 0; step < 3; ++step) {
        NPUMESH_RETURN_IF_ERROR(session->Run({AbsInput()}).status());
      }
      session.reset();
      return system.Shutdown();
    });
    EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
    return FilesBelow(folder_.path());
  }
};

TEST_F(SystemDump, SessionsDumpAsTheSystemSays) {
  SystemOptions options;
  options.enable_dump = true;
  options.dump_path = folder_.path();
  options.dump_step = "0|2";
  EXPECT_THAT(RunUnder(options), ElementsAre("0 Abs.abs", "0 Add.sum", "0 Data.x", "0 Neg.minus",
                                             "2 Abs.abs", "2 Add.sum", "2 Data.x", "2 Neg.minus"));
}

TEST_F(SystemDump, TheCompilersConfigWins) {
  TemporaryFolder other;
  SystemOptions options;
  options.enable_dump = true;
  options.dump_path = other.path();
  config_.dump_config.enable_dump = true;
  config_.dump_config.dump_layer = "sum";
  config_.dump_config.dump_mode = "input";
  EXPECT_THAT(RunUnder(options), ElementsAre("0 Add.sum", "1 Add.sum", "2 Add.sum"));
  EXPECT_THAT(other.List(), IsEmpty());
}

// The order of the vendor's documents.
TEST(DumpEnvironment, PathsAndScenesInTheirOrder) {
  DumpSettings models;
  models.models = true;
  models.path = "models";
  DumpSettings brief = models;
  brief.exception = ExceptionDump::kBrief;
  struct {
    const char* name;
    std::optional<DumpSettings> settings;
    std::string scene, collect, dump, work;
    std::optional<ExceptionDump> exception;  // none: nothing is dumped
    std::string folder;
  } const cases[] = {
      {"nothing", {}, "", "", "", "", std::nullopt, ""},
      {"paths alone", {}, "", "", "d", "w", std::nullopt, ""},
      {"a scene",
       {},
       "aic_err_norm_dump",
       "",
       "",
       "",
       ExceptionDump::kNormal,
       "./worldsize1_global_rank0/"},
      {"detail", {}, "aic_err_detail_dump", "", "", "w", ExceptionDump::kNormal, "w/"},
      {"lite", {}, "lite_exception", "", "d", "w", ExceptionDump::kBrief, "d/"},
      {"collect", {}, "lite_exception", "c", "d", "w", ExceptionDump::kNormal, "c/"},
      {"collect alone", models, "", "c", "", "", ExceptionDump::kNormal, "c/"},
      {"models", models, "", "", "d", "", ExceptionDump::kOff, "models/worldsize1_global_rank0/"},
      {"the settings' scene", brief, "aic_err_norm_dump", "", "", "", ExceptionDump::kBrief,
       "models/worldsize1_global_rank0/"},
      {"with a path", brief, "", "", "", "w", ExceptionDump::kBrief, "w/"},
  };
  for (const auto& expected : cases) {
    DumpEnv env;
    env.ascend_dump_scene = expected.scene;
    env.npu_collect_path = expected.collect;
    env.ascend_dump_path = expected.dump;
    env.ascend_work_path = expected.work;
    const auto settings = WithEnvironment(expected.settings, env);
    ASSERT_EQ(settings.has_value(), expected.exception.has_value()) << expected.name;
    if (!settings) continue;
    EXPECT_EQ(settings->exception, *expected.exception) << expected.name;
    EXPECT_EQ(ExceptionFolder(*settings, DumpPlace()), expected.folder + "extra-info/data-dump/0")
        << expected.name;
    EXPECT_EQ(settings->models, expected.settings.has_value()) << expected.name;
  }
}

TEST(DumpEnvironment, AFailingOperatorOfAPlainSessionIsWritten) {
  TemporaryFolder folder;
  GraphBuilder g("graph_1");
  g.Output({g.Op("Fail", {{"x", g.Data("x", IntType({2}))}}, {}, "breaks")});
  const Model model = std::move(g.Build()).value();
  SessionOptions options = TinySession();
  options.dump_env.emplace().npu_collect_path = folder.path();
  const auto statuses = RunRanks(1, SmallEnv(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, *memory, model, options));
    return session->Run({IntTensor({1, 2})}).status();
  });
  EXPECT_FALSE(statuses[0].ok());
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder.Path("extra-info/data-dump/0"))) {
    files.push_back(entry.path().string());
  }
  ASSERT_THAT(files, SizeIs(1));
  const auto file = DumpFile::Open(files[0]);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(file->record().op_name, "breaks");
  EXPECT_THAT(folder.List(), ElementsAre("extra-info"));  // no time folder, no manifest
}

}  // namespace
}  // namespace npumesh
