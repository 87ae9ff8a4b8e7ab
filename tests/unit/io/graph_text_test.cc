// Text forms that are only written.
#include "graph/io/graph_text.h"

#include <gmock/gmock.h>

#include "graph/io/model_file.h"
#include "graph/ir/graph_builder.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// a, b = split(x + p); NetOutput(concat(b, a)), which waits for x.
Model SmallModel() {
  GraphBuilder g("graph_1");
  const Value x = g.Data("arg0_1", {DataType::kFloat, {-1, 2}});
  const std::vector<float> weights = {1.5f, -2.0f};
  const Value p = g.Const("p", Tensor::FromVector({DataType::kFloat, Shape({2})}, weights));
  const Value sum = g.Op("Add", {{"x1", x}, {"x2", p}}, {}, "Add");
  const Value split =
      g.Op("SplitD", {{"x", sum}},
           {{"split_dim", AttrValue::Int(1)}, {"note", AttrValue::String("a'b")}}, "Split", 2);
  const Value joined = g.Op("ConcatD", {{"x0", g.Port(split, 1)}, {"x1", split}},
                            {{"concat_dim", AttrValue::Int(0)}}, "9join");
  g.Order(x, joined);
  g.Output({joined});
  return std::move(g.Build()).value();
}

TEST(GraphText, GraphDefTextIsNotWrappedAndIsReadAgain) {
  const Model model = SmallModel();
  const std::string text = ToGraphDefText(model);
  EXPECT_THAT(text, ::testing::StartsWith("name: \"graph_1\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("graph {")));
  const Result<Model> again = ParseModel(text, "test.txt");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(ToGraphDefText(*again), text);
}

TEST(GraphText, PythonHasOneLineForEachNode) {
  const std::string text = ToPythonText(SmallModel());
  const size_t head = text.find("\n\n");
  ASSERT_NE(head, std::string::npos);
  EXPECT_THAT(text.substr(0, head), HasSubstr("npumesh has no Python"));
  EXPECT_EQ(text.substr(head + 2),
            "arg0_1_0 = ge.Data(index=0, dtype=0, shape=[-1, 2], placement=\"NPU\", "
            "node_name='arg0_1')\n"
            "p_0 = ge.Const([1.5, -2], dtype=0, node_name='p')\n"
            "Add_0 = ge.Add(arg0_1_0, p_0, node_name='Add')\n"
            "Split_0, Split_1 = ge.SplitD(Add_0, note=\"a'b\", split_dim=1, node_name='Split')\n"
            "n9join_0 = ge.ConcatD([Split_1, Split_0], concat_dim=0, dependencies=[arg0_1_0], "
            "node_name='9join')\n"
            "_ = ge.NetOutput([n9join_0], dependencies=[])\n");
}

TEST(GraphText, PythonConstants) {
  const struct {
    Tensor value;
    const char* text;
  } cases[] = {
      {Tensor::FromVector<int64_t>({DataType::kInt64, Shape()}, {10}), "ge.Const(10, dtype=9,"},
      {Tensor::FromVector<int32_t>({DataType::kInt32, Shape({2, 2})}, {1, 2, 3, 4}),
       "ge.Const([[1, 2], [3, 4]], dtype=3,"},
      {Tensor::FromVector<float>({DataType::kFloat, Shape()}, {-1.0f / 0.0f}),
       "ge.Const(float('-inf'), dtype=0,"},
      {Tensor::FromVector<uint16_t>({DataType::kBfloat16, Shape({1})}, {0x3f80}),
       "ge.Const([1], dtype=27,"},
      {Tensor::Allocate({DataType::kFloat, Shape({65})}), "ge.Const(None, dtype=0, shape=[65],"},
      {Tensor::Allocate({DataType::kFloat, Shape(std::vector<int64_t>(1000, 1))}),
       "ge.Const(None, dtype=0, shape=[1,"},
  };
  for (const auto& [value, expected] : cases) {
    GraphBuilder g;
    g.Output({g.Const("c", value)});
    EXPECT_THAT(ToPythonText(std::move(g.Build()).value()), HasSubstr(expected));
  }
}

// Names from hostile files must not become Python.
TEST(GraphText, PythonNeverRunsNames) {
  GraphBuilder g;
  const Value x = g.Data("import os", {DataType::kFloat, {2}});
  g.Output({g.Op("Abs(); import os #", {{"x", x}}, {{"a=1, b", AttrValue::Int(1)}}, "x'\n#")});
  const std::string text = ToPythonText(std::move(g.Build()).value());
  EXPECT_THAT(text, HasSubstr("import_os_0 = ge.Data("));
  EXPECT_THAT(text, HasSubstr("= ge.Unknown(import_os_0, node_name=\"x'\\n#\")"));
  EXPECT_THAT(text, Not(HasSubstr("import os #")));
}

TEST(GraphText, ReadableHasOneLineForEachNode) {
  EXPECT_EQ(ToReadableText(SmallModel()),
            "graph(\"graph_1\"):\n"
            "  %0 : [#users=1] = Node[type=Data] (inputs = (), attrs = {index: 0})\n"
            "  %1 : [#users=1] = Node[type=Const] (inputs = (), attrs = {value: "
            "<DT_FLOAT[2]>})\n"
            "  %2 : [#users=1] = Node[type=Add] (inputs = (x1=%0, x2=%1), attrs = {})\n"
            "  %3 : [#users=2] = Node[type=SplitD] (inputs = (x=%2), attrs = {note: \"a'b\", "
            "split_dim: 1})\n"
            "  %4 : [#users=1] = get_element[node=%3](0)\n"
            "  %5 : [#users=1] = get_element[node=%3](1)\n"
            "  %6 : [#users=1] = Node[type=ConcatD] (inputs = (x0=%5, x1=%4), attrs = "
            "{concat_dim: 0})\n"
            "  return (%6)\n");
}

TEST(GraphText, OnnxNodesHaveEdgesAndAttributes) {
  const std::string text = ToOnnxText(SmallModel());
  EXPECT_THAT(text, ::testing::StartsWith("ir_version: 6\nproducer_name: \"GE\"\ngraph {\n"));
  EXPECT_THAT(text, HasSubstr("  node {\n"
                              "    input: \"Split:1\"\n"
                              "    input: \"Split:0\"\n"
                              "    input: \"arg0_1:-1\"\n"
                              "    output: \"9join:0\"\n"
                              "    name: \"9join\"\n"
                              "    op_type: \"ge:ConcatD\"\n"));
  EXPECT_THAT(text, HasSubstr("    output: \"arg0_1:0\"\n    output: \"arg0_1:-1\"\n"));
  // Zero is left out, as GE does.
  EXPECT_THAT(text, HasSubstr("      name: \"concat_dim\"\n      type: INT\n"));
  EXPECT_THAT(text, HasSubstr("      name: \"split_dim\"\n      i: 1\n      type: INT\n"));
  EXPECT_THAT(text, HasSubstr("      name: \"note\"\n      s: \"a\\'b\"\n      type: STRING\n"));
  EXPECT_THAT(text, HasSubstr("      name: \"value_desc_dtype\"\n      s: \"DT_FLOAT\"\n"));
  EXPECT_THAT(text, HasSubstr("      name: \"value_data\"\n"));
}

TEST(GraphText, OnnxLevelsLeaveOut) {
  const std::string second = ToOnnxText(SmallModel(), 2);
  EXPECT_THAT(second, Not(HasSubstr("value_data")));
  EXPECT_THAT(second, Not(HasSubstr("note")));
  EXPECT_THAT(second, HasSubstr("split_dim"));
  const std::string third = ToOnnxText(SmallModel(), 3);
  EXPECT_THAT(third, Not(HasSubstr("attribute")));
  EXPECT_THAT(third, HasSubstr("input: \"Split:1\""));
}

}  // namespace
}  // namespace npumesh
