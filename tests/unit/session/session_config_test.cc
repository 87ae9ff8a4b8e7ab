// What a CompilerConfig makes of sessions, backends and graph dumps.
#include "graph/session/session_config.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "graph/io/model_file.h"
#include "graph/passes/fusion/fusion.h"
#include "graph/session/npu_backend.h"
#include "graph/session/ref_data.h"
#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/session/session_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

CompileOptions CompileOptionsFor(const CompilerConfig& config) {
  const Result<SessionOptions> options = SessionOptionsFor(config);
  EXPECT_TRUE(options.ok()) << options.status().message();
  return options.ok() ? options->compile : CompileOptions();
}

TEST(SessionConfig, PassesFollowLevelsAndSwitches) {
  const struct {
    const char* assignment;
    void (*set)(CompilerConfig& config);
    bool folds;
    bool drops;
  } cases[] = {
      {"defaults", [](CompilerConfig&) {}, true, true},
      {"O1", [](CompilerConfig& c) { c.ge_config.oo_level = "O1"; }, false, true},
      {"O1 and folding",
       [](CompilerConfig& c) {
         c.ge_config.oo_level = "O1";
         c.ge_config.oo_constant_folding = true;
       },
       true, true},
      {"no folding", [](CompilerConfig& c) { c.ge_config.oo_constant_folding = false; }, false,
       true},
      {"no dead code elimination",
       [](CompilerConfig& c) { c.ge_config.oo_dead_code_elimination = false; }, true, false},
      {"switches",
       [](CompilerConfig& c) {
         c.ge_config.optimization_switch = "ConstantFoldingPass:off;DeadNodeEliminationPass:off";
       },
       false, false},
      {"eager", [](CompilerConfig& c) { c.debug.run_eagerly = true; }, false, false},
      {"captured",
       [](CompilerConfig& c) {
         c.mode = "reduce-overhead";
         c.ge_config.oo_level = "O1";
       },
       true, true},
  };
  for (const auto& expected : cases) {
    CompilerConfig config;
    expected.set(config);
    const CompileOptions options = CompileOptionsFor(config);
    EXPECT_EQ(options.fold_constants, expected.folds) << expected.assignment;
    EXPECT_EQ(options.drop_dead_nodes, expected.drops) << expected.assignment;
  }
}

TEST(SessionConfig, FusionFollowsModesAndSwitches) {
  const auto fuses = [](const CompilerConfig& config, std::string_view pass) {
    const CompileOptions options = CompileOptionsFor(config);
    return options.fuses != nullptr && options.fuses(pass);
  };
  CompilerConfig config;
  for (const std::string_view pass : kFusionPasses) EXPECT_TRUE(fuses(config, pass)) << pass;
  config.ge_config.optimization_switch = "RmsNormFusionPass:off";
  for (const std::string_view pass : kFusionPasses) {
    EXPECT_EQ(fuses(config, pass), pass != kRmsNormFusionPass) << pass;
  }
  config = {};
  config.ge_config.oo_level = "O1";
  EXPECT_FALSE(fuses(config, kElementwiseFusionPass));
  config = {};
  config.debug.run_eagerly = true;
  EXPECT_FALSE(fuses(config, kElementwiseFusionPass));
  config = {};
  config.mode = "reduce-overhead";
  EXPECT_FALSE(fuses(config, kElementwiseFusionPass));
}

TEST(SessionConfig, ASwitchFileClosesAllFusionPasses) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/switches";
  ASSERT_TRUE(
      WriteFile(file, "ALL:off\nMatMulBiasActivationFusionPass:on\n", FileKind::kData).ok());
  CompilerConfig config;
  config.fusion_config.fusion_switch_file = file;
  const CompileOptions options = CompileOptionsFor(config);
  ASSERT_NE(options.fuses, nullptr);
  for (const std::string_view pass : kFusionPasses) {
    EXPECT_EQ(options.fuses(pass), pass == kMatMulFusionPass) << pass;
  }
}

TEST(SessionConfig, StreamsAndMemoryFollowTheirOptions) {
  CompilerConfig config;
  EXPECT_FALSE(CompileOptionsFor(config).overlap_collectives);
  EXPECT_FALSE(CompileOptionsFor(config).spare_memory);
  config.experimental_config.memory_efficiency = true;
  EXPECT_TRUE(CompileOptionsFor(config).spare_memory);
  config.experimental_config.cc_parallel_enable = true;
  EXPECT_TRUE(CompileOptionsFor(config).overlap_collectives);
  config.ge_config.enable_single_stream = true;
  EXPECT_FALSE(CompileOptionsFor(config).overlap_collectives);
  config.ge_config.enable_single_stream = false;
  config.debug.run_eagerly = true;
  EXPECT_FALSE(CompileOptionsFor(config).overlap_collectives);
}

TEST(SessionConfig, OrderFollowsTheStrategy) {
  const std::pair<const char*, NodeOrder> cases[] = {{"DFS", NodeOrder::kDepth},
                                                     {"BFS", NodeOrder::kBreadth},
                                                     {"RDFS", NodeOrder::kReverse},
                                                     {"StableRDFS", NodeOrder::kStableDepth}};
  for (const auto& [strategy, order] : cases) {
    CompilerConfig config;
    config.experimental_config.topology_sorting_strategy = strategy;
    EXPECT_EQ(CompileOptionsFor(config).order, order);
    config.ge_config.oo_level = "O1";
    EXPECT_EQ(CompileOptionsFor(config).order, NodeOrder::kStableDepth);
    config.mode = "npugraph_ex";
    EXPECT_EQ(CompileOptionsFor(config).order, NodeOrder::kStable);
  }
}

TEST(SessionConfig, CapturedGraphsLimitTheirPlans) {
  CompilerConfig config;
  config.debug.aclgraph.static_capture_size_limit = 3;
  EXPECT_EQ(SessionOptionsFor(config)->max_plans, SessionOptions().max_plans);
  config.mode = "reduce-overhead";
  EXPECT_EQ(SessionOptionsFor(config)->max_plans, 3u);
}

TEST(SessionConfig, AnInvalidConfigIsAnError) {
  CompilerConfig config;
  config.mode = "fast";
  EXPECT_THAT(std::string(SessionOptionsFor(config).status().message()), StartsWith("mode: "));
  config = {};
  config.export_config.export_mode = true;
  EXPECT_THAT(std::string(SessionOptionsFor(config).status().message()),
              StartsWith("export.export_mode: true is for exports"));
}

// One rank, one session of y = ref += x, under this config.
class ConfiguredSession : public testing::Test {
 protected:
  ConfiguredSession() {
    const Value ref = g_.Data("ref", IntType({2}));
    const Value x = g_.Data("x", IntType({2}));
    const Value w = g_.Op("Negate", {{"x", g_.Const("w", IntTensor({1, 2}))}}, {}, "minus");
    const Value sum = g_.Op("Accumulate", {{"ref", ref}, {"value", x}}, {}, "sum");
    g_.Output({g_.Op("Plus", {{"x1", sum}, {"x2", w}}, {}, "out")});
  }

  void Run(const SessionOptions& options, const Env& env,
           const std::function<void(Session&)>& body) {
    const Model model = std::move(g_.Build()).value();
    const auto statuses = RunRanks(1, env, [&](World& world) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
      SessionOptions tiny = options;
      tiny.registry = TinySession().registry;
      NPUMESH_ASSIGN_OR_RETURN(const auto session, Session::Create(world, *memory, model, tiny));
      body(*session);
      return Status();
    });
    EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
  }

  GraphBuilder g_{"graph_1"};
  TemporaryFolder folder_;
};

TEST_F(ConfiguredSession, RefDataKeepsWhatWasWritten) {
  SessionOptions options;
  options.ref_data = true;
  Run(options, SmallEnv(), [](Session& session) {
    ASSERT_TRUE(session.inputs()[0].ref);
    EXPECT_FALSE(session.inputs()[1].ref);
    ASSERT_TRUE(session.Run({IntTensor({10, 20}), IntTensor({1, 1})}).ok());
    const auto again = session.Run({Tensor(), IntTensor({1, 1})});
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_THAT(IntsIn((*again)[0]), ElementsAre(11, 20));
  });
}

TEST_F(ConfiguredSession, GraphDumpHasBothGraphsAndRealNames) {
  CompilerConfig config;
  config.debug.graph_dump.type = "txt";
  config.debug.graph_dump.path = folder_.Path("dumps");
  Run(*SessionOptionsFor(config), SmallEnv(), [](Session& session) {
    ASSERT_TRUE(session.Run({IntTensor({10, 20}), IntTensor({1, 1})}).ok());
    ASSERT_TRUE(session.Run({IntTensor({10, 20}), IntTensor({1, 1})}).ok());
  });
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.Path("dumps"))) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  ASSERT_THAT(names, SizeIs(2));
  const std::string tail = fmt::format("graph_1_rank_0_pid_{}_ts_", getpid());
  EXPECT_THAT(names[0], testing::MatchesRegex("dynamo_optimized_" + tail + "[0-9]+\\.txt"));
  EXPECT_THAT(names[1], testing::MatchesRegex("dynamo_original_" + tail + "[0-9]+\\.txt"));
  EXPECT_EQ(names[0].size(), std::string("dynamo_optimized_").size() + tail.size() + 20 + 4);
  for (const std::string& name : names) {
    const std::string path = folder_.Path("dumps/" + name);
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u & ~0600u, 0u);
    const Result<Model> model = LoadModel(path);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model->graph.Find("minus") == kNoNode, name == names[0]);
  }
}

TEST_F(ConfiguredSession, EachFormIsWritten) {
  for (const char* type : {"pbtxt", "py"}) {
    CompilerConfig config;
    config.debug.graph_dump.type = type;
    config.debug.graph_dump.path = folder_.Path(type);
    GraphDump dump(config.debug.graph_dump, DumpEnv(), {3, 4, 1});
    GraphBuilder g("../evil graph");
    g.Output({g.Data("x", IntType({2}))});
    dump.WriteOriginal(std::move(g.Build()).value());
    const std::filesystem::directory_iterator files(folder_.Path(type));
    EXPECT_THAT(files->path().filename().string(),
                StartsWith("dynamo_original____evil_graph_rank_3_pid_"));
  }
}

TEST_F(ConfiguredSession, StagesAreDumpedAsTheEnvironmentSays) {
  SessionOptions options;
  DumpEnv& env = options.dump_env.emplace();
  env.dump_ge_graph = 2;
  env.dump_graph_format = "ge_proto|ONNX|readable";
  env.dump_graph_level = "PreRunBegin|Build";
  env.dump_graph_path = folder_.Path("ge");
  Run(options, SmallEnv(), [](Session& session) {
    ASSERT_TRUE(session.Run({IntTensor({10, 20}), IntTensor({1, 1})}).ok());
  });
  const std::string own = fmt::format("ge/pid_{}_deviceid_0", getpid());
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.Path(own))) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_THAT(names,
              ElementsAre("ge_onnx_00000000_graph_0_PreRunBegin.pbtxt",
                          "ge_onnx_00000001_graph_0_PreRunAfterOptimizeGraphBeforeBuild.pbtxt",
                          "ge_onnx_00000002_graph_0_Build.pbtxt",
                          "ge_proto_00000000_graph_0_PreRunBegin.txt",
                          "ge_proto_00000001_graph_0_PreRunAfterOptimizeGraphBeforeBuild.txt",
                          "ge_proto_00000002_graph_0_Build.txt",
                          "ge_readable_00000000_graph_0_PreRunBegin.txt",
                          "ge_readable_00000001_graph_0_PreRunAfterOptimizeGraphBeforeBuild.txt",
                          "ge_readable_00000002_graph_0_Build.txt"));
  const auto model =
      LoadModel(folder_.Path(own + "/ge_proto_00000001_graph_0_PreRunAfterOptimizeGraphBeforeBuild."
                                   "txt"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->graph.Find("minus"), kNoNode);
}

// A failed dump never fails the run.
TEST_F(ConfiguredSession, ADumpThatCannotBeWrittenIsSaidOnce) {
  ASSERT_TRUE(WriteFile(folder_.Path("file"), "", FileKind::kData).ok());
  SessionOptions options;
  options.graph_dump.type = "txt";
  options.graph_dump.path = folder_.Path("file/below");
  testing::internal::CaptureStderr();
  Run(options, SmallEnv(), [](Session& session) {
    EXPECT_TRUE(session.Run({IntTensor({10, 20}), IntTensor({1, 1})}).ok());
  });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("graph dump stops, the run goes on"));
  EXPECT_EQ(log.find("graph dump stops"), log.rfind("graph dump stops"));
}

TEST(GraphDump, StagesOfLevels) {
  const struct {
    const char* level;
    std::vector<std::string> wanted;
  } cases[] = {
      {"1", {"PreRunBegin", "AfterInfershape", "Other", "Build"}},
      {"2", {"PreRunBegin", "AfterInfershape", "Build"}},
      {"", {"PreRunBegin", "AfterInfershape", "Build"}},
      {"9", {"PreRunBegin", "AfterInfershape", "Build"}},
      {"3", {"Build"}},
      {"4", {"PreRunBegin"}},
      {"Infer|Oth", {"AfterInfershape", "Other"}},
      {"|", {}},
  };
  for (const auto& [level, wanted] : cases) {
    std::vector<std::string> seen;
    for (const char* stage :
         {"PreRunBegin", "AfterInfershape", "Other", "x_sub_graph_1", "Build"}) {
      if (WantsStage(level, stage)) seen.emplace_back(stage);
    }
    EXPECT_EQ(seen, wanted) << level;
  }
}

TEST(GraphDump, FoldersInTheOrderOfTheVendor) {
  DumpEnv env;
  const std::string own = fmt::format("pid_{}_deviceid_1", getpid());
  const auto folder = [&env](int ranks) { return GraphDump({}, env, {2, ranks, 1}).StageFolder(); };
  EXPECT_EQ(folder(1), ".");
  EXPECT_EQ(folder(4), "./" + own);
  env.ascend_work_path = "work";
  EXPECT_EQ(folder(1), "work");
  env.dump_graph_path = "graphs";
  EXPECT_EQ(folder(1), "graphs/" + own);
  env.npu_collect_path = "collect";
  EXPECT_EQ(folder(1), fmt::format("collect/extra-info/graph/{}_1", getpid()));
}

// -(-x) decomposed from a type that no registry knows.
Model TwiceModel() {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {2}});
  g.Output({g.Op("NegateTwice", {{"x", x}}, {}, "twice")});
  return std::move(g.Build()).value();
}

Status NegateTwice(Graph& graph, NodeId id) {
  Value value = *graph.node(id).inputs[0];
  for (const char* name : {"first", "second"}) {
    Node node;
    node.name = name;
    node.type = "Neg";
    node.inputs = {value};
    node.input_descs.resize(1);
    node.input_descs[0].name = "x";
    node.output_descs.resize(1);
    node.output_descs[0].name = "y";
    NPUMESH_ASSIGN_OR_RETURN(const NodeId added, graph.Add(std::move(node)));
    value = {added, 0};
  }
  graph.ReplaceUses({id, 0}, value);
  return Status();
}

TEST(NpuBackend, DecomposesAndCompiles) {
  NpuBackendOptions options;
  options.custom_decompositions["NegateTwice"] = NegateTwice;
  const auto backend = GetNpuBackend(options);
  ASSERT_TRUE(backend.ok());
  const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto session, (*backend)(world, memory, TwiceModel()));
    const Tensor x = Tensor::FromVector<float>({DataType::kFloat, Shape({2})}, {1, -2});
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run({x}));
    EXPECT_EQ(outputs[0].as<float>()[1], -2);
    EXPECT_EQ(session->stats().run.steps, 1u);  // Neg+Neg
    return Status();
  });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
}

TEST(NpuBackend, UsesTheCompilerItIsGiven) {
  NpuBackendOptions options;
  bool asked = false;
  options.custom_decompositions["NegateTwice"] = NegateTwice;
  options.compiler = [&asked](World&, DeviceMemory&,
                              Model model) -> Result<std::unique_ptr<Session>> {
    asked = true;
    EXPECT_EQ(model.graph.Find("twice"), kNoNode);
    return Error(Code::kUnsupported, "not today");
  };
  const auto backend = GetNpuBackend(options);
  ASSERT_TRUE(backend.ok());
  const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) {
    return (*backend)(world, memory, TwiceModel()).status();
  });
  EXPECT_TRUE(asked);
  EXPECT_EQ(statuses[0].message(), "not today");
}

TEST(NpuBackend, ErrorsNameTheNode) {
  NpuBackendOptions options;
  options.custom_decompositions["NegateTwice"] = [](Graph&, NodeId) { return Status(); };
  const auto backend = GetNpuBackend(options);
  ASSERT_TRUE(backend.ok());
  const auto statuses = OnRanks(1, [&](World& world, DeviceMemory& memory) {
    return (*backend)(world, memory, TwiceModel()).status();
  });
  EXPECT_THAT(std::string(statuses[0].message()),
              HasSubstr("\"twice\" (NegateTwice): its custom decomposition leaves readers behind"));
  CompilerConfig wrong;
  wrong.mode = "fast";
  EXPECT_FALSE(GetCompiler(wrong).ok());
  EXPECT_FALSE(GetNpuBackend({wrong}).ok());
}

}  // namespace
}  // namespace npumesh
