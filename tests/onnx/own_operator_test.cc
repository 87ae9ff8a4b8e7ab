// Nodes of domains of a user's own, with and without a library that has their operators.
#include <gmock/gmock.h>

#include "graph/onnx/import.h"
#include "graph/onnx/reader.h"
#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/signature.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

Operator Own(std::string_view signature) {
  Operator op;
  op.schema = Signature(signature);
  op.infer = [](OpContext& context) {
    for (int port = 0; port < context.outputs(); ++port) context.set_out(port, context.in(0));
    return Status();
  };
  op.make_kernel = [](const OpContext&) -> Result<std::unique_ptr<Kernel>> {
    return MakeKernel([](const KernelArgs&) { return Status(); });
  };
  return op;
}

OpRegistry WithLibrary() {
  OpRegistry registry = BuiltinOps();
  registry.Add(Own("Polynomial(x, bias?; coefficients:floats, mode=\"plain\", order=2) -> y"));
  registry.Add(Own("Blend(x..., weight) -> y"));
  registry.Add(Own("Parts(x) -> low, high"));
  return registry;
}

const TensorType kFourFloats = {DataType::kFloat, Shape({4})};

OnnxAttribute FloatsNamed(std::string name, std::vector<float> floats) {
  OnnxAttribute attribute;
  attribute.name = std::move(name);
  attribute.kind = OnnxAttribute::Kind::kFloats;
  attribute.floats = std::move(floats);
  return attribute;
}

// One node of domain "mine" over inputs x and z.
OnnxModel OneNode(std::string op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                  std::vector<OnnxAttribute> attributes = {}, std::string domain = "mine") {
  OnnxModel model;
  model.ir_version = 8;
  model.opsets = {{"", 17}, {domain, 1}};
  for (const char* name : {"x", "z"}) {
    model.graph.inputs.push_back({name, {OnnxKind::kTensor, kFourFloats}});
  }
  for (const std::string& name : outputs) {
    model.graph.outputs.push_back({name, {OnnxKind::kTensor, kFourFloats}});
  }
  model.graph.nodes.push_back({"own", std::move(op), std::move(domain), std::move(inputs),
                               std::move(outputs), std::move(attributes)});
  return model;
}

std::string Refusal(const OnnxModel& model, const OpRegistry& registry) {
  const Status status = ImportOnnx(model, registry).status();
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

TEST(OwnOperator, IsTakenUnderItsName) {
  OnnxAttribute mode;
  mode.name = "mode";
  mode.kind = OnnxAttribute::Kind::kString;
  mode.s = "odd";
  const Result<Model> model = ImportOnnx(
      OneNode("Polynomial", {"x"}, {"y"}, {FloatsNamed("coefficients", {1, 0.5f, 2}), mode}),
      WithLibrary());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const Node& node = model->graph.node(model->graph.Find("own"));
  EXPECT_EQ(node.type, "Polynomial");
  ASSERT_EQ(node.inputs.size(), 1u);
  EXPECT_EQ(model->graph.node(node.inputs[0]->node).name, "x");
  EXPECT_EQ(node.FindAttr("coefficients")->get<ListAttr>()->f, (std::vector<float>{1, 0.5f, 2}));
  EXPECT_EQ(node.StringAttr("mode", ""), "odd");
}

TEST(OwnOperator, OptionalInputsListsAndSeveralOutputsFindTheirPorts) {
  const OpRegistry registry = WithLibrary();
  const Result<Model> bias = ImportOnnx(
      OneNode("Polynomial", {"x", "z"}, {"y"}, {FloatsNamed("coefficients", {1})}), registry);
  ASSERT_TRUE(bias.ok()) << bias.status().ToString();
  EXPECT_EQ(bias->graph.node(bias->graph.Find("own")).FindInput("bias"), 1);
  const Result<Model> blend = ImportOnnx(OneNode("Blend", {"x", "z", "x"}, {"y"}), registry);
  ASSERT_TRUE(blend.ok()) << blend.status().ToString();
  EXPECT_EQ(blend->graph.node(blend->graph.Find("own")).FindInput("weight"), 2);
  const Result<Model> parts = ImportOnnx(OneNode("Parts", {"x"}, {"low", "high"}), registry);
  ASSERT_TRUE(parts.ok()) << parts.status().ToString();
  EXPECT_EQ(parts->graph.node(parts->graph.Find("own")).output_descs.size(), 2u);
}

TEST(OwnOperator, IsRefusedWithoutItsLibraryAndForAnotherMeaning) {
  const auto polynomial = OneNode("Polynomial", {"x"}, {"y"}, {FloatsNamed("coefficients", {1})});
  EXPECT_THAT(Refusal(polynomial, BuiltinOps()), HasSubstr("may come from --op-library"));
  // An operator of npumesh of the same name may mean something else.
  EXPECT_THAT(Refusal(OneNode("Muls", {"x"}, {"y"}), WithLibrary()),
              HasSubstr("1 operator without a translation"));
  EXPECT_THAT(Refusal(OneNode("Polynomial", {"x"}, {"y"}, {}, ""), WithLibrary()),
              HasSubstr("1 operator without a translation"));
}

TEST(OwnOperator, WhatDoesNotFitNamesTheNode) {
  const OpRegistry registry = WithLibrary();
  EXPECT_THAT(Refusal(OneNode("Parts", {"x", "z"}, {"low", "high"}), registry),
              HasSubstr("node \"own\" (mine.Parts): has 2 inputs, Parts takes 1"));
  EXPECT_THAT(Refusal(OneNode("Blend", {"x", "", "z"}, {"y"}), registry),
              HasSubstr("node \"own\" (mine.Blend): has no input 1, which it needs"));
  // A misspelt name is quoted.
  EXPECT_THAT(
      Refusal(OneNode("Polynomial", {"x"}, {"y"}, {FloatsNamed("coeficients", {1})}), registry),
      HasSubstr(
          "required attribute \"coefficients\" is missing; the node has \"coeficients\", which "
          "Polynomial does not know: did you mean that?"));
  OnnxAttribute body;
  body.name = "body";
  body.kind = OnnxAttribute::Kind::kGraph;
  EXPECT_THAT(
      Refusal(OneNode("Parts", {"x"}, {"low", "high"}, {body}), registry),
      HasSubstr("attribute \"body\" is of a kind that an operator of a library cannot have"));
}

}  // namespace
}  // namespace npumesh
