// What a saved file holds, and how it appears on disk.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <functional>

#include "graph/ir/graph_builder.h"
#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/io/models.h"

namespace npumesh::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Model SmallModel() {
  GraphBuilder g("small");
  const Value x = g.Data("x", {DataType::kFloat16, {2, -1}});
  const Value r = g.RefData("r", {DataType::kInt32, {}});
  const Value y = g.Op("Foo", {{"x1", x}, {"x2", r}}, {}, "", 2);
  g.Order(r, y);
  g.Output({y, g.Port(y, 1)});
  return g.Build().value();
}

TEST(AirWriter, AddsWhatAGeLoaderNeeds) {
  const auto def = FromBytes(Saved(SmallModel()));
  EXPECT_EQ(def.attr().size(), 7u);
  EXPECT_EQ(def.attr().at("target_type").s(), "MINI");
  EXPECT_EQ(def.attr().at("memory_size").value_case(), ge::proto::AttrDef::kI);
  const auto& graph = def.graph(0);
  EXPECT_EQ(graph.name(), "small");
  EXPECT_THAT(graph.input(), ElementsAre("x:0", "r:0"));
  EXPECT_EQ(graph.output_size(), 0);
  for (const auto& op : graph.op()) {
    EXPECT_EQ(op.attr().contains("_input_name_key"), op.input_desc_size() > 0) << op.name();
    EXPECT_EQ(op.attr().contains("_output_name_key"), op.output_desc_size() > 0) << op.name();
    if (op.output_desc_size() == 0) continue;
    const auto& desc = op.output_desc(0);
    EXPECT_TRUE(desc.has_shape());
    EXPECT_EQ(desc.layout(), "ND");
    EXPECT_EQ(desc.device_type(), "NPU");
    EXPECT_EQ(desc.attr().at("format_for_int").i(), 2);
    EXPECT_EQ(desc.attr().at("origin_format").s(), "ND");
    EXPECT_EQ(desc.attr().at("origin_format_for_int").i(), 2);
    EXPECT_EQ(desc.attr().at("origin_shape_initialized").value_case(), ge::proto::AttrDef::kB);
    EXPECT_EQ(op.attr().at("_output_name_key").list().val_type(), 0);
  }
  EXPECT_THAT(graph.op(0).input(), ElementsAre(""));
  EXPECT_EQ(graph.op(0).output_desc(0).dtype(), ge::proto::DT_FLOAT16);
  EXPECT_THAT(graph.op(0).output_desc(0).shape().dim(), ElementsAre(2, -1));
  EXPECT_THAT(graph.op(2).input(), ElementsAre("x:0", "r:0", "r:-1"));
  EXPECT_THAT(graph.op(3).input(), ElementsAre("Foo:0", "Foo:1"));
}

TEST(AirWriter, WritesProducersFirstAndSkipsRemovedNodes) {
  Model model =
      Load(OneGraph("op { name: 'NetOutput' type: 'NetOutput' input: 'a:0' input_desc { } }"
                    "op { name: 'gone' type: 'A' output_desc { } }"
                    "op { name: 'a' type: 'A' output_desc { } }"));
  model.graph.Remove(model.graph.Find("gone"));
  const auto graph = FromBytes(Saved(model)).graph(0);
  ASSERT_EQ(graph.op_size(), 2);
  EXPECT_EQ(graph.op(0).name(), "a");
  EXPECT_EQ(graph.op(1).name(), "NetOutput");
}

TEST(AirWriter, KeepsRecordsOfLiveNodesOnly) {
  Model model =
      Load(OneGraph("input: 'p:0' input: 'd:0' output: 'p:0' output: 'gone:0'"
                    "op { name: 'p' type: 'Placeholder' output_desc { } }"
                    "op { name: 'd' type: 'Data' output_desc { } }"
                    "op { name: 'gone' type: 'A' output_desc { } }"
                    "op { name: 'NetOutput' type: 'NetOutput' input: 'p:0' input_desc { } }"));
  model.graph.Remove(model.graph.Find("gone"));
  const auto graph = FromBytes(Saved(model)).graph(0);
  EXPECT_THAT(graph.input(), ElementsAre("d:0", "p:0"));
  EXPECT_THAT(graph.output(), ElementsAre("p:0"));
}

TEST(AirWriter, RefusesABrokenGraph) {
  Model model = SmallModel();
  model.graph.node(0).controls.push_back(2);  // x waits for its own reader
  const auto bytes = SerializeAir(model);
  EXPECT_EQ(bytes.status().code(), Code::kCorrupt);
  EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("cycle"));
}

TEST(AirWriter, RefusesNamesThatNoFileCanHold) {
  const std::function<void(Node&)> harms[] = {
      [](Node& node) { node.type = "\xff"; },
      [](Node& node) { node.attrs["\xc0\x80"] = AttrValue::Int(1); },
      [](Node& node) { node.output_descs[0].name = "\xed\xa0\x80"; },
      [](Node& node) { node.input_descs[0].layout = "\xf4\x90\x80\x80"; },
      [](Node& node) { node.output_descs[0].attrs["\xe4"] = AttrValue::Int(1); },
      [](Node& node) { node.subgraphs.push_back("a\x80"); },
  };
  for (const auto& harm : harms) {
    Model model = SmallModel();
    harm(model.graph.node(2));
    const Status status = SerializeAir(model).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("node 'Foo': "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("is not UTF-8"));
  }
  Model model = SmallModel();
  model.graph.node(2).attrs["\xf0\x9f\x98\x80\xe4\xb8\xad\xc3\xa4"] = AttrValue::Int(1);
  EXPECT_TRUE(SerializeAir(model).ok());
  model.graph.set_name("\xff");
  EXPECT_EQ(SerializeAir(model).status().code(), Code::kInvalidArgument);
}

// Once such a model loaded and could not be saved: name tables are bytes, port names are strings.
TEST(AirReader, RefusesPortNamesThatNoFileCanHold) {
  const std::string text = OneGraph(
      R"(op { name: "x" type: "Data" output_desc { name: "" }
           attr { key: "_output_name_key" value { list { s: "\377" val_type: VT_LIST_STRING } } }
           attr { key: "_output_name_value" value { list { i: 0 val_type: VT_LIST_INT } } } })");
  EXPECT_THAT(LoadError(text), HasSubstr("node 'x': port name \"\\xff\" is not UTF-8"));
}

TEST(AirWriter, NamesANamelessGraph) {
  EXPECT_EQ(FromBytes(Saved(Load("graph { }"))).graph(0).name(), "graph_1");
}

TEST(AirWriter, RefusesMoreThanAFileCanHold) {
  Model model;
  model.graph.set_name("g");
  TensorAttr value;
  value.desc = std::make_shared<TensorDesc>();
  value.data = std::make_shared<const std::string>(300u << 20, '\0');
  for (int i = 0; i < 8; ++i) {  // eight times the same bytes
    Node node;
    node.name = fmt::format("c{}", i);
    node.type = "Const";
    node.attrs.emplace("value", AttrValue(value));
    ASSERT_TRUE(model.graph.Add(std::move(node)).ok());
  }
  const auto bytes = SerializeAir(model);
  EXPECT_EQ(bytes.status().code(), Code::kUnsupported);
  EXPECT_THAT(std::string(bytes.status().message()), HasSubstr("2516582400 bytes"));
}

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return info.st_mode & 0777;
}

TEST(AirWriter, SavesOverAReadOnlyFile) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("model.air");
  ASSERT_TRUE(SaveAir(SmallModel(), path, {.read_only = true}).ok());
  EXPECT_EQ(ModeOf(path), 0400u);
  ASSERT_TRUE(SaveAir(SmallModel(), path, {}).ok());
  EXPECT_EQ(ModeOf(path) & ~0640u, 0u);
  EXPECT_THAT(folder.List(), ElementsAre("model.air"));
  const auto loaded = LoadModel(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(loaded->path, path);
  EXPECT_EQ(Saved(*loaded), Saved(SmallModel()));
}

TEST(AirWriter, ErrorsNameTheFile) {
  EXPECT_THAT(std::string(SaveAir(SmallModel(), "/no/such/folder/m.air").message()),
              HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace npumesh::testing
