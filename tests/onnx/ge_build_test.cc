// Offline models that a program builds over GE's interface: ONNX in memory or in a file, loaded by
// aclmdl, and what is refused.
#include <gmock/gmock.h>
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <unordered_set>

#include "acl/acl.h"
#include "ge/ge_ir_build.h"
#include "parser/onnx_parser.h"
#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using ge::AscendString;
using ::testing::HasSubstr;
using Options = std::map<AscendString, AscendString>;

class GeBuildTest : public ::testing::Test {
 protected:
  void TearDown() override { ge::aclgrphBuildFinalize(); }

  // y = x + w, x of open length.
  static std::string AddModel() {
    onnx::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(13);
    onnx::GraphProto& graph = *model.mutable_graph();
    graph.set_name("adding");
    for (onnx::ValueInfoProto* const info : {graph.add_input(), graph.add_output()}) {
      auto& type = *info->mutable_type()->mutable_tensor_type();
      type.set_elem_type(onnx::TensorProto::FLOAT);
      type.mutable_shape()->add_dim()->set_dim_param("n");
    }
    graph.mutable_input(0)->set_name("x");
    graph.mutable_output(0)->set_name("y");
    onnx::TensorProto& w = *graph.add_initializer();
    w.set_name("w");
    w.set_data_type(onnx::TensorProto::FLOAT);
    w.add_dims(3);
    for (const float value : {1.F, 2.F, 3.F}) w.add_float_data(value);
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Add");
    for (const char* input : {"x", "w"}) node.add_input(input);
    node.add_output("y");
    return model.SerializeAsString();
  }
  static ge::graphStatus Parse(const std::string& bytes, ge::Graph& graph) {
    return ge::aclgrphParseONNXFromMem(bytes.data(), bytes.size(), {}, graph);
  }
  static std::string Words() {
    const char* const words = aclGetRecentErrMsg();
    return words == nullptr ? "" : words;
  }
  // What the model gives for {10, 20, 30}.
  static std::vector<float> Run(const ge::ModelBufferData& built) {
    EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    uint32_t model = 0;
    EXPECT_EQ(aclmdlLoadFromMem(built.data.get(), built.length, &model), ACL_SUCCESS) << Words();
    aclmdlDataset* sets[2];
    float* memory[2];
    for (int i = 0; i < 2; ++i) {
      void* block = nullptr;
      EXPECT_EQ(aclrtMalloc(&block, 12, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
      memory[i] = static_cast<float*>(block);
      sets[i] = aclmdlCreateDataset();
      aclmdlAddDatasetBuffer(sets[i], aclCreateDataBuffer(block, 12));
    }
    for (int i = 0; i < 3; ++i) memory[0][i] = static_cast<float>(10 * (i + 1));
    EXPECT_EQ(aclmdlExecute(model, sets[0], sets[1]), ACL_SUCCESS) << Words();
    std::vector<float> result(memory[1], memory[1] + 3);
    EXPECT_EQ(aclmdlUnload(model), ACL_SUCCESS);
    for (aclmdlDataset* const set : sets) {
      aclDestroyDataBuffer(aclmdlGetDatasetBuffer(set, 0));
      aclmdlDestroyDataset(set);
    }
    EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
    return result;
  }

  TemporaryFolder folder_;
};

TEST_F(GeBuildTest, BuildsWhatAProgramLoads) {
  Options global = {{ge::ir_option::SOC_VERSION, "Ascend910B1"}, {"ge.opCompilerCacheMode", "off"}};
  ASSERT_EQ(ge::aclgrphBuildInitialize(global), ge::GRAPH_SUCCESS);
  ge::Graph graph("adding");
  EXPECT_FALSE(graph.IsValid());
  ASSERT_EQ(Parse(AddModel(), graph), ge::GRAPH_SUCCESS);
  EXPECT_TRUE(graph.IsValid());
  ge::ModelBufferData built;
  ASSERT_EQ(ge::aclgrphBuildModel(graph, {{ge::ir_option::INPUT_SHAPE, "x:3"}}, built),
            ge::GRAPH_SUCCESS)
      << Words();
  EXPECT_THAT(Run(built), ::testing::ElementsAre(11, 22, 33));

  const std::string path = folder_.path() + "/saved";
  ASSERT_EQ(ge::aclgrphSaveModel(path.c_str(), built), ge::GRAPH_SUCCESS);
  EXPECT_EQ(std::filesystem::file_size(path + ".om"), built.length);
}

TEST_F(GeBuildTest, ReadsFiles) {
  const std::string path = folder_.path() + "/add.onnx";
  ASSERT_TRUE(WriteFile(path, AddModel(), FileKind::kData).ok());
  ge::Graph graph;  // without a name, and filled all the same
  ASSERT_EQ(ge::aclgrphParseONNX(path.c_str(), {{ge::ir_option::INPUT_SHAPE, "x:3"}}, graph),
            ge::GRAPH_SUCCESS);
  ge::ModelBufferData built;
  ASSERT_EQ(ge::aclgrphBuildModel(graph, {}, built), ge::GRAPH_SUCCESS) << Words();
  EXPECT_THAT(Run(built), ::testing::ElementsAre(11, 22, 33));
}

TEST_F(GeBuildTest, RefusalsSayWhy) {
  ge::Graph graph("g");
  ge::ModelBufferData built;
  Words();
  EXPECT_EQ(ge::aclgrphBuildModel(graph, {}, built), ge::GRAPH_PARAM_INVALID);
  EXPECT_THAT(Words(), HasSubstr("aclgrphBuildModel: the graph is empty"));
  EXPECT_EQ(ge::aclgrphParseONNXFromMem(nullptr, 8, {}, graph), ge::GRAPH_PARAM_INVALID);
  EXPECT_EQ(ge::aclgrphParseONNX((folder_.path() + "/none").c_str(), {}, graph), ge::GRAPH_FAILED);
  EXPECT_THAT(Words(), HasSubstr("/none: no such file"));
  EXPECT_EQ(ge::aclgrphSaveModel("/nowhere", built), ge::GRAPH_PARAM_INVALID);

  ASSERT_EQ(Parse("no model at all", graph), ge::GRAPH_SUCCESS);
  Words();
  EXPECT_EQ(ge::aclgrphBuildModel(graph, {}, built), ge::GRAPH_FAILED);
  EXPECT_THAT(Words(), HasSubstr("model.onnx: "));

  ASSERT_EQ(Parse(AddModel(), graph), ge::GRAPH_SUCCESS);
  EXPECT_EQ(ge::aclgrphBuildModel(graph, {{ge::ir_option::INPUT_SHAPE, "z:3"}}, built),
            ge::GRAPH_FAILED);
  EXPECT_THAT(Words(), HasSubstr("E10016 --input_shape names \"z\"; the graph has the inputs x"));
  EXPECT_EQ(built.data, nullptr);
}

TEST_F(GeBuildTest, VersionOfTheInterface) {
  int32_t version[3] = {};
  ASSERT_EQ(ge::aclgrphGetIRVersion(&version[0], &version[1], &version[2]), ge::GRAPH_SUCCESS);
  EXPECT_THAT(version, ::testing::ElementsAre(1, 0, 0));
  EXPECT_EQ(ge::aclgrphGetIRVersion(nullptr, &version[1], &version[2]), ge::GRAPH_PARAM_INVALID);
}

TEST(AscendStringTest, IsAText) {
  const AscendString empty, null(nullptr), ab("ab"), a_zero("a\0b", 3);
  EXPECT_EQ(empty.GetLength(), 0u);
  EXPECT_STREQ(null.GetString(), "");
  EXPECT_TRUE(empty == null && empty != ab && empty < ab && ab > empty && ab >= ab && ab <= ab);
  EXPECT_EQ(a_zero.GetLength(), 3u);
  EXPECT_LT(a_zero, ab);
  EXPECT_EQ(AscendString("cabin").Find(ab), 1u);
  EXPECT_EQ(ab.Find("cabin"), std::string::npos);
  const std::unordered_set<AscendString> set = {ab, AscendString("ab"), empty, null};
  EXPECT_EQ(set.size(), 2u);
}

}  // namespace
}  // namespace npumesh
