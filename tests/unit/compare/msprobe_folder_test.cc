#include "graph/compare/sources/msprobe_folder.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "graph/compare/measures/comparison.h"

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two calls and a module, the second call before the first by name. Statistics only.
std::string Dump(const std::string& max) {
  return R"({"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {
    "Torch.relu.0.forward": {
      "input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": 4.5,
                      "Min": -1, "Mean": NaN, "Norm": Infinity}],
      "input_kwargs": {}, "output": [{"type": "torch.Tensor", "dtype": "torch.bfloat16",
                      "shape": [2, 3], "Max": )" +
         max + R"(, "Min": 0.0, "Mean": 1.0, "Norm": 5.0, "md5": "00ff"}]},
    "Functional.layer_norm.0.forward": {
      "input_args": [{"type": "torch.Tensor", "dtype": "torch.int64", "shape": [], "Max": 3, "Min": 3},
                     [{"type": "int", "value": 32}, {"type": "str", "value": "none"}], null,
                     {"type": "bool", "value": true}],
      "input_kwargs": {"eps": {"type": "float", "value": 1e-05}}, "output": [null]},
    "Module.layer.0.Linear.forward.1": {
      "input_args": [], "input_kwargs": {}, "parameters": {
        "bias": {"type": "torch.Tensor", "dtype": "torch.float16", "shape": [4]},
        "weight": {"type": "torch.Tensor", "dtype": "Float32", "shape": [4, 2]}},
      "output": [[{"type": "torch.Tensor", "dtype": "torch.bool", "shape": [1], "Max": true, "Min": false}]],
      "is_recompute": false},
    "Distributed.all_reduce.0.forward": {"input_args": [{"type": "torch.Tensor", "dtype": "torch.float32",
      "shape": [1], "data_name": "../../secret.pt"}]}}})";
}

std::unique_ptr<TensorSource> Source(const std::string& text) {
  Result<std::unique_ptr<TensorSource>> source = ReadMsprobeDump(text, "step0/rank1", true);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return *std::move(source);
}

TEST(MsprobeFolder, CallsInTheirOrderWithTheirArguments) {
  const auto source = Source(Dump("4.5"));
  ASSERT_EQ(source->operators().size(), 4u);
  const SourceOperator& relu = source->operators()[0];
  EXPECT_EQ(relu.name, "Torch.relu.0.forward");
  EXPECT_EQ(relu.key, "Torch_relu_0_forward");
  EXPECT_EQ(relu.type, "relu");
  const SourceOperator& norm = source->operators()[1];
  EXPECT_EQ(norm.type, "layer_norm");
  EXPECT_THAT(norm.inputs, ElementsAre(0, 1, 4, 5)) << "neither texts nor None, but counted";
  EXPECT_THAT(norm.outputs, ElementsAre());
  const SourceOperator& linear = source->operators()[2];
  EXPECT_EQ(linear.type, "Linear");
  EXPECT_THAT(linear.inputs, ElementsAre(0, 1));
  EXPECT_THAT(linear.outputs, ElementsAre(0));
  EXPECT_TRUE(IsCollectiveType(source->operators()[3].type));
}

TEST(MsprobeFolder, NumbersAreTensorsOfOneElement) {
  const auto source = Source(Dump("4.5"));
  const std::string key = "Functional_layer_norm_0_forward";
  EXPECT_EQ(source->Load(key, Side::kInput, 1)->as<int64_t>()[0], 32);
  EXPECT_EQ(source->Load(key, Side::kInput, 4)->dtype(), DataType::kBool);
  EXPECT_EQ(source->Load(key, Side::kInput, 5)->as<double>()[0], 1e-05);
  EXPECT_TRUE(source->HasElements(key, Side::kInput, 5));
  EXPECT_FALSE(source->HasElements(key, Side::kInput, 0));
  EXPECT_EQ(source->Load(key, Side::kInput, 0).status().code(), Code::kNotFound);
  EXPECT_EQ(source->Load(key, Side::kInput, 2).status().code(), Code::kNotFound);
}

TEST(MsprobeFolder, StatisticsAsPythonWritesThem) {
  const auto source = Source(Dump("4.5"));
  const auto input = source->StatisticsOf("Torch_relu_0_forward", Side::kInput, 0);
  ASSERT_TRUE(input);
  EXPECT_EQ(input->type.ToString(), "float32[2,3]");
  EXPECT_EQ(input->max, 4.5);
  EXPECT_TRUE(std::isnan(*input->mean));
  EXPECT_TRUE(std::isinf(*input->norm));
  const auto weight = source->StatisticsOf("Module_layer_0_Linear_forward_1", Side::kInput, 1);
  EXPECT_EQ(weight->type.ToString(), "float32[4,2]") << "a name of MindSpore";
  EXPECT_EQ(weight->max, std::nullopt);
  EXPECT_EQ(source->StatisticsOf("Module_layer_0_Linear_forward_1", Side::kOutput, 0)->max, 1);
}

TEST(MsprobeFolder, FilesLieBesideTheList) {
  const auto source = Source(Dump("4.5"));
  const std::string key = "Distributed_all_reduce_0_forward";
  EXPECT_EQ(source->FileOf(key, Side::kInput, 0), "");
  EXPECT_FALSE(source->HasElements(key, Side::kInput, 0));
}

TEST(MsprobeFolder, StatisticsThatDifferNameTheCall) {
  const auto mine = Source(Dump("4.75")), golden = Source(Dump("4.5"));
  const Result<Comparison> comparison = CompareSources(*mine, *golden, nullptr, {});
  ASSERT_TRUE(comparison.ok()) << comparison.status().message();
  ASSERT_EQ(comparison->rows.size(), 4u);
  ASSERT_NE(comparison->First(), nullptr);
  EXPECT_EQ(comparison->First()->name, "Torch.relu.0.forward");
  EXPECT_EQ(comparison->First()->Worst()->distance.reason, "Max 4.75 against 4.5");
  CompareOptions loose;
  loose.allowance.relative = 0.1;
  EXPECT_EQ(CompareSources(*mine, *golden, nullptr, loose)->First(), nullptr);
  MemorySource other("other");
  other.Add("Torch.relu.0.forward", "relu", Side::kInput, 0,
            Tensor::Allocate({DataType::kFloat, {2, 3}}));
  const Result<Comparison> refused = CompareSources(*mine, other, nullptr, {});
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("has only statistics"));
}

TEST(MsprobeFolder, ChecksumsCountWhereNothingIsAllowed) {
  DumpedStatistics mine{{DataType::kFloat, {2}}, 1, 0, 0.5, 1, "00ff"};
  DumpedStatistics golden = mine;
  golden.checksum = "00fe";
  EXPECT_EQ(DistanceOf(mine, golden).reason, "checksum 00ff against 00fe");
  EXPECT_TRUE(DistanceOf(mine, golden, {.relative = 1e-6}).same());
  golden.type.shape = Shape({3});
  EXPECT_EQ(DistanceOf(mine, golden).reason, "float32[2] against float32[3]");
}

TEST(MsprobeFolder, PlacesInPaths) {
  EXPECT_EQ(MsprobePlaceOf("dump/step12/rank3").rank, 3);
  EXPECT_EQ(MsprobePlaceOf("dump/step12/rank3").step, 12u);
  EXPECT_EQ(MsprobePlaceOf("dump/step0/proc4711").rank, 0);
  EXPECT_EQ(MsprobePlaceOf("dump/step0/rank").rank, 0);
  EXPECT_EQ(MsprobePlaceOf("dump/ranking").step, std::nullopt);
}

// GE's configuration of a dump often lies beside the dump.
TEST(MsprobeFolder, AConfigurationOfDumpsIsNone) {
  const std::string folder = ::testing::TempDir() + "msprobe_or_not";
  std::filesystem::create_directories(folder);
  const auto is_one = [&folder](const std::string& text) {
    std::ofstream(folder + "/dump.json") << text;
    return IsMsprobeFolder(folder);
  };
  EXPECT_FALSE(is_one(R"({"dump": {"dump_path": ".", "dump_mode": "all", "dump_data": "stats"}})"));
  EXPECT_TRUE(is_one(Dump("1")));
  EXPECT_FALSE(is_one("")) << "nothing says whose it is";
  std::filesystem::create_directories(folder + "/dump_tensor_data");
  EXPECT_TRUE(is_one("")) << "a damaged one";
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(IsMsprobeFolder(folder));
}

TEST(MsprobeFolder, OtherFilesAreRefused) {
  const auto refusal = [](const std::string& text) {
    return std::string(ReadMsprobeDump(text, "x", true).status().message());
  };
  EXPECT_THAT(refusal("{"), HasSubstr("x/dump.json is no whole JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("no dump of msProbe"));
  EXPECT_THAT(refusal(R"({"data": {}})"), HasSubstr("has no tensor"));
  EXPECT_THAT(refusal(R"({"data": {"a": 1, "b": {"output": [{"type": 3}]}}})"),
              HasSubstr("no tensor"));
}

}  // namespace
}  // namespace npumesh
