// Numbers of single ONNX nodes where the meaning of ONNX is not that of the nearest operator of
// ours, and nodes that are refused. Expected values follow from the definitions, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/onnx/writer.h"
#include "graph/ops/toolbox/values/cast.h"
#include "tests/onnx/model_builder.h"
#include "tests/onnx/onnx_run.h"

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::ImportBytes;
using testing::OnnxModelBuilder;
using testing::RunOnce;
using testing::SetInt;
using testing::SetInts;

constexpr double kInf = std::numeric_limits<double>::infinity();

// `values` as a tensor of `dtype`.
Tensor Numbers(DataType dtype, Shape shape, const std::vector<double>& values) {
  Tensor tensor = Tensor::Allocate({dtype, std::move(shape)});
  FindConvert(DataType::kDouble, dtype)(values.data(), tensor.mutable_data(), values.size());
  return tensor;
}

Tensor Floats(Shape shape, const std::vector<double>& values) {
  return Numbers(DataType::kFloat, std::move(shape), values);
}

Tensor Longs(const std::vector<int64_t>& values) {
  return Tensor::FromVector<int64_t>(
      {DataType::kInt64, Shape({static_cast<int64_t>(values.size())})}, values);
}

void SetText(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(value);
}

void SetFloat(onnx::NodeProto& node, const std::string& name, float value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
}

// A model of one node, whose operands are x0, x1 .. and whose results are y0, y1 ..
class OneNode {
 public:
  OneNode(const std::string& op, std::vector<Tensor> operands, int64_t opset = 17, int results = 1)
      : operands_(std::move(operands)), builder_(opset) {
    for (size_t i = 0; i < operands_.size(); ++i) names_.push_back(fmt::format("x{}", i));
    std::vector<std::string> outputs;
    for (int i = 0; i < results; ++i) outputs.push_back(fmt::format("y{}", i));
    node_ = &builder_.Node(op, names_, outputs);
    node_->set_name("node");
    for (const std::string& output : outputs) {
      builder_.proto().mutable_graph()->add_output()->set_name(output);
    }
  }

  onnx::NodeProto& node() { return *node_; }

  // As inputs of the model; `open`: their dimensions are not said.
  std::string Bytes(bool open = false) const {
    OnnxModelBuilder model = builder_;
    for (size_t i = 0; i < operands_.size(); ++i) {
      TensorType type = operands_[i].type();
      for (int64_t& dim : type.shape.mutable_dims()) dim = open ? -1 : dim;
      model.Input(names_[i], type);
    }
    return model.Bytes();
  }
  // As initialisers: the import computes the node.
  std::string FoldedBytes() const {
    OnnxModelBuilder model = builder_;
    for (size_t i = 0; i < operands_.size(); ++i) model.Initialiser(names_[i], operands_[i]);
    return model.Bytes();
  }

  Result<std::vector<Tensor>> Run(bool open = false) const {
    return testing::RunOnnx(Bytes(open), operands_);
  }
  Result<std::vector<Tensor>> RunFolded() const { return testing::RunOnnx(FoldedBytes(), {}); }
  // Through the import and back.
  Result<std::vector<Tensor>> RunBack() const {
    NPUMESH_ASSIGN_OR_RETURN(const Model model, ImportBytes(Bytes()));
    NPUMESH_ASSIGN_OR_RETURN(const std::string written, WriteOnnx(model));
    return testing::RunOnnx(written, operands_);
  }

 private:
  std::vector<Tensor> operands_;
  std::vector<std::string> names_;
  OnnxModelBuilder builder_;
  onnx::NodeProto* node_;
};

void ExpectTensor(const Result<std::vector<Tensor>>& seen, const Tensor& expected,
                  size_t output = 0) {
  ASSERT_TRUE(seen.ok()) << seen.status().ToString();
  ASSERT_GT(seen->size(), output);
  const Tensor& tensor = (*seen)[output];
  ASSERT_EQ(tensor.type().ToString(), expected.type().ToString());
  std::vector<double> a(static_cast<size_t>(tensor.elements())), b(a.size());
  const ConvertFn convert = FindConvert(tensor.dtype(), DataType::kDouble);
  convert(tensor.data(), a.data(), a.size());
  convert(expected.data(), b.data(), b.size());
  EXPECT_THAT(a, ElementsAreArray(b));
}

// In every form: run, with open dimensions, folded.
void ExpectEverywhere(const OneNode& model, const Tensor& expected) {
  ExpectTensor(model.Run(), expected);
  ExpectTensor(model.Run(true), expected);
  ExpectTensor(model.RunFolded(), expected);
}

void ExpectRefused(const std::string& bytes, const std::string& text) {
  const Result<Model> model = ImportBytes(bytes);
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("node \"node\""));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr(text));
}

// ---- integers ----

// Was: rounded down, [-3, -3, -4, -4].
TEST(OnnxNumbers, QuotientsOfIntegersLoseTheirFraction) {
  for (const DataType dtype :
       {DataType::kInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64}) {
    const OneNode model("Div", {Numbers(dtype, {9}, {8, -8, 7, -7, 7, -7, -4, 2, -2}),
                                Numbers(dtype, {9}, {-3, 3, -2, 2, 2, 2, 9, -3, 6})});
    const Tensor expected = Numbers(dtype, {9}, {-2, -2, -3, -3, 3, -3, 0, 0, 0});
    ExpectEverywhere(model, expected);
    ExpectTensor(model.RunBack(), expected);
  }
}

TEST(OnnxNumbers, AQuotientOfIntegersMayBeAShape) {
  OnnxModelBuilder g;
  g.Input("x", {DataType::kFloat, Shape({4})}).Output("y", {DataType::kFloat, Shape({-1, -1})});
  g.Initialiser("a", Longs({-7, -9})).Initialiser("b", Longs({-3, 4}));
  g.Node("Div", {"a", "b"}, {"half"});  // [2, -2]
  g.Node("Abs", {"half"}, {"shape"});
  g.Node("Reshape", {"x", "shape"}, {"y"});
  const auto seen = testing::RunOnnx(g.Bytes(), {Floats({4}, {1, 2, 3, 4})});
  ExpectTensor(seen, Floats({2, 2}, {1, 2, 3, 4}));
}

// Was: [16777216], because a float32 holds no larger odd number.
TEST(OnnxNumbers, PowersOfIntegersKeepAllDigits) {
  const OneNode narrow("Pow",
                       {Numbers(DataType::kInt32, {2}, {16777217, -3}), Floats({2}, {1, 3})});
  ExpectEverywhere(narrow, Numbers(DataType::kInt32, {2}, {16777217, -27}));
  const int64_t odd = (int64_t{1} << 53) + 1;
  const OneNode wide("Pow", {Longs({odd, 3}), Floats({2}, {1, 2})});
  ExpectEverywhere(wide, Longs({odd, 9}));
}

// Was: 1, because the exponent was rounded to an even number.
TEST(OnnxNumbers, PowersByOddExponentsKeepTheirSign) {
  const int64_t odd = (int64_t{1} << 53) + 1;
  const OneNode model("Pow",
                      {Floats({5}, {-1, -1, -1, -2, -2}), Longs({16777217, odd, -odd, 3, -1})});
  ExpectEverywhere(model, Floats({5}, {-1, -1, -1, -8, -0.5}));
}

TEST(OnnxNumbers, NormsOfIntegersLoseTheirFraction) {
  const Tensor x = Numbers(DataType::kInt32, {1, 3}, {3, -4, 5});
  ExpectTensor(OneNode("ReduceL2", {x}).Run(), Numbers(DataType::kInt32, {1, 1}, {7}));
  const Tensor up = Numbers(DataType::kInt64, {1, 3}, {1, 20, 3});
  ExpectTensor(OneNode("ReduceLogSum", {up}).Run(), Numbers(DataType::kInt64, {1, 1}, {3}));
  ExpectTensor(OneNode("ReduceLogSumExp", {up}).Run(), Numbers(DataType::kInt64, {1, 1}, {20}));
}

TEST(OnnxNumbers, ExtremesOfFlags) {
  const Tensor x = Numbers(DataType::kBool, {2, 2}, {1, 0, 1, 1});
  ExpectTensor(OneNode("ReduceMax", {x, Longs({1})}, 20).RunFolded(),
               Numbers(DataType::kBool, {2, 1}, {1, 1}));
  ExpectTensor(OneNode("ReduceMin", {x, Longs({1})}, 20).Run(),
               Numbers(DataType::kBool, {2, 1}, {0, 1}));
}

// Without axes nothing is folded, but the magnitude is taken.
TEST(OnnxNumbers, AFoldOverNoAxesStillTakesTheMagnitude) {
  for (const char* const op : {"ReduceL1", "ReduceL2"}) {
    OneNode model(op, {Floats({2}, {-3, 4})}, 18);
    SetInt(model.node(), "noop_with_empty_axes", 1);
    ExpectEverywhere(model, Floats({2}, {3, 4}));
  }
  OneNode squares("ReduceSumSquare", {Floats({2}, {-3, 4})}, 18);
  SetInt(squares.node(), "noop_with_empty_axes", 1);
  ExpectEverywhere(squares, Floats({2}, {9, 16}));
}

// ---- halves ----

const auto kHalf = DataType::kFloat16;

// Was: 0, because 256^2 is no half.
TEST(OnnxNumbers, NormsOfHalvesAreComputedInFloat) {
  OneNode layer("LayerNormalization",
                {Numbers(kHalf, {1, 2}, {256, -256}), Numbers(kHalf, {2}, {1, 1})}, 17, 3);
  SetFloat(layer.node(), "epsilon", 0);
  const auto seen = layer.Run();
  ExpectTensor(seen, Numbers(kHalf, {1, 2}, {1, -1}));
  ExpectTensor(seen, Floats({1, 1}, {0}), 1);
  ExpectTensor(seen, Floats({1, 1}, {1.0 / 256}), 2);

  const Tensor rows = Numbers(kHalf, {1, 1, 4}, {300, -300, 150, -150});
  const Tensor one = Numbers(kHalf, {1}, {1}), zero = Numbers(kHalf, {1}, {0});
  const Tensor normal = Numbers(kHalf, {1, 1, 4}, {1.2649, -1.2649, 0.6325, -0.6325});
  ExpectTensor(OneNode("InstanceNormalization", {rows, one, zero}).Run(), normal);
  for (const int64_t opset : {18, 21}) {
    OneNode group("GroupNormalization", {rows, one, zero}, opset);
    SetInt(group.node(), "num_groups", 1);
    ExpectTensor(group.Run(), normal);
    ExpectTensor(group.Run(true), normal);
  }
  OneNode variance("MeanVarianceNormalization",
                   {Numbers(kHalf, {1, 1, 1, 4}, {300, -300, 150, -150})});
  ExpectTensor(variance.Run(), Numbers(kHalf, {1, 1, 1, 4}, {1.2649, -1.2649, 0.6325, -0.6325}));
  ExpectTensor(OneNode("LpNormalization", {Numbers(kHalf, {2}, {300, -400})}).Run(),
               Numbers(kHalf, {2}, {0.6, -0.8}));
}

// ---- sizes ----

// Was: [0, 0, 0].
TEST(OnnxNumbers, PoolsWithoutAWindowKeepTheirChannels) {
  OneNode model("MaxPool", {Floats({1, 1, 4}, {1, 2, 3, 4})});
  SetInts(model.node(), "kernel_shape", {3});
  SetInts(model.node(), "strides", {2});
  SetInts(model.node(), "dilations", {2});
  ExpectTensor(model.Run(), Floats({1, 1, 0}, {}));
  OneNode rows("MaxPool", {Floats({0, 3, 4}, {})});
  SetInts(rows.node(), "kernel_shape", {2});
  ExpectTensor(rows.Run(), Floats({0, 3, 3}, {}));
}

// Was: "shapes do not broadcast", because a window that begins in the padding was counted.
TEST(OnnxNumbers, AveragesOfWindowsThatReachIntoThePadding) {
  OneNode model("AveragePool", {Floats({1, 1, 7}, {1, 2, 3, 4, 5, 6, 7})});
  SetInts(model.node(), "kernel_shape", {2});
  SetInts(model.node(), "strides", {2});
  SetInts(model.node(), "pads", {1, 1});
  SetInt(model.node(), "ceil_mode", 1);
  SetInt(model.node(), "count_include_pad", 1);
  ExpectTensor(model.Run(), Floats({1, 1, 4}, {0.5, 2.5, 4.5, 6.5}));
}

// Was: a crash.
TEST(OnnxNumbers, AveragesOfOpenImagesAreComputed) {
  OneNode model("AveragePool", {Floats({1, 1, 4}, {1, 2, 3, 4})});
  SetInts(model.node(), "kernel_shape", {2});
  SetInts(model.node(), "strides", {2});
  SetInts(model.node(), "pads", {1, 1});
  SetInt(model.node(), "count_include_pad", 1);
  ExpectTensor(model.Run(), Floats({1, 1, 3}, {0.5, 2.5, 2}));
  ExpectTensor(model.Run(true), Floats({1, 1, 3}, {0.5, 2.5, 2}));
}

// The size of the result is a length, without the fraction of size * scale.
TEST(OnnxNumbers, ResizedCornersAreAligned) {
  OneNode model("Resize", {Floats({1, 1, 1, 4}, {1, 2, 3, 4})}, 13);
  model.node().add_input("");
  model.node().add_input("scales");
  SetText(model.node(), "mode", "linear");
  SetText(model.node(), "coordinate_transformation_mode", "align_corners");
  OnnxModelBuilder g;
  g.proto().ParseFromString(model.Bytes());
  g.Initialiser("scales", Floats({4}, {1, 1, 1, 0.6F}));
  const auto seen = testing::RunOnnx(g.Bytes(), {Floats({1, 1, 1, 4}, {1, 2, 3, 4})});
  ExpectTensor(seen, Floats({1, 1, 1, 2}, {1, 4}));
}

TEST(OnnxNumbers, ZerosOfAShapeCopySizesOfATensorWithoutElements) {
  for (const int64_t rows : {3, -1}) {
    OnnxModelBuilder g;
    g.Input("x", {DataType::kFloat, Shape({rows, 0})});
    g.Output("y", {DataType::kFloat, Shape({-1, -1})}).Initialiser("shape", Longs({0, 0}));
    g.Node("Reshape", {"x", "shape"}, {"y"});
    const Tensor x = Floats({3, 0}, {});
    ExpectTensor(testing::RunOnnx(g.Bytes(), {x}), x);
  }
  OneNode literal("Reshape", {Floats({0, 3}, {}), Longs({3, 0})});
  SetInt(literal.node(), "allowzero", 1);
  ExpectEverywhere(literal, Floats({3, 0}, {}));
}

// Was: a shape that only a run knows had a 0 for a size of 0 where x has no elements.
TEST(OnnxNumbers, ZerosOfAShapeThatOnlyARunKnows) {
  const OneNode copies("Reshape", {Floats({3, 0}, {}), Longs({0, 0})});
  ExpectEverywhere(copies, Floats({3, 0}, {}));
  ExpectTensor(copies.RunBack(), Floats({3, 0}, {}));
  ExpectEverywhere(OneNode("Reshape", {Floats({0, 2}, {}), Longs({-1, 0})}), Floats({0, 2}, {}));
  OneNode sizes("Reshape", {Floats({3, 0}, {}), Longs({0, 0, 7})});
  SetInt(sizes.node(), "allowzero", 1);
  ExpectEverywhere(sizes, Floats({0, 0, 7}, {}));
  ExpectTensor(sizes.RunBack(), Floats({0, 0, 7}, {}));
  OneNode full("Reshape", {Floats({2}, {1, 2}), Longs({0})});
  SetInt(full.node(), "allowzero", 1);
  const auto seen = full.Run();
  ASSERT_FALSE(seen.ok());
  EXPECT_THAT(std::string(seen.status().message()), HasSubstr("do not fit the shape [0]"));
}

// By 0.5 the hat is twice as wide: weights 1 (with the edge), 3/4, 1/4 of 2.
TEST(OnnxNumbers, ASmallerImageWithAntialiasingReadsEveryPlace) {
  OneNode linear("Resize", {Floats({1, 1, 1, 4}, {1, 2, 3, 4})}, 18);
  SetText(linear.node(), "mode", "linear");
  SetInt(linear.node(), "antialias", 1);
  for (const char* const input : {"", "scales"}) linear.node().add_input(input);
  OnnxModelBuilder g;
  g.proto().ParseFromString(linear.Bytes(true));
  g.Initialiser("scales", Floats({4}, {1, 1, 1, 0.5}));
  ExpectTensor(testing::RunOnnx(g.Bytes(), {Floats({1, 1, 1, 4}, {1, 2, 3, 4})}),
               Floats({1, 1, 1, 2}, {1.625, 3.375}));
  OneNode nearest("Resize", {Floats({1}, {1}), Floats({0}, {}), Floats({1}, {1})}, 18);
  SetInt(nearest.node(), "antialias", 1);
  ExpectRefused(nearest.Bytes(), "antialias beside mode nearest; expected linear or cubic");
}

TEST(OnnxNumbers, OneScaleKeepsTheFormOfAnImage) {
  const Tensor x = Floats({1, 1, 1, 2}, {5, 6});
  const auto resized = [&](const std::string& policy) {
    OneNode model("Resize", {x, Floats({0}, {}), Floats({0}, {}), Longs({2, 2})}, 18);
    SetText(model.node(), "keep_aspect_ratio_policy", policy);
    SetInts(model.node(), "axes", {2, 3});
    return model;
  };
  ExpectTensor(resized("not_larger").Run(), x);
  ExpectTensor(resized("not_larger").Run(true), x);
  ExpectTensor(resized("not_smaller").Run(), Floats({1, 1, 2, 4}, {5, 5, 6, 6, 5, 5, 6, 6}));
  ExpectTensor(resized("stretch").Run(), Floats({1, 1, 2, 2}, {5, 6, 5, 6}));
  ExpectRefused(resized("odd").Bytes(), "has no keep_aspect_ratio_policy \"odd\"");
}

// Of each sample the largest product of a neighbour and its weight.
TEST(OnnxNumbers, TheLargestOfARegion) {
  const Tensor x = Floats({1, 1, 2, 2}, {4, 3, 2, 1});
  const auto aligned = [&](int64_t ratio, const Tensor& regions, std::vector<int64_t> images) {
    OneNode model("RoiAlign", {x, regions, Longs(images)}, 10);
    SetText(model.node(), "mode", "max");
    SetInt(model.node(), "sampling_ratio", ratio);
    return model;
  };
  const Tensor one = Floats({1, 4}, {0, 0, 2, 2});
  ExpectEverywhere(aligned(1, one, {0}), Floats({1, 1, 1, 1}, {1}));
  ExpectEverywhere(aligned(2, one, {0}), Floats({1, 1, 1, 1}, {1.5}));
  ExpectEverywhere(aligned(0, Floats({2, 4}, {0, 0, 1, 1, 0, 0, 2, 2}), {0, 0}),
                   Floats({2, 1, 1, 1}, {1, 1.5}));
  ExpectEverywhere(aligned(0, Floats({0, 4}, {}), {}), Floats({0, 1, 1, 1}, {}));
}

TEST(OnnxNumbers, ScalesOfBlocks) {
  const Tensor scales = Floats({2}, {1, 10});
  OneNode quantised("QuantizeLinear", {Floats({3}, {1, 2, -30}), scales}, 21);
  SetInt(quantised.node(), "axis", 0);
  SetInt(quantised.node(), "block_size", 2);
  SetInt(quantised.node(), "output_dtype", onnx::TensorProto::INT16);
  ExpectEverywhere(quantised, Numbers(DataType::kInt16, {3}, {1, 2, -3}));
  OneNode back("DequantizeLinear", {Numbers(DataType::kInt16, {3}, {1, 2, -3}), scales}, 23);
  SetInt(back.node(), "axis", 0);
  SetInt(back.node(), "block_size", 2);
  SetInt(back.node(), "output_dtype", onnx::TensorProto::FLOAT16);
  ExpectEverywhere(back, Numbers(DataType::kFloat16, {3}, {1, 2, -30}));
  // bfloat16 has no number between 2.5 and 2.515625, and 2.5 is rounded to the even 2.
  OneNode rough("QuantizeLinear", {Floats({1}, {2.504}), Floats({}, {1})}, 23);
  SetInt(rough.node(), "precision", onnx::TensorProto::BFLOAT16);
  ExpectEverywhere(rough, Numbers(DataType::kUint8, {1}, {2}));
}

// Was: their sum overflowed.
TEST(OnnxForms, PartsOfASequenceFitTheirTensor) {
  const auto refused = [](const std::vector<int64_t>& lengths, const std::string& text) {
    OneNode model("SplitToSequence", {Floats({3}, {1, 2, 3})}, 11);
    model.node().add_input("lengths");
    OnnxModelBuilder g;
    g.proto().ParseFromString(model.Bytes());
    g.Initialiser("lengths", Longs(lengths));
    ExpectRefused(g.Bytes(), text);
  };
  refused({1, std::numeric_limits<int64_t>::max()},
          "length 9223372036854775807 of a part, expected at most 2, what is left of 3");
  refused({2, -1}, "length -1 of a part, expected at most 1");
}

TEST(OnnxForms, ScalesOfBlocksFitTheirTensor) {
  const auto refused = [](Tensor scale, int64_t block, int64_t dtype, const std::string& text) {
    OneNode model("QuantizeLinear", {Floats({3}, {1, 2, 3}), std::move(scale)}, 21);
    SetInt(model.node(), "axis", 0);
    SetInt(model.node(), "block_size", block);
    SetInt(model.node(), "output_dtype", dtype);
    ExpectRefused(model.Bytes(), text);
  };
  const auto byte = onnx::TensorProto::UINT8;
  refused(Floats({3}, {1, 1, 1}), 2, byte,
          "3 blocks of 2 along axis 0, which has 3 places; expected 2");
  refused(Floats({1, 2}, {1, 1}), 2, byte, "of 2 dimensions beside block_size; expected 1");
  refused(Floats({2}, {1, 1}), -2, byte, "block_size is -2; expected 0 or more");
  refused(Floats({2}, {1, 1}), 2, 99, "output_dtype is 99, which npumesh has no type for");
  refused(Floats({2}, {1, 1}), 2, onnx::TensorProto::FLOAT, "quantises to float32");
}

// What an operator takes; nodes of many operands say which one is meant.
TEST(OnnxForms, OperandsHaveATypeOfTheirOperator) {
  const Tensor flags = Numbers(DataType::kBool, {2}, {1, 0}), x = Floats({2}, {1, 2});
  ExpectRefused(OneNode("Sin", {Longs({1})}).Bytes(),
                "input 0 is int64; expected float32, float16, float64 or bfloat16");
  ExpectRefused(OneNode("Not", {x}).Bytes(), "input 0 is float32; expected bool");
  ExpectRefused(OneNode("Neg", {Numbers(DataType::kUint8, {1}, {1})}).Bytes(),
                "bfloat16, or a signed integer");
  ExpectRefused(OneNode("ReduceMean", {flags}).Bytes(), "input 0 is bool");
  ExpectRefused(OneNode("Add", {flags, flags}).Bytes(), "input 0 is bool; expected a number");
  ExpectRefused(OneNode("BitwiseNot", {x}, 18).Bytes(), "expected an integer");
  ExpectRefused(OneNode("OneHot", {Longs({1}), flags, x}).Bytes(), "input 1 is bool");
  const Tensor image = Floats({1, 2}, {1, 2}), halves = Numbers(DataType::kFloat16, {2}, {1, 1});
  ExpectRefused(OneNode("BatchNormalization", {image, halves, halves, x, x}, 13).Bytes(),
                "input 1 is float16 and input 0 is float32");
  OneNode shift("BitShift", {Longs({1}), Longs({1})});
  SetText(shift.node(), "direction", "LEFT");
  ExpectRefused(shift.Bytes(), "input 0 is int64; expected an unsigned integer");
}

// What graphs, lists of tensors and states need.
TEST(OnnxForms, OperandsOfBodiesAndStatesAreComplete) {
  const Tensor x = Floats({2}, {1, 2}), rate = Floats({}, {0.5}),
               turn = Numbers(DataType::kInt64, {}, {0});
  ExpectRefused(OneNode("Optional", {}).Bytes(),
                "has neither an element nor the attribute \"type\"");
  ExpectRefused(OneNode("SequenceConstruct", {}).Bytes(), "has no input 0, which it needs");
  OneNode adam("Adam", {rate, turn, x, x, x}, 17, 3);
  adam.node().set_domain("ai.onnx.preview.training");
  OnnxModelBuilder g;
  g.proto().ParseFromString(adam.Bytes());
  auto* const domain = g.proto().add_opset_import();
  domain->set_domain("ai.onnx.preview.training");
  domain->set_version(1);
  ExpectRefused(g.Bytes(), "has 3 tensors and 3 results; expected 4 and 3 for each tensor");
  OneNode loop("Loop", {turn, Numbers(DataType::kBool, {}, {1}), x}, 17, 1);
  auto* const body = loop.node().add_attribute();
  body->set_name("body");
  body->set_type(onnx::AttributeProto::GRAPH);
  body->mutable_g()->set_name("body");
  for (const char* const name : {"turn", "more"}) body->mutable_g()->add_input()->set_name(name);
  body->mutable_g()->add_output()->set_name("more");
  ExpectRefused(loop.Bytes(), "has a body of 2 inputs; its operands ask for 3");
}

// Element by element a rank is not asked for; the type is known without it.
TEST(OnnxNumbers, OperandsWithoutAShape) {
  const auto run = [](const OneNode& node, const std::vector<Tensor>& operands) {
    OnnxModelBuilder g;
    g.proto().ParseFromString(node.Bytes());
    for (auto& input : *g.proto().mutable_graph()->mutable_input()) {
      input.mutable_type()->mutable_tensor_type()->clear_shape();
    }
    return testing::RunOnnx(g.Bytes(), operands);
  };
  const Tensor a = Numbers(DataType::kInt32, {2}, {7, -7}), b = Numbers(DataType::kInt32, {1}, {2});
  ExpectTensor(run(OneNode("Div", {a, b}), {a, b}), Numbers(DataType::kInt32, {2}, {3, -3}));
  const Tensor x = Floats({2}, {1, -2});
  ExpectTensor(run(OneNode("Mean", {x, x}), {x, x}), x);
  const auto pooled = run(OneNode("GlobalMaxPool", {x}), {x});
  ASSERT_FALSE(pooled.ok());
  EXPECT_THAT(std::string(pooled.status().message()),
              HasSubstr("the rank of an operand is not known before the model runs"));
}

// Backwards from before the first element: the first one, as the text limits begins.
TEST(OnnxNumbers, SlicesBackwardsBeginAtTheFirstElement) {
  const Tensor x = Floats({3}, {1, 2, 3});
  const OneNode model("Slice", {x, Longs({-4}), Longs({-10}), Longs({0}), Longs({-1})});
  ExpectEverywhere(model, Floats({1}, {1}));
}

// ---- places ----

TEST(OnnxNumbers, ScatteredIndicesCountFromTheEnd) {
  const Tensor x = Floats({3, 2}, {0, 1, 2, 3, 4, 5});
  const Tensor places = Tensor::FromVector<int64_t>({DataType::kInt64, Shape({1, 1})}, {-1});
  const Tensor updates = Floats({1, 2}, {9, 2});
  const std::pair<std::string, std::vector<double>> kCases[] = {{"none", {0, 1, 2, 3, 9, 2}},
                                                                {"add", {0, 1, 2, 3, 13, 7}},
                                                                {"mul", {0, 1, 2, 3, 36, 10}},
                                                                {"max", {0, 1, 2, 3, 9, 5}},
                                                                {"min", {0, 1, 2, 3, 4, 2}}};
  for (const auto& [reduction, expected] : kCases) {
    OneNode model("ScatterND", {x, places, updates}, 18);
    SetText(model.node(), "reduction", reduction);
    ExpectTensor(model.Run(), Floats({3, 2}, expected));
    ExpectTensor(model.RunFolded(), Floats({3, 2}, expected));
    if (reduction != "mul") ExpectTensor(model.Run(true), Floats({3, 2}, expected));
  }
}

TEST(OnnxNumbers, FarPointsAreReadAtTheBorder) {
  const Tensor x = Floats({1, 1, 1, 4}, {1, 2, 3, 4});
  const Tensor grid =
      Floats({1, 1, 6, 2}, {1e19, 0, 1e30, 0, kInf, 0, -1e19, 0, -kInf, 0, 1e10, 0});
  OneNode model("GridSample", {x, grid});
  SetText(model.node(), "padding_mode", "border");
  ExpectTensor(model.Run(), Floats({1, 1, 1, 6}, {4, 4, 4, 1, 1, 4}));
}

// One sample for each place that a box reaches over.
TEST(OnnxNumbers, RegionsWithoutASamplingRatio) {
  std::vector<double> image;
  for (int i = 0; i < 16; ++i) image.push_back(i % 4);
  OneNode model("RoiAlign", {Floats({1, 1, 4, 4}, image), Floats({1, 4}, {0, 0, 3, 3}), Longs({0})},
                10);
  SetInt(model.node(), "output_height", 1);
  SetInt(model.node(), "output_width", 1);
  ExpectTensor(model.Run(), Floats({1, 1, 1, 1}, {1.5}));  // of 3 x 3 samples at 0.5, 1.5, 2.5
}

// Was: the first three numbers of a complex signal.
TEST(OnnxNumbers, AnInverseTransformOfOneSideIsReal) {
  // The transform of [8, 0, 0, 0, 0, 0, 0, 0]: five bins of 8.
  OneNode model("DFT", {Floats({1, 5, 2}, {8, 0, 8, 0, 8, 0, 8, 0, 8, 0})});
  SetInt(model.node(), "inverse", 1);
  SetInt(model.node(), "onesided", 1);
  const auto seen = model.Run();
  ASSERT_TRUE(seen.ok()) << seen.status().ToString();
  ASSERT_EQ((*seen)[0].shape(), Shape({1, 8, 1}));
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR((*seen)[0].as<float>()[static_cast<size_t>(i)], i == 0 ? 8 : 0, 1e-6) << i;
  }
  OneNode complex("DFT", {Floats({1, 2, 2}, {1, 0, 2, 0})});
  SetInt(complex.node(), "onesided", 1);
  ExpectRefused(complex.Bytes(), "onesided of a signal of 2 parts");
}

TEST(OnnxNumbers, PadsMayWrapAround) {
  OneNode model("Pad", {Floats({3}, {1, 2, 3}), Longs({2, 4})}, 19);
  SetText(model.node(), "mode", "wrap");
  ExpectTensor(model.RunFolded(), Floats({9}, {2, 3, 1, 2, 3, 1, 2, 3, 1}));
  ExpectRefused(model.Bytes(), "pads of mode wrap have to be known");
}

TEST(OnnxForms, SplitsHaveANumberOrSizes) {
  const Tensor x = Floats({4}, {1, 2, 3, 4});
  ExpectRefused(OneNode("Split", {x}, 18, 2).Bytes(), "has neither num_outputs nor sizes");
  OneNode three("Split", {x}, 18, 2);
  SetInt(three.node(), "num_outputs", 3);
  ExpectRefused(three.Bytes(), "num_outputs is 3 and the node has 2");
}

TEST(OnnxForms, RangesEnd) {
  ExpectRefused(OneNode("Range", {Floats({}, {0}), Floats({}, {3}), Floats({}, {0})}).FoldedBytes(),
                "delta is 0; expected a number other than 0");
  ExpectRefused(
      OneNode("Range", {Floats({}, {0}), Floats({}, {kInf}), Floats({}, {1})}).FoldedBytes(),
      "the range from 0 to inf has no end");
  ExpectRefused(OneNode("ConstantOfShape", {Longs({-1})}).FoldedBytes(),
                "\"dims\" holds -1 at position 0, expected 0 or more");
}

TEST(OnnxNumbers, ZerosAreQuantisedByOne) {
  const OneNode model("DynamicQuantizeLinear", {Floats({2}, {0, 0})}, 11, 3);
  const auto seen = model.Run();
  ExpectTensor(seen, Numbers(DataType::kUint8, {2}, {0, 0}));
  ExpectTensor(seen, Floats({}, {1}), 1);
  ExpectTensor(seen, Numbers(DataType::kUint8, {}, {0}), 2);
}

// ---- invalid models ----

TEST(OnnxForms, OperandsOfOneTypeHaveOne) {
  for (const char* const op : {"Add", "Max", "Equal"}) {
    ExpectRefused(OneNode(op, {Floats({1}, {1}), Longs({1})}).Bytes(),
                  "expected one type for both");
  }
  const Tensor flag = Numbers(DataType::kBool, {1}, {1});
  ExpectRefused(OneNode("Where", {flag, Floats({1}, {1}), Longs({1})}).Bytes(),
                "input 1 is float32 and input 2 is int64");
}

TEST(OnnxForms, SizesAndPlacesAreWholeNumbers) {
  const Tensor x = Floats({2}, {1, 2}), real = Floats({1}, {1});
  ExpectRefused(OneNode("Tile", {x, real}).Bytes(true), "input 1 is float32; expected int64");
  ExpectRefused(OneNode("Gather", {x, real}).Bytes(true),
                "input 1 is float32; expected int32 or int64");
}

TEST(OnnxForms, AttributesAreThoseOfTheOperator) {
  OneNode axis("Softmax", {Floats({1, 2}, {1, 2})});
  SetFloat(axis.node(), "axis", 1.5F);
  ExpectRefused(axis.Bytes(), "attribute \"axis\" is of kind float; expected int");
  OneNode mode("Pad", {Floats({1}, {1}), Longs({1, 1})});
  SetInt(mode.node(), "mode", 1);
  ExpectRefused(mode.Bytes(), "attribute \"mode\" is of kind int; expected string");
  OneNode unknown("Relu", {Floats({1}, {1})});
  SetInt(unknown.node(), "axis", 1);
  ExpectRefused(unknown.Bytes(),
                "has an attribute \"axis\", which its operator has not in operator set 17; "
                "expected none");
  OneNode later("Squeeze", {Floats({1}, {1})}, 13);  // axes are an operand since
  SetInts(later.node(), "axes", {0});
  ExpectRefused(later.Bytes(), "has an attribute \"axes\"");
  ExpectRefused(OneNode("Cast", {Floats({1}, {1})}).Bytes(), "lacks the attribute \"to\"");
}

TEST(OnnxForms, OperandsAreAsManyAsTheOperatorTakes) {
  ExpectRefused(OneNode("Relu", {Floats({1}, {1}), Floats({1}, {1})}).Bytes(),
                "has 2 inputs; expected 1 at most");
  ExpectRefused(OneNode("Add", {Floats({1}, {1})}).Bytes(), "has no input 1, which it needs");
}

TEST(OnnxForms, ANameIsMadeOnce) {
  OnnxModelBuilder g;
  g.Input("x", {DataType::kFloat, Shape({1})}).Output("y", {DataType::kFloat, Shape({1})});
  g.Node("Relu", {"x"}, {"y"});
  g.Node("Neg", {"x"}, {"y"}).set_name("node");
  ExpectRefused(g.Bytes(), "makes \"y\", which was made before");
}

TEST(OnnxForms, ADomainHasOneVersion) {
  OnnxModelBuilder g;
  g.Input("x", {DataType::kFloat, Shape({1})}).Output("x", {DataType::kFloat, Shape({1})});
  g.proto().add_opset_import()->set_version(16);
  const Result<Model> model = ImportBytes(g.Bytes());
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("17 and 16; expected one"));
}

TEST(OnnxForms, KernelsAreNoLargerThanTheirImages) {
  OneNode model("Conv", {Floats({1, 1, 2, 2}, {1, 2, 3, 4}), Floats({1, 1, 3, 1}, {1, 2, 3})});
  ExpectRefused(model.Bytes(), "the kernel covers 3 places of dimension 2, which has 2 with pads");
}

TEST(OnnxForms, ScalesAreMoreThanNothing) {
  OneNode model("Resize", {Floats({1, 1, 1, 1}, {1})}, 10);
  model.node().add_input("scales");
  OnnxModelBuilder g;
  g.proto().ParseFromString(model.Bytes());
  g.Initialiser("scales", Floats({4}, {1, 1, 1, -2}));
  ExpectRefused(g.Bytes(), "scale -2 of axis 3; expected more than 0");
}

TEST(OnnxForms, EquationsNameWhatOperandsHave) {
  const auto refused = [](const std::string& equation, const std::string& text) {
    OneNode model("Einsum", {Floats({1, 1, 1}, {1})});
    SetText(model.node(), "equation", equation);
    ExpectRefused(model.Bytes(), text);
  };
  refused("abc->d", "expected a result of labels that operands have");
  refused("abc->abd", "expected a result of labels that operands have");
  refused("a1c->a", "term 0 is not letters");
  refused("abc,a->a", "has 2 terms for 1 inputs");
}

}  // namespace
}  // namespace npumesh
