// Graphs of ours written as ONNX: what is written reads back as the same graph.
#include "graph/onnx/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"
#include "tests/onnx/onnx_run.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;
using testing::ImportBytes;
using testing::RunOnce;

const TensorType kMatrix = {DataType::kFloat, Shape({2, 3})};

Tensor Counting(const TensorType& type) {
  Tensor tensor = Tensor::Allocate(type);
  auto* values = reinterpret_cast<float*>(tensor.mutable_data());
  for (int64_t i = 0; i < tensor.elements(); ++i) values[i] = static_cast<float>(i - 2);
  return tensor;
}

// Runs the graph, and what is read back from its ONNX form, and compares bit by bit.
void ExpectSameAfterOnnx(GraphBuilder& g, const std::vector<Tensor>& inputs) {
  Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const Result<std::string> bytes = WriteOnnx(*model);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  const Result<Model> read = ImportBytes(*bytes);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  const auto expected = RunOnce(*model, inputs), seen = RunOnce(*read, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  ASSERT_TRUE(seen.ok()) << seen.status().ToString();
  ASSERT_EQ(seen->size(), expected->size());
  for (size_t i = 0; i < seen->size(); ++i) {
    ASSERT_EQ((*seen)[i].type(), (*expected)[i].type());
    const auto a = (*seen)[i].as<float>(), b = (*expected)[i].as<float>();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << i;
  }
}

TEST(OnnxWriter, ElementwiseAndProducts) {
  GraphBuilder g;
  const Value x = g.Data("x", kMatrix);
  const Value w = g.Const("w", Counting({DataType::kFloat, Shape({4, 3})}));
  const Value product = g.Op("MatMulV2", {{"x1", x}, {"x2", w}},
                             {{"transpose_x2", AttrValue::Bool(true)}}, "product");
  const Value soft = g.Op("SoftmaxV2", {{"x", product}}, {{"axes", AttrValue::Ints({-1})}});
  const Value joined = g.Op("ConcatD", {{"x0", soft}, {"x1", product}},
                            {{"N", AttrValue::Int(2)}, {"concat_dim", AttrValue::Int(1)}});
  g.Output({g.Op("TransposeD", {{"x", joined}}, {{"perm", AttrValue::Ints({1, 0})}}), x, product,
            product});
  ExpectSameAfterOnnx(g, {Counting(kMatrix)});
}

TEST(OnnxWriter, ConvolutionsAndPools) {
  GraphBuilder g;
  const TensorType image{DataType::kFloat, Shape({1, 2, 5, 4})};
  const Value x = g.Data("x", image);
  const Value w = g.Const("w", Counting({DataType::kFloat, Shape({3, 2, 3, 2})}));
  const Value conv = g.Op("Conv2D", {{"x", x}, {"filter", w}},
                          {{"strides", AttrValue::Ints({1, 1, 2, 1})},
                           {"pads", AttrValue::Ints({1, 0, 0, 1})},
                           {"data_format", AttrValue::String("NCHW")}});
  g.Output({g.Op(
      "MaxPoolV3", {{"x", conv}},
      {{"ksize", AttrValue::Ints({1, 1, 2, 2})}, {"strides", AttrValue::Ints({1, 1, 1, 1})}})});
  ExpectSameAfterOnnx(g, {Counting(image)});
}

TEST(OnnxWriter, ListsNodesWithoutACounterpart) {
  GraphBuilder g;
  const Value x = g.Data("x", kMatrix);
  const Value a = g.Op("RmsNorm", {{"x", x}, {"gamma", x}}, {}, "norm", 2);
  g.Output({g.Op("Exp", {{"x", a}}, {{"base", AttrValue::Float(2)}}, "power")});
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const Result<std::string> bytes = WriteOnnx(*model);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().code(), Code::kUnsupported);
  EXPECT_THAT(
      std::string(bytes.status().message()),
      HasSubstr("2 nodes have no counterpart in ONNX: \"norm\" (RmsNorm), \"power\" (Exp)"));
}

TEST(OnnxWriter, NamesOperatorsThatExist) {
  for (const std::string_view type : OperatorsWithCounterpart()) {
    EXPECT_NE(BuiltinOps().Find(type), nullptr) << type;
  }
}

}  // namespace
}  // namespace npumesh
