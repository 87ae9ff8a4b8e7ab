// BNInfer, its gradient, SyncBatchNorm's parts, BiasAdd, Scale.
#include "tests/unit/ops/image/image_values.h"

namespace npumesh {
namespace {

Tensor Vector(DataType dtype, const std::vector<double>& values) {
  return FromDoubles(dtype, Shape({static_cast<int64_t>(values.size())}), values);
}

const std::vector<double> kScale = {1, 2, -1}, kOffset = {0.5, -1, 4}, kMean = {1, 0, 2},
                          kVariance = {0.75, 3.75, 15.75};

TEST(BnInfer, NormalisesEachChannel) {
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16}) {
    const Tensor x = Pattern(dtype, {2, 3, 2, 2});
    std::vector<double> expected;
    for (const Ints& at : Positions(x.shape())) {
      const auto c = static_cast<size_t>(at[1]);
      const double value = ToDoubles(x)[Index(x.shape(), at)];
      expected.push_back((value - kMean[c]) / std::sqrt(kVariance[c] + 0.25) * kScale[c] +
                         kOffset[c]);
    }
    const Tensor y = RunOne({.type = "BNInfer",
                             .inputs = {{"x", x},
                                        {"scale", Vector(DataType::kFloat, kScale)},
                                        {"offset", Vector(DataType::kFloat, kOffset)},
                                        {"mean", Vector(DataType::kFloat, kMean)},
                                        {"variance", Vector(DataType::kFloat, kVariance)}},
                             .attrs = {{"epsilon", AttrValue::Float(0.25f)}}});
    EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, x.shape(), expected)));
  }
}

TEST(BnInfer, Gradient) {
  const Tensor grads = FromDoubles(DataType::kFloat, {1, 3, 1}, {4, 6, 8});
  EXPECT_EQ(ToDoubles(RunOne({.type = "BNInferGrad",
                              .inputs = {{"grads", grads},
                                         {"scale", Vector(DataType::kFloat, kScale)},
                                         {"batch_variance", Vector(DataType::kFloat, kVariance)}},
                              .attrs = {{"epsilon", AttrValue::Float(0.25f)}}})),
            (std::vector<double>{4, 6, -2}));
}

TEST(BnInfer, RefusesAWrongNumberOfChannels) {
  const Tensor one = Vector(DataType::kFloat, {1, 2});
  ExpectFails({.type = "BNInferGrad",
               .inputs = {{"grads", Pattern(DataType::kFloat, {1, 3, 1, 1})},
                          {"scale", one},
                          {"batch_variance", one}}},
              Code::kInvalidArgument, {"input 1 is [2]", "one number for each channel"});
}

TEST(BiasAdd, FollowsTheFormat) {
  const Tensor x = Pattern(DataType::kFloat, {2, 3, 2, 2});
  const Tensor bias = Vector(DataType::kFloat, kOffset);
  std::vector<double> expected;
  for (const Ints& at : Positions(x.shape())) {
    expected.push_back(ToDoubles(x)[Index(x.shape(), at)] + kOffset[static_cast<size_t>(at[1])]);
  }
  const Tensor want = FromDoubles(DataType::kFloat, x.shape(), expected);
  const auto run = [&](const Tensor& image, const char* format) {
    return RunOne({.type = "BiasAdd",
                   .inputs = {{"x", image}, {"bias", bias}},
                   .attrs = {{"data_format", AttrValue::String(format)}}});
  };
  EXPECT_TRUE(SameBytes(run(x, "NCHW"), want));
  EXPECT_TRUE(SameBytes(run(ChannelsBehind(x), "NHWC"), ChannelsBehind(want)));
  const Tensor matrix = FromDoubles(DataType::kFloat, {1, 3}, {1, 2, 3});
  EXPECT_EQ(ToDoubles(run(matrix, "NHWC")), (std::vector<double>{1.5, 1, 7}));
  ExpectFails({.type = "BiasAdd",
               .inputs = {{"x", x}, {"bias", bias}},
               .attrs = {{"data_format", AttrValue::String("CHWN")}}},
              Code::kUnsupported, {"CHWN"});
}

// Factors for dimensions [first, first + their rank) of an image.
TEST(Scale, NamesItsDimensions) {
  const Tensor x = Pattern(DataType::kFloat, {2, 3, 2, 2});
  struct Case {
    int64_t axis, num_axes;
    bool from_blob;
    Shape shape;
    size_t first;
  };
  for (const Case& c :
       {Case{1, 1, true, {3}, 1}, Case{-3, 2, true, {3, 2}, 1}, Case{2, -1, true, {2, 2}, 2},
        Case{1, 0, true, {1}, 1}, Case{0, 7, false, {2, 3}, 0}, Case{1, 1, false, {}, 1}}) {
    const Tensor scale = Pattern(DataType::kFloat, c.shape);
    const Tensor bias = Vector(DataType::kFloat, kOffset);
    OpCall call = {.type = "Scale",
                   .inputs = {{"x", x}, {"scale", scale}},
                   .attrs = {{"axis", AttrValue::Int(c.axis)},
                             {"num_axes", AttrValue::Int(c.num_axes)},
                             {"scale_from_blob", AttrValue::Bool(c.from_blob)}}};
    const bool biased = c.shape == Shape{3};
    if (biased) call.inputs.push_back({"bias", bias});
    std::vector<double> expected;
    for (const Ints& at : Positions(x.shape())) {
      size_t index = 0;
      for (int d = 0; scale.elements() > 1 && d < c.shape.rank(); ++d) {
        index = index * static_cast<size_t>(c.shape[d]) +
                static_cast<size_t>(at[c.first + static_cast<size_t>(d)]);
      }
      expected.push_back(ToDoubles(x)[Index(x.shape(), at)] * ToDoubles(scale)[index] +
                         (biased ? kOffset[index] : 0));
    }
    EXPECT_TRUE(SameBytes(RunOne(call), FromDoubles(DataType::kFloat, x.shape(), expected)))
        << c.shape.ToString();
    call.inputs[1].value = Pattern(DataType::kFloat, {5});
    ExpectFails(call, Code::kInvalidArgument, {"input 1 is [5]", "num_axes"});
  }
}

TEST(SyncBatchNorm, BackwardInTwoParts) {
  const auto v = [](const std::vector<double>& values) { return Vector(DataType::kFloat, values); };
  const Result<std::vector<Tensor>> reduced = RunOp({.type = "SyncBatchNormBackwardReduce",
                                                     .inputs = {{"sum_dy", v({1, 2})},
                                                                {"sum_dy_dx_pad", v({5, 6})},
                                                                {"mean", v({2, 3})},
                                                                {"invert_std", v({4, 0.5})}}});
  ASSERT_TRUE(reduced.ok()) << reduced.status().ToString();
  EXPECT_EQ(ToDoubles((*reduced)[0]), (std::vector<double>{3, 0}));
  EXPECT_EQ(ToDoubles((*reduced)[1]), (std::vector<double>{12, 0}));
  const Tensor g = FromDoubles(DataType::kFloat, {1, 2, 2}, {1, 2, 3, 4});
  const Tensor x = FromDoubles(DataType::kFloat, {1, 2, 2}, {5, 6, 7, 8});
  // (g - mean_dy - (x - mean) invstd^2 mean_dy_xmu) invstd weight
  EXPECT_EQ(ToDoubles(RunOne({.type = "SyncBatchNormBackwardElemt",
                              .inputs = {{"grad_output", g},
                                         {"save_input", x},
                                         {"mean", v({4, 6})},
                                         {"invstd", v({2, 0.5})},
                                         {"weight", v({1, 3})},
                                         {"mean_dy", v({1, 0})},
                                         {"mean_dy_xmu", v({0.5, 4})}}})),
            (std::vector<double>{-4, -6, 3, 3}));
}

}  // namespace
}  // namespace npumesh
