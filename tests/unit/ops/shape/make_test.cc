// OneHot, Eye, LinSpace.
#include "tests/unit/ops/shape/shape_values.h"

namespace npumesh {
namespace {

OpCall OneHot(const Tensor& x, int64_t depth, int64_t axis, DataType dtype = DataType::kFloat) {
  return {.type = "OneHot",
          .inputs = {{"x", x},
                     {"depth", Make<int32_t>(DataType::kInt32, {}, {static_cast<int32_t>(depth)})},
                     {"on_value", FromDoubles(dtype, {}, {1})},
                     {"off_value", FromDoubles(dtype, {1}, {0})}},
          .attrs = {{"axis", AttrValue::Int(axis)}}};
}

TEST(OneHot, PutsANewDimensionAnywhere) {
  const Shape shape = {2, 3};
  const std::vector<int64_t> hot = {0, 3, -1, 2, 4, 1};
  for (const DataType index : {DataType::kInt32, DataType::kInt64}) {
    const Tensor x = FromDoubles(index, shape, {hot.begin(), hot.end()});
    for (int64_t axis = -3; axis < 3; ++axis) {
      const auto place = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
      std::vector<int64_t> dims = {2, 3};
      dims.insert(dims.begin() + static_cast<int64_t>(place), 4);
      std::vector<double> expected;
      for (std::vector<int64_t> at : Positions(Shape(dims))) {
        const int64_t position = at[place];
        at.erase(at.begin() + static_cast<int64_t>(place));
        expected.push_back(hot[Index(shape, at)] == position ? 1 : 0);
      }
      const Tensor y = RunOne(OneHot(x, 4, axis, DataType::kBfloat16));
      EXPECT_TRUE(SameBytes(y, FromDoubles(DataType::kBfloat16, Shape(dims), expected))) << axis;
    }
  }
}

TEST(OneHot, Refuses) {
  const Tensor x = Make<int32_t>(DataType::kInt32, {1}, {0});
  ExpectFails(OneHot(x, -1, -1), Code::kInvalidArgument, {"\"depth\" is -1"});
  ExpectFails(OneHot(x, 2, 2), Code::kInvalidArgument, {"axis 2"});
  ExpectFails(OneHot(FromDoubles(DataType::kFloat, {1}, {0}), 2, 0), Code::kUnsupported,
              {"float32[1]"});
  EXPECT_EQ(RunOne(OneHot(x, 0, -1)).shape(), Shape({1, 0}));
}

TEST(Eye, IsTiled) {
  const auto run = [](std::vector<std::pair<std::string, AttrValue>> attrs) {
    return RunOne({.type = "Eye", .inputs = {}, .attrs = std::move(attrs)});
  };
  const Tensor square = run({{"num_rows", AttrValue::Int(2)}});
  EXPECT_TRUE(SameBytes(square, FromDoubles(DataType::kFloat, {2, 2}, {1, 0, 0, 1})));
  const Tensor wide = run({{"num_rows", AttrValue::Int(2)},
                           {"num_columns", AttrValue::Int(3)},
                           {"batch_shape", AttrValue::Ints({2})},
                           {"dtype", AttrValue::Int(1)}});
  EXPECT_TRUE(SameBytes(
      wide, FromDoubles(DataType::kFloat16, {2, 2, 3}, {1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0})));
  EXPECT_EQ(
      FailOf({.type = "Eye", .inputs = {}, .attrs = {{"num_rows", AttrValue::Int(-2)}}}).code(),
      Code::kInvalidArgument);
}

TEST(LinSpace, HitsBothEnds) {
  const auto run = [](double start, double stop, int64_t num) {
    return ToDoubles(RunOne({.type = "LinSpace",
                             .inputs = {{"start", FromDoubles(DataType::kFloat, {}, {start})},
                                        {"stop", FromDoubles(DataType::kFloat, {}, {stop})},
                                        {"num", MakeInts({num})}}}));
  };
  EXPECT_EQ(run(0, 1, 5), (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(run(3, -3, 3), (std::vector<double>{3, 0, -3}));
  EXPECT_EQ(run(2, 9, 1), (std::vector<double>{2}));
  EXPECT_EQ(run(2, 9, 0), (std::vector<double>{}));
  EXPECT_EQ(run(0.1f, 0.7f, 100).back(), static_cast<double>(0.7f));
  ExpectFails({.type = "LinSpace",
               .inputs = {{"start", FromDoubles(DataType::kFloat, {2}, {0, 1})},
                          {"stop", FromDoubles(DataType::kFloat, {}, {1})},
                          {"num", MakeInts({2})}}},
              Code::kInvalidArgument, {"float32[2]"});
  // A compiled torch.linspace(-1, 1, 5) gives int64, of which no result between -1 and 1 is left.
  ExpectFails(
      {.type = "LinSpace",
       .inputs = {{"start", MakeInts({-1})}, {"stop", MakeInts({1})}, {"num", MakeInts({5})}}},
      Code::kUnsupported, {"start is int64[1]", "give floats"});
}

}  // namespace
}  // namespace npumesh
