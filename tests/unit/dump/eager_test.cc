// debug.data_dump "npy" and debug.fx_summary "csv".
#include <gtest/gtest.h>
#include <unistd.h>

#include "graph/dump/writer/fx_summary.h"
#include "graph/dump/writer/npy_dumper.h"
#include "graph/io/npy.h"
#include "graph/ops/builtin_ops.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/float16.h"
#include "tests/unit/dump/dumper_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;

class NpyDumperTest : public DumperTest {
 protected:
  NpyDumperTest() {
    const Value a = g_.Op("Negate", {{"x", g_.Data("x", IntType({2}))}}, {}, "blk/a");
    g_.Output({g_.Op("Total", {{"x", a}}, {}, "t")});
  }
  // "node-type.SIDE.i" of the files of a step.
  std::vector<std::string> Files(int step) const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(StepFolder(step), error)) {
      const std::string name = entry.path().filename().string();
      EXPECT_THAT(name, MatchesRegex(".+\\.[0-9]{20}\\.npy"));
      names.push_back(name.substr(0, name.size() - 25));
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string StepFolder(int step) const {
    return fmt::format("{}/worldsize1_global_rank0/{}/{}", folder_.path(),
                       SanitizedName(model_->graph.name()), step);
  }
};

TEST_F(NpyDumperTest, EveryTensorOfEveryOperator) {
  NpyDumper dumper({folder_.path(), {}}, place_);
  const Compiled model = CompileFor({IntTensor({3, 4})});
  ASSERT_TRUE(model.ok());
  const auto executor = Executor::Create(**model, memory_);
  ASSERT_TRUE(executor.ok());
  Write(**executor, 0, IntTensor({3, 4}));
  ASSERT_TRUE((*executor)->Run(&dumper, 0).ok());
  ASSERT_TRUE((*executor)->Run(&dumper, 1).ok());
  const DumpReport report = dumper.Finish();
  ASSERT_TRUE(report.error.ok());
  EXPECT_EQ(report.counts.files, 8u);
  EXPECT_EQ(report.steps, 2u);
  for (const int step : {0, 1}) {
    EXPECT_THAT(Files(step), ElementsAre("blk_a-Negate.INPUT.0", "blk_a-Negate.OUTPUT.0",
                                         "t-Total.INPUT.0", "t-Total.OUTPUT.0"));
  }
  const Result<Tensor> tensor = ReadNpy(PathOf(StepFolder(1), "blk_a-Negate.OUTPUT.0"));
  ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
  EXPECT_EQ(tensor->type(), IntType({2}));
  EXPECT_EQ(tensor->as<int64_t>()[1], -4);
}

TEST_F(NpyDumperTest, Filter) {
  NpyDumper dumper({folder_.path(), [](const Node& node) { return node.type == "Total"; }}, place_);
  ASSERT_TRUE(RunUnder(dumper, {IntTensor({3, 4})}).ok());
  ASSERT_TRUE(dumper.Finish().error.ok());
  EXPECT_THAT(Files(0), ElementsAre("t-Total.INPUT.0", "t-Total.OUTPUT.0"));
  EXPECT_THAT(Files(1), IsEmpty());
}

TEST(NpyDumperTypes, BfloatIsWidened) {
  TemporaryFolder folder;
  GraphBuilder g;
  const TensorType type{DataType::kBfloat16, Shape({3})};
  g.Output({g.Op("Neg", {{"x", g.Data("x", type)}}, {}, "n")});
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok());
  const auto compiled = CompiledModel::Compile(*model, BuiltinOps(), {type}, {}, nullptr, {});
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  DeviceMemory memory(std::make_unique<SmallSegment>(), 0);
  const auto executor = Executor::Create(**compiled, memory);
  ASSERT_TRUE(executor.ok());
  const uint16_t input[] = {Bfloat16::FromFloat(1), Bfloat16::FromFloat(-2),
                            Bfloat16::FromFloat(0.5f)};
  std::memcpy((*executor)->input_buffer(0), input, sizeof input);
  DumpPlace place;
  place.world_size = 2;
  place.rank = 1;
  NpyDumper dumper({folder.path(), {}}, place);
  ASSERT_TRUE((*executor)->Run(&dumper).ok());
  ASSERT_TRUE(dumper.Finish().error.ok());
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.path() + "/worldsize2_global_rank1/" +
                                           SanitizedName(model->graph.name()) + "/0")) {
    const Result<Tensor> tensor = ReadNpy(entry.path().string());
    ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
    EXPECT_EQ(tensor->dtype(), DataType::kFloat);
    EXPECT_EQ(std::abs(tensor->as<float>()[1]), 2.0f);
  }
}

TEST(FxSummaryTest, OneRowForEachType) {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, Shape({2, 3})});
  const Value a = g.Op("Add", {{"x1", x}, {"x2", x}});
  const Value b = g.Op("Add", {{"x1", a}, {"x2", x}});
  g.Output({g.Op("Neg", {{"x", b}})});
  Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok());
  Node strange;
  strange.name = "s";
  strange.type = "No\"Such";
  ASSERT_TRUE(model->graph.Add(std::move(strange)).ok());
  const std::string text = FxSummary(model->graph, BuiltinOps());
  EXPECT_TRUE(
      text.starts_with("\xef\xbb\xbf目标函数,函数类型,支持状态,调用次数,输入统计,输出统计\n\"Add\","
                       "ascend_ir,已支持,2,"));
  EXPECT_NE(text.find("\"Neg\",ascend_ir,已支持,1,\"1次：("), std::string::npos) << text;
  EXPECT_NE(text.find("\"No\"\"Such\",ascend_ir,未注册,1,\"1次：()\",\"1次：()\"\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("Data"), std::string::npos);
}

TEST(FxSummaryTest, FileName) {
  TemporaryFolder folder;
  const auto path = WriteFxSummary(Graph("g"), BuiltinOps(), folder.path(), 3);
  ASSERT_TRUE(path.ok()) << path.status().ToString();
  EXPECT_THAT(*path, MatchesRegex(fmt::format("{}/summary_rank_3_pid_{}_ts_[0-9]{{20}}\\.csv",
                                              folder.path(), getpid())));
  EXPECT_TRUE(ReadFile(*path)->ends_with("输出统计\n"));
}

}  // namespace
}  // namespace npumesh
