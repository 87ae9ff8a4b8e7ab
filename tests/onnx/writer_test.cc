// Graphs of ours written as ONNX: what is written reads back as the same graph.
#include "graph/onnx/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

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

AttrValue Int64Number() {
  return AttrValue::Int(static_cast<int64_t>(DataType::kInt64));
}

// Operators whose constants become attributes, or whose attributes become constants.
TEST(OnnxWriter, ShapesAndPlaces) {
  GraphBuilder g;
  const TensorType type{DataType::kFloat, Shape({4, 6})};
  const Value x = g.Data("x", type);
  const auto ints = [&](const std::vector<int32_t>& values) {
    const TensorType list{DataType::kInt32, Shape({static_cast<int64_t>(values.size())})};
    return g.Const("ints", Tensor::FromVector(list, values));
  };
  const Value rows = g.Op("GatherV2", {{"x", x}, {"indices", ints({2, 0})}, {"axis", g.Int(0)}});
  const Value turned = g.Op("Transpose", {{"x", x}, {"perm", g.Ints({1, 0})}});
  const Value parts = g.Op("SplitVD", {{"x", x}},
                           {{"num_split", AttrValue::Int(2)},
                            {"size_splits", AttrValue::Ints({2, 4})},
                            {"split_dim", AttrValue::Int(1)}},
                           {}, 2);
  const Value more =
      g.Op("SplitV", {{"x", x}, {"size_splits", ints({1, 3})}, {"split_dim", g.Int(0)}},
           {{"num_split", AttrValue::Int(2)}}, {}, 2);
  const Value cut = g.Op(
      "StridedSliceV2",
      {{"x", x}, {"begin", g.Ints({3, 0})}, {"end", g.Ints({0, 6})}, {"strides", g.Ints({-1, 2})}});
  const Value flat = g.Op("Reshape", {{"x", x}, {"shape", ints({3, -1})}});
  const Value padded =
      g.Op("PadV3",
           {{"x", x},
            {"paddings", ints({1, 0, 0, 2})},
            {"constant_values", g.Const("z", Counting({DataType::kFloat, Shape()}))}},
           {{"paddings_contiguous", AttrValue::Bool(false)}});
  g.Output({rows, turned, parts, g.Port(parts, 1), more, g.Port(more, 1), cut, flat, padded});
  ExpectSameAfterOnnx(g, {Counting(type)});
}

TEST(OnnxWriter, FoldsAndOrder) {
  GraphBuilder g;
  const TensorType type{DataType::kFloat, Shape({4, 6})};
  const Value x = g.Data("x", type);
  const AttrValue keep = AttrValue::Bool(true);
  const Value sum =
      g.Op("ReduceSumD", {{"x", x}}, {{"axes", AttrValue::Ints({1})}, {"keep_dims", keep}});
  const Value mean =
      g.Op("ReduceMean", {{"x", x}, {"axes", g.Ints({0, 1})}}, {{"keep_dims", keep}});
  const Value best =
      g.Op("TopKV2", {{"x", x}, {"k", g.Int(3)}}, {{"indices_dtype", Int64Number()}}, {}, 2);
  const auto real = [&](Value value) {
    return g.Op("Cast", {{"x", value}}, {{"dst_type", AttrValue::Int(0)}});
  };
  const Value places =
      g.Op("ArgMaxD", {{"x", x}}, {{"dimension", AttrValue::Int(1)}, {"dtype", Int64Number()}});
  const Value other = g.Op("NotEqual", {{"x1", x}, {"x2", sum}});
  const Value running = g.Op("Cumsum", {{"x", x}, {"axis", g.Int(1)}});
  const Value filled = g.Op(
      "Fill",
      {{"dims", g.Ints({4, 6})}, {"value", g.Const("z", Counting({DataType::kFloat, Shape()}))}});
  g.Output({g.Op("Sub", {{"x1", x}, {"x2", mean}}), best, real(g.Port(best, 1)), real(places),
            real(other), running, g.Op("Div", {{"x1", x}, {"x2", filled}})});
  ExpectSameAfterOnnx(g, {Counting(type)});
}

// Was: written as ONNX's Div, which loses the fraction.
TEST(OnnxWriter, QuotientsOfIntegersAreRoundedDown) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  const TensorType list{DataType::kInt32, Shape({6})};
  const Tensor a = Tensor::FromVector<int32_t>(list, {7, -7, 8, -8, kLeast, 0});
  const Tensor b = Tensor::FromVector<int32_t>(list, {-2, 2, 3, -3, 3, -5});
  for (const char* const type : {"Div", "FloorDiv", "TruncateDiv"}) {
    GraphBuilder g;
    const Value x = g.Data("a", list), y = g.Data("b", list);
    const Value quotient = g.Op(type, {{"x1", x}, {"x2", y}}, {}, "quotient");
    g.Declare(quotient, DataType::kInt32);
    const Value real = g.Op("Cast", {{"x", quotient}}, {{"dst_type", AttrValue::Int(0)}}, "real");
    g.Output({real});
    ExpectSameAfterOnnx(g, {a, b});
  }
}

TEST(OnnxWriter, SizesOfZeroStaySizes) {
  GraphBuilder g;
  const TensorType nothing{DataType::kFloat, Shape({0, 3})};
  const Value x = g.Data("x", nothing);
  g.Output({g.Op("Reshape", {{"x", x}, {"shape", g.Ints({3, 0})}})});
  ExpectSameAfterOnnx(g, {Tensor::Allocate(nothing)});
}

TEST(OnnxWriter, HalvesAreTestedForInfinityInFloat) {
  GraphBuilder g;
  const TensorType halves{DataType::kFloat16, Shape({2})};
  const Value x = g.Data("x", halves);
  const Value flags = g.Op("IsInf", {{"x", x}});
  g.Output({g.Op("Cast", {{"x", flags}}, {{"dst_type", AttrValue::Int(0)}})});
  ExpectSameAfterOnnx(g, {Tensor::FromVector<uint16_t>(halves, {0x7c00, 0x3c00})});
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
