// Models as tools leave them: nodes in any order, values whose rank or type only the run knows,
// branches that do not fit, recurrent layers of any length; and what the import is told of inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "graph/onnx/import.h"
#include "graph/onnx/reader.h"
#include "graph/ops/builtin_ops.h"
#include "tests/onnx/model_builder.h"
#include "tests/onnx/onnx_run.h"

namespace npumesh {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using testing::FloatTensor;
using testing::FloatType;
using ::testing::HasSubstr;
using testing::ImportBytes;
using ::testing::IsEmpty;
using testing::OnnxModelBuilder;
using ::testing::Pointwise;
using testing::RunOnce;
using testing::RunOnnx;
using testing::SetInt;
using testing::SetInts;
using testing::SetType;
using testing::ToProto;

Tensor Longs(Shape shape, const std::vector<int64_t>& values) {
  return Tensor::FromVector<int64_t>({DataType::kInt64, std::move(shape)}, values);
}

Tensor BoolScalar(bool value) {
  Tensor tensor = Tensor::Allocate({DataType::kBool, Shape()});
  *tensor.mutable_data() = std::byte{value};
  return tensor;
}

std::vector<float> FloatsOf(const Result<std::vector<Tensor>>& outputs, size_t port = 0) {
  if (!outputs.ok()) {
    ADD_FAILURE() << outputs.status().ToString();
    return {};
  }
  const auto values = (*outputs)[port].as<float>();
  return {values.begin(), values.end()};
}

Result<Model> ImportFor(const OnnxModelBuilder& g, const OnnxImportOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const OnnxModel model, ReadOnnx(g.Bytes(), ""));
  return ImportOnnx(model, BuiltinOps(), options);
}

std::string MessageOf(const OnnxModelBuilder& g) {
  return std::string(ImportBytes(g.Bytes()).status().message());
}

// An input of any rank.
void AddInputWithoutShape(OnnxModelBuilder& g, const std::string& name) {
  g.Input(name, FloatType({1}));
  g.proto()
      .mutable_graph()
      ->mutable_input(g.proto().graph().input_size() - 1)
      ->mutable_type()
      ->mutable_tensor_type()
      ->clear_shape();
}

onnx::GraphProto& BranchOf(onnx::NodeProto& node, const std::string& name) {
  auto* const attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::GRAPH);
  attribute->mutable_g()->set_name(name);
  return *attribute->mutable_g();
}

onnx::NodeProto& AddNode(onnx::GraphProto& graph, const std::string& op,
                         const std::vector<std::string>& inputs, const std::string& output) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  node.set_name(op + "_" + output);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

// z = x squeezed along axis 0 where its size there is 1, and x otherwise: what torch.jit writes for
// a squeeze of an open dimension.
void SqueezeIfOne(OnnxModelBuilder& g) {
  g.Initialiser("zero", Longs({}, {0})).Initialiser("one", Longs({}, {1}));
  g.Initialiser("axes", Longs({1}, {0}));
  g.Node("Shape", {"x"}, {"s"});
  SetInt(g.Node("Gather", {"s", "zero"}, {"d"}), "axis", 0);
  g.Node("Equal", {"d", "one"}, {"is_one"});
  onnx::NodeProto& node = g.Node("If", {"is_one"}, {"z"});
  onnx::GraphProto& yes = BranchOf(node, "then_branch");
  AddNode(yes, "Squeeze", {"x", "axes"}, "squeezed");
  yes.add_output()->set_name("squeezed");
  onnx::GraphProto& no = BranchOf(node, "else_branch");
  AddNode(no, "Identity", {"x"}, "as_it_is");
  no.add_output()->set_name("as_it_is");
}

// An LSTM of 3 features and 2 states whose weights are all 0.1 and 0.2.
void AddLstm(OnnxModelBuilder& g, const std::string& x) {
  g.Initialiser("W", FloatTensor({1, 8, 3}, std::vector<float>(24, 0.1F)));
  g.Initialiser("R", FloatTensor({1, 8, 2}, std::vector<float>(16, 0.2F)));
  SetInt(g.Node("LSTM", {x, "W", "R"}, {"all", "last"}), "hidden_size", 2);
}

// ---- order, and mistakes ----

TEST(ForeignModels, NodesMayStandInAnyOrder) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({4})).Output("y", FloatType({4}));
  g.Node("Relu", {"b"}, {"y"});
  g.Node("Add", {"a", "a"}, {"b"});
  g.Node("Neg", {"x"}, {"a"});
  std::vector<std::string> notes;
  OnnxImportOptions options;
  options.note = [&](const std::string& note) { notes.push_back(note); };
  const Result<Model> model = ImportFor(g, options);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_THAT(notes, ElementsAre(HasSubstr("2 nodes stood before one that makes what they read")));
  EXPECT_THAT(FloatsOf(RunOnce(*model, {FloatTensor({4}, {1, -2, 3, -4})})),
              ElementsAre(0, 4, 0, 8));
}

TEST(ForeignModels, NodesInOrderAreNotSpokenOf) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({1})).Output("y", FloatType({1}));
  g.Node("Neg", {"x"}, {"a"});
  g.Node("Relu", {"a"}, {"y"});
  std::vector<std::string> notes;
  OnnxImportOptions options;
  options.note = [&](const std::string& note) { notes.push_back(note); };
  EXPECT_TRUE(ImportFor(g, options).ok());
  EXPECT_THAT(notes, IsEmpty());
}

// In a branch as well, which reads of the graph around.
TEST(ForeignModels, BranchesAreSortedToo) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({2})).Input("c", {DataType::kBool, Shape()}).Output("y", FloatType({2}));
  onnx::NodeProto& node = g.Node("If", {"c"}, {"y"});
  onnx::GraphProto& yes = BranchOf(node, "then_branch");
  AddNode(yes, "Abs", {"inside"}, "left");
  AddNode(yes, "Neg", {"around"}, "inside");
  yes.add_output()->set_name("left");
  onnx::GraphProto& no = BranchOf(node, "else_branch");
  AddNode(no, "Neg", {"around"}, "right");
  no.add_output()->set_name("right");
  g.Node("Add", {"x", "x"}, {"around"});
  const auto run = [&](bool c) {
    return FloatsOf(RunOnnx(g.Bytes(), {FloatTensor({2}, {1, -2}), BoolScalar(c)}));
  };
  EXPECT_THAT(run(true), ElementsAre(2, 4));
  EXPECT_THAT(run(false), ElementsAre(-2, 4));
}

TEST(ForeignModels, ACircleOfNodesIsNamed) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({1})).Output("y", FloatType({1}));
  g.Node("Neg", {"x"}, {"free"});
  g.Node("Add", {"free", "c"}, {"b"}).set_name("first");
  g.Node("Neg", {"b"}, {"c"}).set_name("second");
  g.Node("Abs", {"c"}, {"y"}).set_name("after");
  EXPECT_THAT(MessageOf(g), AllOf(HasSubstr("2 nodes read each other in a circle"),
                                  HasSubstr("\"first\""), HasSubstr("\"second\"")));
}

// Each mistake once; what hangs on a node that is wrong is no mistake.
TEST(ForeignModels, AllMistakesAreReportedAtOnce) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({2, 3})).Input("w", FloatType({4, 5})).Output("y", FloatType({2, 3}));
  g.Node("MatMul", {"x", "w"}, {"a"}).set_name("sizes");
  g.Node("Relu", {"a"}, {"b"}).set_name("hangs on it");
  SetInts(g.Node("Transpose", {"x"}, {"c"}), "perm", {0, 0});
  g.proto().mutable_graph()->mutable_node(2)->set_name("turned");
  g.Node("Add", {"x", "nowhere"}, {"d"}).set_name("reads");
  g.Node("Unheard", {"x"}, {"e"}).set_name("unknown");
  g.Node("Neg", {"x"}, {"y"});
  const std::string text = MessageOf(g);
  EXPECT_THAT(text, AllOf(HasSubstr("4 mistakes: "), HasSubstr("Unheard of version 17"),
                          HasSubstr("\"sizes\""), HasSubstr("\"turned\""),
                          HasSubstr("reads \"nowhere\", which no node makes")));
  EXPECT_EQ(text.find("hangs on it"), std::string::npos) << text;
}

// ---- types and ranks that the run decides ----

TEST(ForeignModels, ATypeIsKnownWithoutTheLengthOfAShape) {
  OnnxModelBuilder g;
  g.Input("s", {DataType::kInt64, Shape({-1})}).Output("y", FloatType({-1}));
  onnx::NodeProto& fill = g.Node("ConstantOfShape", {"s"}, {"z"});
  auto* const value = fill.add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  *value->mutable_t() = ToProto("three", Longs({1}, {3}));
  SetInt(g.Node("Cast", {"z"}, {"y"}), "to", onnx::TensorProto::FLOAT);
  g.proto()
      .mutable_graph()
      ->mutable_output(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->clear_shape();
  EXPECT_THAT(FloatsOf(RunOnnx(g.Bytes(), {Longs({1}, {2})})), ElementsAre(3, 3));
}

TEST(ForeignModels, ATypeIsKnownWithoutTheNumberOfTheLargest) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({4})).Input("k", {DataType::kInt64, Shape({1})});
  g.Output("y", {DataType::kInt32, Shape({-1})});
  g.Node("TopK", {"x", "k"}, {"v", "i"});
  SetInt(g.Node("Cast", {"i"}, {"y"}), "to", onnx::TensorProto::INT32);
  const auto outputs = RunOnnx(g.Bytes(), {FloatTensor({4}, {1, 4, 2, 3}), Longs({1}, {2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  EXPECT_THAT((*outputs)[0].as<int32_t>(), ElementsAre(1, 3));
}

// The rank of an operand follows from the operator that reads it.
TEST(ForeignModels, AnOperatorTellsTheRankOfItsOperand) {
  OnnxModelBuilder g(16);
  g.Input("x", FloatType({-1, 2, 1, 3})).Output("last", FloatType({1, 1, 2}));
  SqueezeIfOne(g);
  AddLstm(g, "z");
  EXPECT_THAT(FloatsOf(RunOnnx(g.Bytes(), {FloatTensor({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6})})),
              Pointwise(FloatNear(1e-6F), {0.649316F, 0.649316F}));
}

// Where the size is known, the If is gone, though another size is open.
TEST(ForeignModels, SizesDecideAnIfBesideOpenOnes) {
  OnnxModelBuilder g(16);
  g.Input("x", FloatType({1, -1})).Output("y", FloatType({-1}));
  SqueezeIfOne(g);
  g.Node("Neg", {"z"}, {"y"});
  const Result<Model> model = ImportBytes(g.Bytes());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_THAT(model->subgraphs, IsEmpty());
  EXPECT_THAT(FloatsOf(RunOnce(*model, {FloatTensor({1, 2}, {1, 2})})), ElementsAre(-1, -2));
}

// A branch for other sizes fails only when it is taken.
TEST(ForeignModels, ABranchThatDoesNotFitFailsWhenItIsTaken) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({2, 3}))
      .Input("c", {DataType::kBool, Shape()})
      .Output("y", FloatType({2, 2}));
  g.Initialiser("w", FloatTensor({3, 2}, {1, 0, 0, 1, 0, 0}));
  g.Initialiser("other", FloatTensor({5, 2}, std::vector<float>(10, 1)));
  onnx::NodeProto& node = g.Node("If", {"c"}, {"y"});
  for (const auto& [branch, weight] : {std::pair{"then_branch", "w"}, {"else_branch", "other"}}) {
    onnx::GraphProto& graph = BranchOf(node, branch);
    AddNode(graph, "MatMul", {"x", weight}, std::string("made_") + weight);
    graph.add_output()->set_name(std::string("made_") + weight);
  }
  const auto run = [&](bool c) {
    return RunOnnx(g.Bytes(), {FloatTensor({2, 3}, {1, 2, 3, 4, 5, 6}), BoolScalar(c)});
  };
  EXPECT_THAT(FloatsOf(run(true)), ElementsAre(1, 2, 4, 5));
  const auto refused = run(false);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("made_other"));
  // Where neither fits, nothing could run.
  g.Initialiser("w", FloatTensor({4, 2}, std::vector<float>(8, 1)));
  EXPECT_THAT(MessageOf(g), AllOf(HasSubstr("made_w"), HasSubstr("made_other")));
}

TEST(ForeignModels, WhatIsNotKnownIsNamed) {
  OnnxModelBuilder g;
  AddInputWithoutShape(g, "x");
  g.Output("y", FloatType({1}));
  g.Node("GlobalMaxPool", {"x"}, {"y"}).set_name("pool");
  EXPECT_THAT(MessageOf(g), AllOf(HasSubstr("node \"pool\""), HasSubstr("that of \"x\" (Data)"),
                                  HasSubstr("--dim")));
}

// ---- recurrent layers ----

TEST(ForeignModels, RecurrentLayersMayHaveAnyLength) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({-1, 1, 3})).Output("all", FloatType({-1, 1, 1, 2}));
  AddLstm(g, "x");
  const Result<Model> model = ImportBytes(g.Bytes());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_THAT(FloatsOf(RunOnce(*model, {FloatTensor({2, 1, 3}, {1, 2, 3, 4, 5, 6})})),
              Pointwise(FloatNear(1e-5F), {0.21532F, 0.21532F, 0.649316F, 0.649316F}));
  EXPECT_THAT(FloatsOf(RunOnce(*model, {FloatTensor({1, 1, 3}, {1, 2, 3})})),
              Pointwise(FloatNear(1e-5F), {0.21532F, 0.21532F}));
}

// A form that has no operator of ours: written down for a known length, a loop for an open one,
// and both give the same bits.
TEST(ForeignModels, ALoopGivesWhatStepsGive) {
  for (const std::string op : {"RNN", "GRU", "LSTM"}) {
    for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
      const int64_t gates = op == "RNN" ? 1 : op == "GRU" ? 3 : 4;
      const int64_t ways = direction == "bidirectional" ? 2 : 1;
      const auto build = [&](int64_t steps) {
        OnnxModelBuilder g;
        g.Input("x", FloatType({steps, 2, 3})).Output("y", FloatType({-1, ways, 2, 2}));
        g.Output("h", FloatType({ways, 2, 2}));
        std::vector<float> w, r;
        for (int64_t i = 0; i < ways * gates * 2 * 3; ++i)
          w.push_back(0.05F * static_cast<float>(i % 7));
        for (int64_t i = 0; i < ways * gates * 2 * 2; ++i)
          r.push_back(0.1F * static_cast<float>(i % 5));
        g.Initialiser("W", FloatTensor({ways, gates * 2, 3}, w));
        g.Initialiser("R", FloatTensor({ways, gates * 2, 2}, r));
        g.Initialiser("lengths", Tensor::FromVector<int32_t>({DataType::kInt32, {2}}, {3, 1}));
        onnx::NodeProto& node = g.Node(op, {"x", "W", "R", "", "lengths"}, {"y", "h"});
        SetInt(node, "hidden_size", 2);
        auto* const way = node.add_attribute();
        way->set_name("direction");
        way->set_type(onnx::AttributeProto::STRING);
        way->set_s(direction);
        auto* const clip = node.add_attribute();
        clip->set_name("clip");
        clip->set_type(onnx::AttributeProto::FLOAT);
        clip->set_f(0.5F);
        return RunOnnx(
            g.Bytes(),
            {FloatTensor({3, 2, 3}, {1, 2, 3, 4, 5, 6, -1, -2, -3, 1, 0, 1, 2, 1, 2, 3, -3, 3})});
      };
      const auto steps = build(3), loop = build(-1);
      for (const size_t port : {0, 1}) {
        const std::vector<float> written = FloatsOf(steps, port);
        EXPECT_FALSE(written.empty());
        EXPECT_EQ(written, FloatsOf(loop, port)) << op << " " << direction << " " << port;
      }
    }
  }
}

// ---- what the import is told of inputs ----

TEST(ForeignModels, InputsHaveTheShapesAndValuesThatAreGiven) {
  OnnxModelBuilder g;
  g.Input("x", FloatType({-1, -1})).Input("by", FloatType({1})).Output("y", FloatType({-1, -1}));
  auto* const shape = g.proto()
                          .mutable_graph()
                          ->mutable_input(0)
                          ->mutable_type()
                          ->mutable_tensor_type()
                          ->mutable_shape();
  shape->mutable_dim(0)->set_dim_param("batch");
  g.Node("Mul", {"x", "by"}, {"y"});
  OnnxImportOptions options;
  options.shapes["x"] = Shape({2, -1});
  options.values["by"] = FloatTensor({1}, {3});
  const Result<Model> model = ImportFor(g, options);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::vector<NodeId> data = model->graph.DataNodes();
  ASSERT_EQ(data.size(), 1u);
  const Node& x = model->graph.node(data[0]);
  EXPECT_EQ(x.output_descs[0].shape, Shape({2, -1}));
  const auto names = x.attrs.find(std::string(kDimNamesAttr));
  ASSERT_NE(names, x.attrs.end());
  EXPECT_THAT(names->second.get<ListAttr>()->s, ElementsAre("batch", ""));
  EXPECT_THAT(FloatsOf(RunOnce(*model, {FloatTensor({2, 1}, {1, 2})})), ElementsAre(3, 6));

  options.shapes["x"] = Shape({2});
  EXPECT_THAT(std::string(ImportFor(g, options).status().message()),
              HasSubstr("input \"x\" is float32[-1,-1] and cannot have the shape [2]"));
  options.shapes.clear();
  options.values["by"] = FloatTensor({2}, {3, 4});
  EXPECT_THAT(std::string(ImportFor(g, options).status().message()),
              HasSubstr("input \"by\" is float32[1] and cannot be the constant float32[2]"));
}

}  // namespace
}  // namespace npumesh
