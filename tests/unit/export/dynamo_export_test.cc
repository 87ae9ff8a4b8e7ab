// What an export writes: names, places, nodes.
#include "graph/export/dynamo_export.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "graph/io/model_file.h"
#include "graph/io/weights.h"
#include "graph/ir/graph_builder.h"
#include "tests/unit/export/export_models.h"

namespace npumesh {
namespace {

using namespace npumesh::testing;  // NOLINT: the models of these tests
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Model LoadOrDie(const std::string& path) {
  Result<Model> model = LoadModel(path);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *std::move(model) : Model();
}

const Node& NodeOf(const Model& model, std::string_view name) {
  const NodeId id = model.graph.Find(name);
  EXPECT_NE(id, kNoNode) << name;
  return model.graph.node(id == kNoNode ? 0 : id);
}

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

// TorchAir's documented example, single card, and our checksums.
TEST(DynamoExport, WritesTheTreeAsDocumentedForOneCard) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "deep/test_export_file_False";
  options.weight_limit = 0;
  const Status status = ExportAlone(SeedAdd(), options, SeedAddWeights());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(FilesOf(folder.path()),
              ElementsAre("deep/test_export_file_False/checksums.sha256",
                          "deep/test_export_file_False/dynamo.pbtxt",
                          "deep/test_export_file_False/export.air",
                          "deep/test_export_file_False/p1", "deep/test_export_file_False/p2"));
  EXPECT_EQ(ModeOf(options.export_path) & ~0750u, 0u);
  EXPECT_EQ(ModeOf(options.export_path + "/p1") & ~0640u, 0u);
  const float half[8] = {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f};
  EXPECT_EQ(Slurp(options.export_path + "/p2"),
            std::string(reinterpret_cast<const char*>(half), sizeof(half)));
}

// TorchAir's documented example, several cards.
TEST(DynamoExport, WritesTheTreeAsDocumentedForTwoCards) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "mp";
  options.export_name = "elsewhere/mp_rank";
  options.auto_atc_config_generated = true;
  options.dynamic = true;
  options.weight_limit = 0;
  for (const Status& status : ExportOn(
           2, [](int) { return SeedAllReduce("tag=;rank_list=0,1"); }, options)) {
    ASSERT_TRUE(status.ok()) << status.message();
  }
  EXPECT_THAT(FilesOf(folder / "mp"),
              ElementsAre("checksums.sha256", "model_relation_config.json", "mp_rank0.air",
                          "mp_rank1.air", "numa_config.json", "rank_0/dynamo.pbtxt", "rank_0/p1",
                          "rank_0/p2", "rank_1/dynamo.pbtxt", "rank_1/p1", "rank_1/p2"));
  const Model model = LoadOrDie(folder / "mp/mp_rank1.air");
  EXPECT_EQ(NodeOf(model, "p1").StringAttr("file_path", ""), folder / "mp/rank_1/p1");
  EXPECT_EQ(NodeOf(model, "x").output_descs[0].shape, Shape({-1, -1}));
  EXPECT_EQ(NodeOf(model, "NetOutput").input_descs[0].shape, Shape({-1, -1}));
  EXPECT_EQ(Slurp(folder / "mp/rank_0/p1").size(), 16u);
}

// What lies between inputs and outputs says what is known: the weight's 8, and -1 for the rows.
TEST(DynamoExport, ADynamicExportDescribesInnerTensors) {
  const ExportFolder folder;
  for (const bool dynamic : {false, true}) {
    GraphBuilder g;
    const TensorType open{DataType::kFloat, {2, 4}};
    const Value w = g.Const("w", Tensor::Allocate({DataType::kFloat, {4, 8}}));
    const Value product = g.Op("MatMul", {{"x1", g.Data("x", open)}, {"x2", w}}, {}, "product");
    g.Output({g.Op("Relu", {{"x", product}}, {}, "relu")});
    ExportOptions options;
    options.export_path = folder / (dynamic ? "dynamic" : "static");
    options.dynamic = dynamic;
    ASSERT_TRUE(ExportAlone(g.Build().value(), options, {}).ok());
    const Model model = LoadOrDie(options.export_path + "/export.air");
    const TensorDesc& between = NodeOf(model, "product").output_descs[0];
    EXPECT_EQ(between.shape.has_value(), dynamic);
    if (!dynamic) continue;
    EXPECT_EQ(between.shape, Shape({-1, 8}));
    EXPECT_EQ(NodeOf(model, "relu").input_descs[0].shape, Shape({-1, 8}));
    EXPECT_EQ(NodeOf(model, "NetOutput").input_descs[0].shape, Shape({-1, -1}));
  }
}

TEST(DynamoExport, ADistributedRunOfOneRankHasTheLayoutOfSeveral) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "one";
  options.distributed = true;
  ASSERT_TRUE(ExportAlone(SeedAdd(), options, SeedAddWeights()).ok());
  EXPECT_THAT(FilesOf(folder / "one"),
              ElementsAre("checksums.sha256", "export0.air", "rank_0/dynamo.pbtxt"));
}

// TorchAir replaces the Data by a Const or FileConstant of the same name.
TEST(DynamoExport, AWeightKeepsTheNameOfItsInput) {
  const ExportFolder folder;
  ExportOptions options;
  for (const uint64_t limit : {uint64_t{0}, kWeightLimit}) {
    options.export_path = folder / std::to_string(limit);
    options.weight_limit = limit;
    ASSERT_TRUE(ExportAlone(SeedAdd(), options, SeedAddWeights()).ok());
    const Model model = LoadOrDie(options.export_path + "/export.air");
    const Node& weight = NodeOf(model, "arg0_1");
    EXPECT_EQ(weight.type, limit == 0 ? "FileConstant" : "Const");
    EXPECT_EQ(NodeOf(model, "arg2_1").IntAttr("index", -1), 0);
    EXPECT_EQ(NodeOf(model, "arg3_1").IntAttr("index", -1), 1);
    const Result<Tensor> value = LoadWeight(weight, model.path);
    ASSERT_TRUE(value.ok()) << value.status().message();
    EXPECT_THAT(value->as<float>(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
    if (limit != 0) continue;
    EXPECT_EQ(weight.StringAttr("file_path", ""), options.export_path + "/p1");
    EXPECT_EQ(weight.StringAttr("file_id", "absent"), "");
    EXPECT_EQ(weight.FindAttr("dtype")->get<DataTypeAttr>()->number, 0);
    EXPECT_EQ(weight.IntsAttr("shape"), (std::vector<int64_t>{2, 4}));
    EXPECT_EQ(weight.output_descs[0].name, "y");
    EXPECT_EQ(weight.output_descs[0].dtype, DataType::kFloat);
    EXPECT_EQ(weight.output_descs[0].shape, std::nullopt);  // says nothing
  }
}

// All or nothing, and only strictly above the limit.
TEST(DynamoExport, TheLimitIsTheLastSizeInside) {
  const ExportFolder folder;
  ExportOptions options;
  uint64_t low = 0;  // outside
  uint64_t high = uint64_t{1} << 20;
  const auto external = [&](uint64_t limit) {
    options.export_path = folder / std::to_string(limit);
    options.weight_limit = limit;
    EXPECT_TRUE(ExportAlone(SeedAdd(), options, SeedAddWeights()).ok());
    return FilesOf(options.export_path).size() == 5;
  };
  ASSERT_TRUE(external(low));
  ASSERT_FALSE(external(high));
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (external(middle) ? low : high) = middle;
  }
  // The .air with the weights has a few more bytes than graph and weights: lengths of messages.
  const uint64_t inside = Slurp((folder / std::to_string(high)) + "/export.air").size();
  EXPECT_LE(high, inside);
  EXPECT_LT(inside - high, 16u);
}

TEST(DynamoExport, StoresEveryWidthAsItLiesInMemory) {
  for (const DataType dtype :
       {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16, DataType::kInt8,
        DataType::kInt32, DataType::kInt64, DataType::kUint8, DataType::kBool}) {
    const ExportFolder folder;
    ExportOptions options;
    options.export_path = folder / "out";
    options.weight_limit = 0;
    const TensorType type{dtype, {3, 2}};
    GraphBuilder g;
    g.Output({g.Data("w", type), g.Data("x", type)});
    std::string bytes(type.bytes(), '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37 + 1);
    const Status status = ExportAlone(
        *g.Build(), options, {WeightFromTensor("w", "a.b", Tensor::FromString(type, bytes))});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(Slurp(folder / "out/a_b"), bytes) << Name(dtype);
    const Model model = LoadOrDie(folder / "out/export.air");
    EXPECT_EQ(NodeOf(model, "w").FindAttr("dtype")->get<DataTypeAttr>()->number,
              static_cast<int64_t>(dtype));
  }
}

TEST(DynamoExport, ConstantsThatDecideShapesStayInside) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "out";
  options.weight_limit = 0;
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {2, 4}});
  const Value w = g.Const("w.bias", Tensor::FromVector<float>({DataType::kFloat, {1}}, {3}));
  const Value y = g.Op("Add", {{"x1", x}, {"x2", w}});
  g.Output({g.Op("Reshape", {{"x", y}, {"shape", g.Ints({4, 2}, "shape")}})});
  ASSERT_TRUE(ExportAlone(*g.Build(), options).ok());
  EXPECT_THAT(FilesOf(folder / "out"),
              ElementsAre("checksums.sha256", "dynamo.pbtxt", "export.air", "w_bias"));
}

// Inside and outside are two forms of one package.
TEST(DynamoExport, AnExportCanBeExportedAgain) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "a";
  ASSERT_TRUE(ExportAlone(SeedAdd(), options, SeedAddWeights()).ok());
  const std::string inside = Slurp(folder / "a/export.air");
  options.export_path = folder / "b";
  options.weight_limit = 0;
  options.weight_names = {{"arg0_1", "p1"}, {"arg1_1", "p2"}};
  ASSERT_TRUE(ExportAlone(LoadOrDie(folder / "a/export.air"), options).ok());
  EXPECT_THAT(FilesOf(folder / "b"),
              ElementsAre("checksums.sha256", "dynamo.pbtxt", "export.air", "p1", "p2"));
  options.export_path = folder / "c";
  options.weight_limit = kWeightLimit;
  ASSERT_TRUE(ExportAlone(LoadOrDie(folder / "b/export.air"), options).ok());
  EXPECT_EQ(Slurp(folder / "c/export.air"), inside);
}

TEST(DynamoExport, LoadingAndSavingChangesNoByte) {
  const ExportFolder folder;
  ExportOptions options;
  options.weight_limit = 0;
  options.export_path = folder / "a";
  ASSERT_TRUE(ExportAlone(SeedAdd(), options, SeedAddWeights()).ok());
  const std::string first = Slurp(folder / "a/export.air");
  const Result<std::string> second = SerializeAir(LoadOrDie(folder / "a/export.air"));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(*second, first);
}

TEST(DynamoExport, InputsThatAreWrittenInPlaceBecomeRefData) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "out";
  GraphBuilder g;
  const Value cache = g.Data("cache", {DataType::kFloat, {2, 3}});
  const Value x = g.Data("x", {DataType::kFloat, {2, 3}});
  g.Output({g.Op("Assign", {{"ref", cache}, {"value", x}})});
  const Status status = ExportAlone(*g.Build(), options);
  ASSERT_TRUE(status.ok()) << status.message();
  const Model model = LoadOrDie(folder / "out/export.air");
  const Node& ref = NodeOf(model, "RefData_2_3_3_1_0_0");
  EXPECT_EQ(ref.type, "RefData");
  EXPECT_EQ(ref.StringAttr("_origin_data_name", ""), "cache");
  EXPECT_EQ(ref.IntAttr("index", -1), 1);  // behind all Data
  EXPECT_EQ(NodeOf(model, "x").IntAttr("index", -1), 0);
}

TEST(DynamoExport, KeepsModuleStacksOfTwoLevelsWhenAsked) {
  const std::string deep =
      "{'L__self___layer_0': (\"L['self'].layer[0]\", <class 'm.Layer'>), "
      "'L__self___layer_0_fc': (\"L['self'].layer[0].fc\", <class 'm.Linear'>)}";
  const std::string flat = "{'L__self___fc': (\"L['self'].fc\", <class 'm.Linear'>)}";
  for (const bool record : {false, true}) {
    const ExportFolder folder;
    ExportOptions options;
    options.export_path = folder / "out";
    options.enable_record_nn_module_stack = record;
    GraphBuilder g;
    Value x = g.Data("x", {DataType::kFloat, {2}});
    x = g.Op("Relu", {{"x", x}}, {{"nn_module_stack", AttrValue::String(deep)}}, "deep");
    x = g.Op("Relu", {{"x", x}}, {{"nn_module_stack", AttrValue::String(flat)}}, "flat");
    g.Output({x});
    ASSERT_TRUE(ExportAlone(*g.Build(), options).ok());
    const Model model = LoadOrDie(folder / "out/export.air");
    EXPECT_EQ(NodeOf(model, "deep").StringAttr("nn_module_stack", ""), record ? deep : "");
    EXPECT_EQ(NodeOf(model, "flat").FindAttr("nn_module_stack"), nullptr);
  }
}

TEST(DynamoExport, ProgressIsTorchAirsText) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "out";
  options.weight_limit = 0;
  std::string text;
  options.progress = [&](const ExportProgress& progress) { text += ProgressText(progress); };
  ASSERT_TRUE(ExportAlone(SeedAdd(), options, SeedAddWeights()).ok());
  EXPECT_EQ(text,
            "\r torchair dynamo export save weight 50% 1/2"
            "\r torchair dynamo export save weight 100% 2/2 \n");
}

TEST(DynamoExport, WritesOverAFileThatMayNotBeWritten) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "out";
  options.read_only = true;
  ASSERT_TRUE(ExportAlone(SeedAdd(), options, SeedAddWeights()).ok());
  EXPECT_EQ(ModeOf(folder / "out/export.air"), 0400u);
  Spill(folder / "out/mine.txt", "stays");
  options.dynamic = true;
  const Status again = ExportAlone(SeedAdd(), options, SeedAddWeights());
  ASSERT_TRUE(again.ok()) << again.message();
  EXPECT_THAT(FilesOf(folder / "out"),
              ElementsAre("checksums.sha256", "dynamo.pbtxt", "export.air", "mine.txt"));
  const Model model = LoadOrDie(folder / "out/export.air");
  EXPECT_EQ(NodeOf(model, "arg2_1").output_descs[0].shape, Shape({-1, -1}));
}

struct Refusal {
  std::string name;
  std::function<void(const ExportFolder&, ExportOptions&, std::vector<ExportWeight>&)> spoil;
  Code code;
  std::string words;
};

class DynamoExportRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(DynamoExportRefuses, AndWritesNothing) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "out";
  options.weight_limit = 0;
  std::vector<ExportWeight> weights = SeedAddWeights();
  GetParam().spoil(folder, options, weights);
  const auto before = FilesOf(folder.path());
  const Status status = ExportAlone(SeedAdd(), options, std::move(weights));
  EXPECT_EQ(status.code(), GetParam().code) << status.message();
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().words));
  EXPECT_EQ(FilesOf(folder.path()), before);
}

INSTANTIATE_TEST_SUITE_P(
    All, DynamoExportRefuses,
    ::testing::Values(
        Refusal{"linked_folder",
                [](const ExportFolder& f, ExportOptions& o, auto&) {
                  std::filesystem::create_directory(f / "real");
                  std::filesystem::create_directory_symlink(f / "real", f / "out");
                  o.export_path += "/";
                },
                Code::kInvalidArgument, "should not be a symbolic link"},
        Refusal{"linked_air",
                [](const ExportFolder& f, ExportOptions&, auto&) {
                  Spill(f / "out/other", "");
                  std::filesystem::create_symlink(f / "out/other", f / "out/export.air");
                },
                Code::kInvalidArgument, "export.air should not be a symbolic link"},
        Refusal{"linked_weight",
                [](const ExportFolder& f, ExportOptions&, auto&) {
                  Spill(f / "out/other", "");
                  std::filesystem::create_symlink(f / "out/other", f / "out/p2");
                },
                Code::kInvalidArgument, "out/p2 should not be a symbolic link"},
        Refusal{"file_in_the_way",
                [](const ExportFolder& f, ExportOptions&, auto&) { Spill(f / "out", "x"); },
                Code::kInvalidArgument, "is no folder"},
        Refusal{"empty_path", [](auto&, ExportOptions& o, auto&) { o.export_path = ""; },
                Code::kInvalidArgument, "export_path is empty"},
        Refusal{"no_name", [](auto&, ExportOptions& o, auto&) { o.export_name = "a/"; },
                Code::kInvalidArgument, "export_name \"\" is no file name"},
        Refusal{"one_file_for_two",
                [](auto&, auto&, std::vector<ExportWeight>& w) {
                  w[0].parameter = "a.b";
                  w[1].parameter = "a_b";
                },
                Code::kInvalidArgument, "would share the file \"a_b\""},
        Refusal{"the_name_of_the_text",
                [](auto&, ExportOptions& o, std::vector<ExportWeight>& w) {
                  w[0].parameter = "export_air";
                  o.export_name = "x";
                  w[1].parameter = "x_air/";
                  w[1].parameter = "export.air";
                },
                Code::kInvalidArgument, "would share the file \"export_air\""},
        Refusal{"no_such_input", [](auto&, auto&, auto& w) { w[0].input = "arg9_1"; },
                Code::kNotFound, "weight \"p1\": \"arg9_1\" is no Data node"},
        Refusal{"wrong_dtype", [](auto&, auto&, auto& w) { w[0].type.dtype = DataType::kInt8; },
                Code::kInvalidArgument, "dtype int8, but input \"arg0_1\" is declared as float32"},
        Refusal{"too_few_bytes",
                [](auto&, auto&, auto& w) {
                  w[1].read = [](const WeightSink& sink) {
                    return sink(std::as_bytes(std::span("abc", 3)));
                  };
                },
                Code::kInvalidArgument, "weight \"p2\": its reader gave 3 bytes"},
        Refusal{"too_many_bytes",
                [](auto&, auto&, auto& w) {
                  w[1].read = [](const WeightSink& sink) {
                    for (;;) NPUMESH_RETURN_IF_ERROR(sink(std::as_bytes(std::span("abc", 3))));
                  };
                },
                Code::kInvalidArgument, "its reader gave at least 33 bytes"}),
    [](const auto& info) { return info.param.name; });

TEST(DynamoExport, AnOpenDimensionNeedsDynamic) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "out";
  GraphBuilder g;
  g.Output({g.Op("Relu", {{"x", g.Data("x", {DataType::kFloat, {-1, 4}})}})});
  const Model model = *g.Build();
  const Status status = ExportAlone(model, options);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), StartsWith("input \"x\" has the shape [-1,4]"));
  options.dynamic = true;
  EXPECT_TRUE(ExportAlone(model, options).ok());
}

TEST(DynamoExport, RanksThatDisagreeFailAlike) {
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "mp";
  const auto statuses = ExportOn(
      3, [](int rank) { return SeedAllReduce("tag=;rank_list=0,1,2", rank == 2 ? "max" : "sum"); },
      options);
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_EQ(std::string(status.message()),
              "the graph of rank 2 does not fit the others: node \"HcomAllReduce\" "
              "(HcomAllReduce): reduction is max, but node \"HcomAllReduce\" (HcomAllReduce) of "
              "rank 0, with which it meets in group \"tag=;rank_list=0,1,2\", has sum");
  }
  EXPECT_TRUE(FilesOf(folder.path()).empty());
}

TEST(DynamoExport, RanksWithOtherOptionsFailAlike) {
  const ExportFolder folder;
  const auto statuses = RunRanks(2, Env(), [&](World& world) {
    ExportOptions options;
    options.export_path = folder / ("mp" + std::to_string(world.rank()));
    return DynamoExport(world, SeedAllReduce("tag=;rank_list=0,1"), options).status();
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_THAT(std::string(status.message()), StartsWith("rank 1 exports with other options"));
  }
  EXPECT_TRUE(FilesOf(folder.path()).empty());
}

}  // namespace
}  // namespace npumesh
