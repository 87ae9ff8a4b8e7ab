// What the driver of the tables does, by operators that need it.
#include "tests/unit/ops/elementwise/pointwise_cases.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

TEST(PointwiseDriver, BroadcastsOverManyBlocks) {
  for (const DataType dtype : {kF32, kF16, DataType::kInt32, DataType::kUint64}) {
    const Shape shapes[] = {{3, 700}, {3, 1}, {700}, {}, {1, 1}};
    for (const Shape& other : shapes) {
      std::vector<double> a(2100), b(static_cast<size_t>(other.elements()));
      for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i % 11 + 12);
      for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i % 7);
      const Tensor x1 = FromDoubles(dtype, {3, 700}, a);
      const Tensor x2 = FromDoubles(dtype, other, b);
      const std::vector<double> y =
          ToDoubles(RunOne({.type = "SquaredDifference", .inputs = {{"x1", x1}, {"x2", x2}}}));
      ASSERT_EQ(y.size(), a.size());
      for (size_t i = 0; i < y.size(); ++i) {
        const double distance = a[i] - b[SourceOf(other, {3, 700}, i)];
        ASSERT_EQ(y[i], distance * distance) << other.ToString() << " element " << i;
      }
    }
  }
}

TEST(PointwiseDriver, InfersWhatTheKernelReturns) {
  const Tensor x1 = FromDoubles(kF16, {3, 1}, {1, 2, 3});
  const Tensor x2 = FromDoubles(kF32, {1, 2}, {1, 2});
  const Result<std::vector<TensorType>> types =
      InferOp({.type = "Atan2", .inputs = {{"x1", x1}, {"x2", x2}}});
  ASSERT_TRUE(types.ok());
  EXPECT_EQ((*types)[0], (TensorType{kF32, {3, 2}}));
}

TEST(PointwiseDriver, IntegersBecomeFloatsWhereTheFunctionNeedsThem) {
  const Tensor x = Make<int32_t>(DataType::kInt32, {2}, {0, 1});
  const Tensor y = RunOne({.type = "Asin", .inputs = {{"x", x}}});
  EXPECT_EQ(y.dtype(), kF32);
  EXPECT_EQ(y.as<float>()[1], static_cast<float>(std::asin(1.0)));
}

TEST(PointwiseDriver, EmptyTensorsAreLegal) {
  const Tensor x = FromDoubles(kF32, {0, 3}, {});
  EXPECT_EQ(RunOne({.type = "Tan", .inputs = {{"x", x}}}).shape(), Shape({0, 3}));
}

TEST(PointwiseDriver, SaysWhatDoesNotFit) {
  const Tensor a = FromDoubles(kF32, {2}, {1, 2});
  const Tensor b = FromDoubles(kF32, {3}, {1, 2, 3});
  const Status shapes = FailOf({.type = "Mod", .inputs = {{"x1", a}, {"x2", b}}});
  EXPECT_EQ(shapes.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(shapes.message()), HasSubstr("float32[2], float32[3]"));
  const Tensor flag = Make<uint8_t>(kBool, {1}, {1});
  EXPECT_EQ(FailOf({.type = "Inv", .inputs = {{"x", flag}}}).code(), Code::kUnsupported);
  const Status missing = FailOf({.type = "Adds", .inputs = {{"x", a}}});
  EXPECT_THAT(std::string(missing.message()), HasSubstr("\"value\" is missing"));
}

TEST(PointwiseDriver, AnUpdatedInputKeepsItsShape) {
  const Tensor var = FromDoubles(kF32, {1}, {1});
  const Tensor delta = FromDoubles(kF32, {3}, {1, 2, 3});
  const Status status =
      FailOf({.type = "ApplyGradientDescent",
              .inputs = {{"var", var}, {"alpha", FromDoubles(kF32, {}, {1})}, {"delta", delta}}});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace npumesh
