#include "graph/compare/sources/dump_folder.h"

#include "launch/dump/listing.h"
#include "tests/unit/dump_tools/dump_fixture.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DumpFolder : public DumpFixture {};

TEST_F(DumpFolder, IsASourceInOrderOfTime) {
  WriteOperator("0", "Mul", "layer/second", 2, {Floats({1}), Floats({2})}, {Floats({2})});
  WriteOperator("0", "Add", "first", 1, {}, {Floats({1, 2})});
  const auto source = OpenDumpFolder(Path("0"));
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  ASSERT_EQ((*source)->operators().size(), 2u);
  EXPECT_EQ((*source)->operators()[0].name, "first");
  const SourceOperator& second = (*source)->operators()[1];
  EXPECT_EQ(second.key, "layer_second");
  EXPECT_EQ(second.name, "layer/second");
  EXPECT_THAT(second.inputs, ElementsAre(0, 1));
  EXPECT_EQ((*source)->Load("layer_second", Side::kInput, 1)->as<float>()[0], 2);
  EXPECT_EQ((*source)->AddressOf("first", Side::kOutput, 0), 4096u);
  EXPECT_EQ((*source)->Load("first", Side::kInput, 0).status().code(), Code::kNotFound);
}

TEST_F(DumpFolder, InputsAndOutputsMayComeInSeparateFiles) {
  WriteOperator("0", "HcomAllReduce", "sum", 1, {Floats({1})}, {});
  WriteOperator("0", "HcomAllReduce", "sum", 2, {}, {Floats({4})});
  const auto source = OpenDumpFolder(Path("0"));
  ASSERT_TRUE(source.ok());
  ASSERT_EQ((*source)->operators().size(), 1u);
  EXPECT_EQ((*source)->Load("sum", Side::kInput, 0)->as<float>()[0], 1);
  EXPECT_EQ((*source)->Load("sum", Side::kOutput, 0)->as<float>()[0], 4);
}

TEST_F(DumpFolder, ATypeThatDoesNotFitIsBytes) {
  Tensor odd = Floats({1, 2});
  DumpRecord record;
  record.outputs.push_back(Describe(odd));
  record.outputs[0].type.dtype = DataType::kUndefined;
  DumpFileName name;
  name.op_type = "Add";
  name.op_name = "odd";
  name.stream = 1;
  name.time = 1700000000000000;
  Write("0", name, record, "12345678");
  const auto source = OpenDumpFolder(Path("0"));
  ASSERT_TRUE(source.ok());
  EXPECT_EQ((*source)->Load("odd", Side::kOutput, 0)->type().ToString(), "int8[8]");
}

TEST_F(DumpFolder, DamagedFilesGiveAnErrorThatNamesThem) {
  const std::string path = WriteOperator("0", "Add", "a", 1, {}, {Floats({1, 2, 3})});
  std::ifstream whole_file(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(whole_file)), {});
  for (size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    const auto source = OpenDumpFolder(Path("0"));
    ASSERT_FALSE(source.ok()) << length;
    EXPECT_THAT(source.status().message(), HasSubstr("Add.a.1")) << length;
  }
}

TEST_F(DumpFolder, StepsOfATreeByRankTimeAndStep) {
  for (const char* folder : {"worldsize2_global_rank1/20240101000000/1/decoder/1/10",
                             "worldsize2_global_rank0/20240101000000/0/decoder/1/2",
                             "worldsize2_global_rank0/20240101000000/0/decoder/1/10"}) {
    WriteOperator(folder, "Add", "a", 1, {}, {Floats({1})});
  }
  const auto steps = FindDumpSteps(Path());
  ASSERT_TRUE(steps.ok());
  ASSERT_EQ(steps->size(), 3u);
  EXPECT_EQ((*steps)[0].rank, 0);
  EXPECT_EQ((*steps)[0].index, 2u);
  EXPECT_EQ((*steps)[1].index, 10u);
  EXPECT_EQ((*steps)[2].rank, 1);
  EXPECT_EQ((*steps)[2].world_size, 2);
  EXPECT_EQ((*steps)[2].model, "decoder");
  EXPECT_EQ((*steps)[2].model_id, "1");
  EXPECT_EQ((*steps)[2].time, "20240101000000");
}

TEST_F(DumpFolder, NothingInATreeIsAnError) {
  EXPECT_EQ(FindDumpSteps(Path("absent")).status().code(), Code::kNotFound);
  EXPECT_THAT(FindDumpSteps(Path()).status().message(), HasSubstr("neither dump files nor"));
}

TEST_F(DumpFolder, ListingAndStatistics) {
  WriteOperator("worldsize1_global_rank0/20240101000000/0/decoder/1/0", "Add", "a", 1,
                {Floats({1, -2})}, {Floats({3, 0, NAN, INFINITY})});
  const auto steps = FindDumpSteps(Path());
  ASSERT_TRUE(steps.ok());
  const auto listed = ListStep(steps->front(), true);
  ASSERT_TRUE(listed.ok());
  const std::string listing = ToText(*listed);
  EXPECT_THAT(listing, HasSubstr("rank 0 of 1  20240101000000  decoder/1  step 0  1 operators"));
  EXPECT_THAT(listing, HasSubstr("(float32[2]) -> (float32[4])"));
  const auto stat = StatisticsOf(steps->front().path, "");
  ASSERT_TRUE(stat.ok());
  const std::string lines = ToText(*stat);
  EXPECT_THAT(lines, HasSubstr("a (Add) input 0 float32[2]  min -2 max 1 mean -0.5 std 1.5 "
                               "l2 2.23607 zeros 0 NaN 0 Inf 0"));
  EXPECT_THAT(lines, HasSubstr("output 0 float32[4]  min 0 max 3 mean 1.5 std 1.5 l2 3 zeros 1 "
                               "NaN 1 Inf 1"));
  EXPECT_TRUE(StatisticsOf(steps->front().path, "other")->empty());
}

// The same for programs.
TEST_F(DumpFolder, ListingAndStatisticsAsJson) {
  const std::string folder = "worldsize1_global_rank0/20240101000000/0/decoder/1/0";
  WriteOperator(folder, "Add", "a", 1, {Floats({1, -2})}, {Floats({NAN})});
  const auto steps = FindDumpSteps(Path());
  ASSERT_TRUE(steps.ok());
  const nlohmann::json listed = ToJsonObject(*ListStep(steps->front(), true));
  EXPECT_EQ(listed["folder"], steps->front().path);
  EXPECT_EQ(listed["step"], 0);
  EXPECT_EQ(listed["operators"], 1);
  EXPECT_EQ(listed["rows"], nlohmann::json::parse(R"([{"type": "Add", "name": "a", "task": 1,
      "statistics": false, "inputs": ["float32[2]"], "outputs": ["float32[1]"]}])"));
  const nlohmann::json tensors = ToJsonObject(*StatisticsOf(steps->front().path, "a"))["tensors"];
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0]["moments"], nlohmann::json::parse(R"({"min": -2.0, "max": 1.0, "mean": -0.5,
      "std": 1.5, "l2": 2.23606797749979, "finite": 2, "zeros": 0, "nans": 0, "infinities": 0})"));
  EXPECT_EQ(tensors[1]["side"], "output");
  EXPECT_EQ(tensors[1]["moments"]["finite"], 0);
  EXPECT_EQ(tensors[1]["moments"]["nans"], 1);
}

}  // namespace
}  // namespace npumesh
