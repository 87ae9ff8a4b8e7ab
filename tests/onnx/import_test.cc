// What the import makes of models, and what it says of those it cannot translate. The meaning of
// operators is tested by the cases of ONNX's own suite (backend_cases.py).
#include "graph/onnx/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "graph/io/model_file.h"
#include "graph/onnx/op_table.h"
#include "graph/ops/builtin_ops.h"
#include "tests/onnx/model_builder.h"
#include "tests/onnx/onnx_run.h"

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using testing::FloatTensor;
using testing::FloatType;
using ::testing::HasSubstr;
using testing::ImportBytes;
using testing::OnnxModelBuilder;
using testing::RunOnce;
using testing::RunOnnx;
using testing::SetInt;
using testing::SetInts;
using testing::SetType;

Tensor IntVector(const std::vector<int64_t>& values) {
  return Tensor::FromVector<int64_t>(
      {DataType::kInt64, Shape({static_cast<int64_t>(values.size())})}, values);
}

void ExpectRefused(const std::string& bytes, Code code, const std::string& text) {
  const Result<Model> model = ImportBytes(bytes);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), code) << model.status().ToString();
  EXPECT_THAT(std::string(model.status().message()), HasSubstr(text));
}

TEST(OnnxImport, KeepsNamesAndTypesOfInputs) {
  OnnxModelBuilder g;
  g.Input("a", FloatType({-1, 2})).Input("b", FloatType({2})).Output("y", FloatType({-1, 2}));
  g.Node("Add", {"a", "b"}, {"y"}).set_name("sum");
  const Result<Model> model = ImportBytes(g.Bytes());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::vector<NodeId> data = model->graph.DataNodes();
  ASSERT_EQ(data.size(), 2u);
  EXPECT_EQ(model->graph.node(data[0]).name, "a");
  EXPECT_EQ(model->graph.node(data[0]).output_descs[0].shape, Shape({-1, 2}));
  EXPECT_NE(model->graph.Find("sum"), kNoNode);
}

// Was: a decoder whose causal mask Trilu makes was refused, because "the rank of an operand is not
// known" at the node that reads the mask.
TEST(OnnxImport, TriluOfOpenDimensionsHasTheRankOfItsOperand) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({-1, -1})).Output("y", FloatType({-1, -1}));
  SetInt(g.Node("Trilu", {"x"}, {"upper"}), "upper", 1);
  g.Node("Transpose", {"upper"}, {"y"});  // reverses all axes, so it asks how many there are
  const Result<Model> model = ImportBytes(g.Bytes());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  constexpr int64_t kColumns = 3;
  for (const int64_t rows : {2, 4}) {
    std::vector<float> values, expected;
    for (int64_t i = 0; i < rows * kColumns; ++i) values.push_back(static_cast<float>(i + 1));
    for (int64_t column = 0; column < kColumns; ++column) {
      for (int64_t row = 0; row < rows; ++row) {
        const float value = values[static_cast<size_t>(row * kColumns + column)];
        expected.push_back(row <= column ? value : 0);
      }
    }
    const auto outputs = RunOnce(*model, {FloatTensor({rows, kColumns}, values)});
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    EXPECT_EQ((*outputs)[0].shape(), Shape({kColumns, rows}));
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ((*outputs)[0].as<float>()[i], expected[i]) << "element " << i;
    }
  }
}

// One import serves every size of an open dimension.
TEST(OnnxImport, OpenDimensionsTakeAnySize) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({-1, 4})).Output("y", FloatType({-1, 2, 2}));
  g.Initialiser("shape", IntVector({0, 2, -1}));
  g.Node("Reshape", {"x", "shape"}, {"r"});
  g.Node("Transpose", {"r"}, {"y"});
  const Result<Model> model = ImportBytes(g.Bytes());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  for (const int64_t rows : {1, 3}) {
    std::vector<float> values(static_cast<size_t>(4 * rows));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const auto outputs = RunOnce(*model, {FloatTensor({rows, 4}, values)});
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    EXPECT_EQ((*outputs)[0].shape(), Shape({2, 2, rows}));
    EXPECT_EQ((*outputs)[0].as<float>()[0], 0);
  }
}

TEST(OnnxImport, SurvivesAnAirFile) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({2})).Output("y", FloatType({2}));
  g.Initialiser("w", FloatTensor({2}, {3, 4}));
  g.Node("Mul", {"x", "w"}, {"y"});
  const Result<Model> model = ImportBytes(g.Bytes());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<std::string> air = SerializeAir(*model);
  ASSERT_TRUE(air.ok()) << air.status().ToString();
  const Result<Model> read = ParseModel(*std::move(air), "m.air");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  const auto outputs = RunOnce(*read, {FloatTensor({2}, {1, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  EXPECT_THAT((*outputs)[0].as<float>(), ElementsAre(3, 8));
}

TEST(OnnxImport, ListsEveryNodeWithoutATranslation) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({2})).Output("y", FloatType({2}));
  g.Node("Frobnicate", {"x"}, {"a"}).set_name("first");
  g.Node("Frobnicate", {"a"}, {"b"}).set_name("second");
  onnx::NodeProto& foreign = g.Node("Neg", {"b"}, {"y"});
  foreign.set_domain("com.example");
  foreign.set_name("third");
  const std::string bytes = g.Bytes();
  ExpectRefused(bytes, Code::kUnsupported, "2 operators without a translation");
  ExpectRefused(bytes, Code::kUnsupported, "node \"first\" (Frobnicate)");
  ExpectRefused(bytes, Code::kUnsupported, "node \"second\" (Frobnicate)");
  ExpectRefused(bytes, Code::kUnsupported, "com.example");
}

TEST(OnnxImport, RefusesVersionsItDoesNotKnow) {
  OnnxModelBuilder g(40);
  g.Input("x", FloatType({1})).Output("y", FloatType({1}));
  g.Node("Neg", {"x"}, {"y"});
  ExpectRefused(g.Bytes(), Code::kUnsupported, "uses operator set 40");
}

TEST(OnnxImport, NamesTheNodeThatCannotBe) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({2, 3})).Input("w", FloatType({4, 5})).Output("y", FloatType({2, 5}));
  g.Node("MatMul", {"x", "w"}, {"y"}).set_name("bad");
  ExpectRefused(g.Bytes(), Code::kInvalidArgument, "\"bad\"");
}

TEST(OnnxImport, RefusesNamesThatNothingMakes) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({2})).Output("y", FloatType({2}));
  g.Node("Add", {"x", "z"}, {"y"}).set_name("sum");
  ExpectRefused(g.Bytes(), Code::kCorrupt, "node \"sum\" (Add): reads \"z\", which no node makes");
  OnnxModelBuilder h;
  h.Input("x", FloatType({2})).Output("y", FloatType({2}));
  h.Node("Neg", {"x"}, {"other"});
  ExpectRefused(h.Bytes(), Code::kCorrupt, "no node makes its output \"y\"");
}

TEST(OnnxImport, RefusesInputsWithoutNumbers) {
  OnnxModelBuilder g;
  g.Input("x", {DataType::kString, Shape({2})}).Output("y", {DataType::kString, Shape({2})});
  g.Node("Identity", {"x"}, {"y"});
  ExpectRefused(g.Bytes(), Code::kUnsupported, "input \"x\" is string");
  OnnxModelBuilder s;
  auto* info = s.proto().mutable_graph()->add_input();
  info->set_name("s");
  info->mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type();
  s.Output("y", {DataType::kInt64, Shape()});
  s.Node("SequenceLength", {"s"}, {"y"});
  ExpectRefused(s.Bytes(), Code::kUnsupported, "--sequence s=N");
}

TEST(OnnxImport, RefusesInputsOfTooManyElements) {
  const TensorType large{DataType::kFloat, {int64_t{1} << 33, int64_t{1} << 38}};
  OnnxModelBuilder g;
  g.Input("x", large).Output("y", large);
  g.Node("Identity", {"x"}, {"y"});
  ExpectRefused(g.Bytes(), Code::kInvalidArgument,
                "input \"x\": shape [8589934592,274877906944] has more elements");
}

// Files of version 3 list initialisers among the inputs.
TEST(OnnxImport, TakesInitialisersForNoInputs) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({1})).Input("w", FloatType({1})).Output("y", FloatType({1}));
  g.Initialiser("w", FloatTensor({1}, {5}));
  g.Node("Sub", {"x", "w"}, {"y"});
  const auto outputs = RunOnnx(g.Bytes(), {FloatTensor({1}, {7})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  EXPECT_THAT((*outputs)[0].as<float>(), ElementsAre(2));
}

// A function of the model: its attribute comes from the caller, its operand may be left out.
TEST(OnnxImport, WritesFunctionsWhereTheyAreCalled) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({2, 2})).Output("y", FloatType({2}));
  g.proto().add_opset_import()->set_domain("own");
  g.proto().mutable_opset_import(1)->set_version(1);
  onnx::FunctionProto& function = *g.proto().add_functions();
  function.set_name("SumOver");
  function.set_domain("own");
  function.add_input("a");
  function.add_output("b");
  function.add_attribute("over");
  function.add_opset_import()->set_version(11);
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type("ReduceSum");
  node.add_input("a");
  node.add_output("b");
  auto* axes = node.add_attribute();
  axes->set_name("axes");
  axes->set_type(onnx::AttributeProto::INTS);
  axes->set_ref_attr_name("over");
  SetInt(node, "keepdims", 0);
  onnx::NodeProto& call = g.Node("SumOver", {"x"}, {"y"});
  call.set_domain("own");
  SetInts(call, "over", {0});
  const auto outputs = RunOnnx(g.Bytes(), {FloatTensor({2, 2}, {1, 2, 3, 4})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  EXPECT_THAT((*outputs)[0].as<float>(), ElementsAre(4, 6));
}

TEST(OnnxImport, RefusesFunctionsThatCallThemselves) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({1})).Output("y", FloatType({1}));
  onnx::FunctionProto& function = *g.proto().add_functions();
  function.set_name("Again");
  function.set_domain("own");
  function.add_input("a");
  function.add_output("b");
  for (onnx::NodeProto* node : {function.add_node(), g.proto().mutable_graph()->add_node()}) {
    node->set_op_type("Again");
    node->set_domain("own");
  }
  function.mutable_node(0)->add_input("a");
  function.mutable_node(0)->add_output("b");
  g.proto().mutable_graph()->mutable_node(0)->add_input("x");
  g.proto().mutable_graph()->mutable_node(0)->add_output("y");
  ExpectRefused(g.Bytes(), Code::kUnsupported, "call each other more than");
}

// Two calls in each body are 2^depth of them.
void CallTwice(onnx::FunctionProto& function, const std::string& name, const std::string& callee) {
  function.set_name(name);
  function.set_domain("own");
  function.add_input("a");
  function.add_output("b");
  const char* const results[] = {"c", "b"};
  for (const char* const result : results) {
    onnx::NodeProto& node = *function.add_node();
    node.set_op_type(callee);
    node.set_domain("own");
    node.add_input("a");
    node.add_output(result);
  }
}

OnnxModelBuilder CallsOf(const std::string& name) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({1})).Output("y", FloatType({1}));
  onnx::NodeProto& node = *g.proto().mutable_graph()->add_node();
  node.set_op_type(name);
  node.set_domain("own");
  node.add_input("x");
  node.add_output("y");
  return g;
}

TEST(OnnxImport, FunctionsThatCallTwiceEndSoon) {
  OnnxModelBuilder again = CallsOf("Again");
  CallTwice(*again.proto().add_functions(), "Again", "Again");
  ExpectRefused(again.Bytes(), Code::kUnsupported, "call each other more than");
  OnnxModelBuilder many = CallsOf("F0");
  for (int i = 0; i < 24; ++i) {
    CallTwice(*many.proto().add_functions(), fmt::format("F{}", i), fmt::format("F{}", i + 1));
  }
  CallTwice(*many.proto().add_functions(), "F24", "");
  for (onnx::NodeProto& node : *many.proto().mutable_functions(24)->mutable_node()) {
    node.set_op_type("Identity");
    node.set_domain("");
  }
  ExpectRefused(many.Bytes(), Code::kUnsupported, "functions are called more than 65536 times");
}

// Both branches read a value of the graph around.
TEST(OnnxImport, BranchesSeeTheGraphAround) {
  OnnxModelBuilder g;
  g.Input("c", {DataType::kBool, Shape()}).Input("x", FloatType({2})).Output("y", FloatType({2}));
  g.Initialiser("one", FloatTensor({1}, {1}));
  onnx::NodeProto& node = g.Node("If", {"c"}, {"y"});
  for (const auto& [name, op] :
       {std::pair("then_branch", "Add"), std::pair("else_branch", "Sub")}) {
    auto* attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    onnx::GraphProto& graph = *attribute->mutable_g();
    graph.set_name(name);
    onnx::NodeProto& inner = *graph.add_node();
    inner.set_op_type(op);
    inner.add_input("x");
    inner.add_input("one");
    inner.add_output("r");
    SetType(*graph.add_output(), "r", FloatType({2}));
  }
  for (const uint8_t taken : {1, 0}) {
    const Tensor condition = Tensor::FromVector<uint8_t>({DataType::kBool, Shape()}, {taken});
    const auto outputs = RunOnnx(g.Bytes(), {condition, FloatTensor({2}, {5, 6})});
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    EXPECT_THAT((*outputs)[0].as<float>(), ElementsAre(taken ? 6 : 4, taken ? 7 : 5));
  }
}

// The body reads the value that its variable begins with: it stays while the variable changes.
TEST(OnnxImport, LoopsSeeTheGraphAround) {
  OnnxModelBuilder g;
  g.Input("n", {DataType::kInt64, Shape()}).Input("x", FloatType({1}));
  g.Output("y", FloatType({1})).Output("rows", FloatType({-1, 1}));
  onnx::NodeProto& node = g.Node("Loop", {"n", "", "x"}, {"y", "rows"});
  auto* attribute = node.add_attribute();
  attribute->set_name("body");
  attribute->set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto& body = *attribute->mutable_g();
  body.set_name("body");
  SetType(*body.add_input(), "turn", {DataType::kInt64, Shape()});
  SetType(*body.add_input(), "go_on", {DataType::kBool, Shape()});
  SetType(*body.add_input(), "v", FloatType({1}));
  for (const auto& [op, inputs, output] :
       {std::tuple("Identity", std::vector<std::string>{"go_on"}, "go"),
        std::tuple("Add", std::vector<std::string>{"v", "x"}, "next"),
        std::tuple("Identity", std::vector<std::string>{"v"}, "row")}) {
    onnx::NodeProto& inner = *body.add_node();
    inner.set_op_type(op);
    for (const std::string& input : inputs) inner.add_input(input);
    inner.add_output(output);
  }
  SetType(*body.add_output(), "go", {DataType::kBool, Shape()});
  SetType(*body.add_output(), "next", FloatType({1}));
  SetType(*body.add_output(), "row", FloatType({1}));
  const Result<Model> model = ImportBytes(g.Bytes());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  for (const int64_t turns : {0, 3}) {
    const Tensor count = Tensor::FromVector<int64_t>({DataType::kInt64, Shape()}, {turns});
    const auto outputs = RunOnce(*model, {count, FloatTensor({1}, {2})});
    ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
    EXPECT_THAT((*outputs)[0].as<float>(), ElementsAre(turns == 0 ? 2 : 8));
    EXPECT_EQ((*outputs)[1].shape(), Shape({turns, 1}));
  }
}

// Every row names operators of ours that exist, so that the page does not promise others.
TEST(OnnxTable, NamesOperatorsThatExist) {
  for (const OnnxOp& op : OnnxOps()) {
    if (op.text == "no node" || op.text == "the body for each element") continue;
    std::string rest = op.text;
    while (!rest.empty()) {
      const size_t end = rest.find_first_of(",;");
      const std::string type = rest.substr(0, end);
      EXPECT_TRUE(type == "If" || type == "While" || BuiltinOps().Find(type) != nullptr)
          << op.name << ": " << type;
      rest = end == std::string::npos ? "" : rest.substr(end + 2);
    }
  }
}

TEST(OnnxTable, TheNewestRowThatIsOldEnoughIsTaken) {
  EXPECT_EQ(FindOnnxOp("", "Clip", 6)->since, 6);
  EXPECT_EQ(FindOnnxOp("", "Clip", 10)->since, 6);
  EXPECT_EQ(FindOnnxOp("", "Clip", 13)->since, 11);
  EXPECT_EQ(FindOnnxOp("", "Clip", 5), nullptr);
  EXPECT_EQ(FindOnnxOp("com.example", "Clip", 13), nullptr);
}

}  // namespace
}  // namespace npumesh
