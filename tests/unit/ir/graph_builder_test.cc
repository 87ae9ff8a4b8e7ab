// GraphBuilder: what it builds, and how it reports mistakes.
#include "graph/ir/graph_builder.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using ::testing::HasSubstr;

TEST(GraphBuilder, BuildsWhatIsWrittenDown) {
  GraphBuilder g("decoder");
  const Value x = g.Data("x", {DataType::kFloat, {2, 4}});
  const Value cache = g.RefData("cache", {DataType::kFloat16, {-1}});
  const Value p = g.Const("p", Tensor::Allocate({DataType::kFloat, Shape({4})}));
  const Value w = g.FileConstant("w", {DataType::kBfloat16, {8}}, "dir/w");
  const Value sum = g.Op("Add", {{"x1", x}, {"x2", p}});
  const Value split = g.Op("Split", {{"x", sum}}, {{"num_split", AttrValue::Int(2)}}, "", 2);
  const Value second = g.Op("Add", {{"x1", g.Port(split, 1)}, {"x2", w}});
  g.Order(cache, second);
  g.Output({second, x});
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();

  const Graph& graph = model->graph;
  EXPECT_EQ(graph.name(), "decoder");
  EXPECT_EQ(graph.node(x.node).IntAttr("index", -1), 0);
  EXPECT_EQ(graph.node(cache.node).IntAttr("index", -1), 1);
  EXPECT_EQ(graph.node(cache.node).type, "RefData");
  EXPECT_EQ(graph.node(second.node).name, "Add_1");
  EXPECT_EQ(graph.node(second.node).inputs[0], (Value{split.node, 1}));
  EXPECT_THAT(graph.node(second.node).controls, ::testing::ElementsAre(cache.node));
  EXPECT_EQ(graph.node(split.node).output_descs[1].name, "y1");
  EXPECT_EQ(graph.node(sum.node).FindInput("x2"), 1);
  EXPECT_EQ(graph.node(sum.node).FindInput("x3"), -1);
  EXPECT_EQ(graph.node(sum.node).input_descs[0].shape, Shape({2, 4}));
  EXPECT_EQ(graph.node(sum.node).output_descs[0].shape, std::nullopt);
  EXPECT_EQ(graph.node(w.node).StringAttr("file_path", ""), "dir/w");
  EXPECT_EQ(graph.node(w.node).IntAttr("dtype", -1), 27);
  const Node& output = graph.node(graph.NetOutput());
  EXPECT_EQ(output.input_descs[1].name, "input1");
  EXPECT_EQ(output.inputs[1], x);
  EXPECT_TRUE(output.output_descs.empty());
}

TEST(GraphBuilder, MakesNamesUniqueAndConstantsShort) {
  GraphBuilder g;
  const Value a = g.Ints({1, 2, 3});
  const Value b = g.Int(7);
  const Value c = g.Data("Const", {DataType::kFloat, {}});
  g.Output({});
  const Model model = g.Build().value();
  EXPECT_EQ(model.graph.name(), "graph_1");
  EXPECT_EQ(model.graph.node(a.node).name, "Const");
  EXPECT_EQ(model.graph.node(b.node).name, "Const_1");
  EXPECT_EQ(model.graph.node(c.node).name, "Const_2");
  EXPECT_EQ(model.graph.node(a.node).output_descs[0].shape, Shape({3}));
  EXPECT_EQ(model.graph.node(b.node).output_descs[0].shape, Shape());
}

TEST(GraphBuilder, ReportsTheFirstMistake) {
  GraphBuilder other;
  for (int i = 0; i < 9; ++i) other.Data("x", {DataType::kFloat, {}});
  const Value foreign = other.Data("x", {DataType::kFloat, {}});
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {}});
  g.Op("Add", {{"x1", x}, {"x2", foreign}}, {}, "sum");
  g.Output({x});
  g.Output({x});
  const Status status = g.Build().status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "node \"sum\" (Add): port \"x2\" is fed with a value of another builder");
}

TEST(GraphBuilder, ReportsOutputsAndPorts) {
  GraphBuilder none("g");
  EXPECT_EQ(none.Build().status().message(), "graph \"g\": no Output");
  GraphBuilder twice("g");
  twice.Output({});
  twice.Output({});
  EXPECT_EQ(twice.Build().status().message(), "graph \"g\": Output was called twice");
  GraphBuilder port("g");
  const Value x = port.Data("x", {DataType::kFloat, {}});
  port.Output({port.Port(x, 1)});
  EXPECT_THAT(std::string(port.Build().status().message()),
              HasSubstr("reads output 1 of \"x\", which has 1"));
}

TEST(GraphBuilder, IsEmptyAfterBuild) {
  GraphBuilder g;
  g.Data("x", {DataType::kFloat, {}});
  g.Output({});
  ASSERT_TRUE(g.Build().ok());
  EXPECT_FALSE(g.Build().ok());  // no Output yet
}

// `nn_module_stack`, as TorchAir writes it.
TEST(GraphBuilder, RecordsTheLayersOfNodes) {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {2}});
  const Value top = g.Op("Abs", {{"x", x}}, {}, "top");
  g.EnterModule("submodel", "pkg.Model2");
  g.EnterModule("layer[1]", "pkg.Layer");
  const Value inner = g.Op("Abs", {{"x", top}}, {}, "inner");
  g.LeaveModule();
  const Value outer = g.Op("Abs", {{"x", inner}}, {}, "outer");
  g.LeaveModule();
  g.Output({outer});
  Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok());
  Graph& graph = model->graph;
  const auto stack = [&graph](const char* name) {
    return graph.node(graph.Find(name)).StringAttr("nn_module_stack", "none");
  };
  EXPECT_EQ(stack("top"), "none");
  EXPECT_EQ(stack("outer"),
            "{'L__self___submodel': (\"L['self'].submodel\", <class 'pkg.Model2'>)}");
  EXPECT_EQ(stack("inner"),
            "{'L__self___submodel': (\"L['self'].submodel\", <class 'pkg.Model2'>), "
            "'L__self___submodel_layer_1': (\"L['self'].submodel.layer[1]\", "
            "<class 'pkg.Layer'>)}");
  EXPECT_EQ(stack("NetOutput"), "none");
  DropModuleStacks(*model);
  EXPECT_EQ(stack("inner"), "none");
}

TEST(GraphBuilder, LeavingNoLayerIsAnError) {
  GraphBuilder g;
  g.LeaveModule();
  g.Output({g.Data("x", {DataType::kFloat, {2}})});
  EXPECT_THAT(std::string(g.Build().status().message()),
              testing::HasSubstr("LeaveModule without EnterModule"));
}

}  // namespace
}  // namespace npumesh
