// StridedSliceV2 and Slice.
#include "tests/unit/ops/shape/shape_values.h"

namespace npumesh {
namespace {

using Ints = std::vector<int64_t>;

struct SliceCase {
  Shape x;
  Ints begin;
  Ints end;
  std::optional<Ints> axes;
  std::optional<Ints> strides;
  Shape y;
  std::vector<double> expected;  // positions in x
  std::vector<std::pair<std::string, int64_t>> masks = {};
};

OpCall StridedSlice(const Tensor& x, const SliceCase& c) {
  OpCall call{.type = "StridedSliceV2",
              .inputs = {{"x", x}, {"begin", MakeInts(c.begin)}, {"end", MakeInts(c.end)}}};
  if (c.axes) call.inputs.push_back({"axes", MakeInts(*c.axes)});
  if (c.strides) call.inputs.push_back({"strides", MakeInts(*c.strides)});
  for (const auto& [mask, bits] : c.masks) call.attrs.push_back({mask, AttrValue::Int(bits)});
  return call;
}

// 0, 1, 2 ...: a value is its position.
Tensor Iota(DataType dtype, const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return FromDoubles(dtype, shape, values);
}

const std::vector<SliceCase>& Cases() {
  constexpr int64_t kHuge = 2147483647;
  static const std::vector<SliceCase> cases = {
      {{4}, {1}, {3}, {}, {}, {2}, {1, 2}},
      {{4}, {-2}, {kHuge}, {}, {}, {2}, {2, 3}},
      {{4}, {-9}, {-1}, {}, {}, {3}, {0, 1, 2}},
      {{4}, {3}, {1}, {}, {}, {0}, {}},
      {{4}, {9}, {12}, {}, {}, {0}, {}},
      {{5}, {0}, {kHuge}, {}, Ints{2}, {3}, {0, 2, 4}},
      {{5}, {-1}, {INT64_MIN}, {}, Ints{-2}, {3}, {4, 2, 0}},
      {{5}, {9}, {0}, {}, Ints{-1}, {4}, {4, 3, 2, 1}},
      {{5}, {0}, {5}, {}, Ints{INT64_MAX}, {1}, {0}},
      {{5}, {4}, {INT64_MIN}, {}, Ints{INT64_MIN}, {1}, {4}},
      {{2, 3}, {1}, {2}, {}, {}, {1, 3}, {3, 4, 5}},
      {{2, 3}, {1}, {3}, Ints{1}, {}, {2, 2}, {1, 2, 4, 5}},
      {{2, 3}, {0, 1}, {1, 3}, Ints{-2, -1}, Ints{1, 1}, {1, 2}, {1, 2}},
      {{2, 3}, {1, 0}, {3, 1}, Ints{1, 0}, {}, {1, 2}, {1, 2}},
      {{2, 3}, {1}, {2}, Ints{}, {}, {1, 3}, {3, 4, 5}},
      {{2, 3}, {0, 2}, {2, -4}, {}, Ints{1, -1}, {2, 3}, {2, 1, 0, 5, 4, 3}},
      {{2, 3},
       {1, 1},
       {1, 2},
       {},
       {},
       {2},
       {1, 4},
       {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}}},
      {{2, 3}, {-1, 1}, {0, 3}, {}, {}, {2}, {4, 5}, {{"shrink_axis_mask", 1}}},
      {{2, 3},
       {9, 9},
       {9, 9},
       {},
       Ints{-1, -1},
       {2, 3},
       {5, 4, 3, 2, 1, 0},
       {{"begin_mask", 3}, {"end_mask", 3}}},
      {{2, 3}, {0, 1}, {0, 2}, {}, {}, {2, 1}, {1, 4}, {{"ellipsis_mask", 1}}},
      {{2, 3},
       {0, 0, 1},
       {0, 0, 2},
       {},
       {},
       {1, 2, 1},
       {1, 4},
       {{"ellipsis_mask", 2}, {"new_axis_mask", 1}}},
      {{2, 3}, {0, 0, 0}, {0, 1, 1}, {}, {}, {1, 1, 1}, {0}, {{"new_axis_mask", 1}}},
      {{2, 3}, {}, {}, {}, {}, {2, 3}, {0, 1, 2, 3, 4, 5}},
      {{}, {}, {}, {}, {}, {}, {0}},
      {{0, 3}, {0}, {5}, {}, {}, {0, 3}, {}},
      {{2, 2, 2}, {1}, {2}, Ints{1}, {}, {2, 1, 2}, {2, 3, 6, 7}},
  };
  return cases;
}

TEST(StridedSlice, TakesTheRightPositionsOfEveryDtype) {
  for (const SliceCase& c : Cases()) {
    for (const DataType dtype : AllDtypes()) {
      const Tensor x = Iota(dtype, c.x);
      const Tensor y = RunOne(StridedSlice(x, c));
      EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, c.y, c.expected)))
          << c.x.ToString() << " begin " << Shape(c.begin).ToString() << " gives "
          << y.type().ToString() << " expected " << c.y.ToString();
    }
  }
}

TEST(StridedSlice, TakesScalarsAndInt32) {
  const Tensor one = Make<int32_t>(DataType::kInt32, {}, {1});
  const Tensor y = RunOne({.type = "StridedSliceV2",
                           .inputs = {{"x", Iota(DataType::kFloat, {3, 2})},
                                      {"begin", one},
                                      {"end", Make<int32_t>(DataType::kInt32, {}, {3})},
                                      {"axes", Make<int32_t>(DataType::kInt32, {}, {0})},
                                      {"strides", one}}});
  EXPECT_EQ(ToDoubles(y), (std::vector<double>{2, 3, 4, 5}));
}

TEST(StridedSlice, RefusesWhatDoesNotFit) {
  const auto fails = [](const SliceCase& c, const std::vector<std::string>& words) {
    ExpectFails(StridedSlice(Iota(DataType::kFloat, c.x), c), Code::kInvalidArgument, words);
  };
  fails({{4}, {1, 2}, {3}, {}, {}, {}, {}}, {"2, 1, 2 and 2 entries"});
  fails({{4}, {1}, {3}, {}, Ints{0}, {}, {}}, {"strides", "0"});
  fails({{4}, {1, 1}, {3, 3}, {}, {}, {}, {}}, {"2 entries", "[4]"});
  fails({{4}, {1}, {3}, Ints{1}, {}, {}, {}}, {"axes", "axis 1", "rank 1"});
  fails({{4, 4}, {1, 1}, {3, 3}, Ints{1, -1}, {}, {}, {}}, {"axes", "axis 1 twice"});
  fails({{4}, {4}, {5}, {}, {}, {}, {}, {{"shrink_axis_mask", 1}}}, {"index 4", "of 4"});
  fails({{4}, {-5}, {5}, {}, {}, {}, {}, {{"shrink_axis_mask", 1}}}, {"index -5"});
  fails({{4, 4}, {0, 0}, {1, 1}, {}, {}, {}, {}, {{"ellipsis_mask", 3}}}, {"2 ellipses"});
  fails({{4}, {0}, {1}, Ints{0}, {}, {}, {}, {{"new_axis_mask", 1}}}, {"axes"});
}

TEST(Slice, TakesABox) {
  const auto sliced = [](Ints offsets, Ints size) {
    return OpCall{.type = "Slice",
                  .inputs = {{"x", Iota(DataType::kInt8, {3, 4})},
                             {"offsets", MakeInts(offsets)},
                             {"size", MakeInts(size)}}};
  };
  EXPECT_EQ(ToDoubles(RunOne(sliced({1, 1}, {2, 2}))), (std::vector<double>{5, 6, 9, 10}));
  EXPECT_EQ(ToDoubles(RunOne(sliced({2, 1}, {-1, -1}))), (std::vector<double>{9, 10, 11}));
  EXPECT_EQ(RunOne(sliced({3, 0}, {0, 4})).shape(), (Shape{0, 4}));
  for (const auto& [offsets, size] : std::vector<std::pair<Ints, Ints>>{{{0}, {1}},
                                                                        {{0, 0}, {4, 1}},
                                                                        {{-1, 0}, {1, 1}},
                                                                        {{0, 3}, {1, 2}},
                                                                        {{4, 0}, {0, 0}},
                                                                        {{0, 0}, {-2, 1}}}) {
    ExpectFails(sliced(offsets, size), Code::kInvalidArgument,
                {Shape(offsets).ToString(), Shape(size).ToString(), "[3,4]"});
  }
}

}  // namespace
}  // namespace npumesh
