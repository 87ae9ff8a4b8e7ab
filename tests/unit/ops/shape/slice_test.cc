// StridedSliceV2 and Slice.
// AsStrided and ViewCopy.
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

struct ViewCase {
  Ints size;
  Ints stride;
  int64_t offset;
};

const ViewCase kViews[] = {
    {{4}, {1}, 3},         {{3, 2}, {2, 1}, 0},   {{2, 3}, {1, 4}, 1},
    {{3}, {0}, 5},         {{3, 2}, {1, 1}, 2},   {{4}, {-2}, 9},
    {{}, {}, 7},           {{0, 3}, {100, 1}, 0}, {{2, 2, 2}, {6, 3, 1}, 0},
    {{1}, {INT64_MAX}, 4},
};

// 1, 2, 3 ...
Tensor CountTo(DataType dtype, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  return FromDoubles(dtype, Shape({count}), values);
}

// Elements of the buffer that the view names, in C order.
Ints Named(const ViewCase& view) {
  Ints named;
  for (const std::vector<int64_t>& at : Positions(Shape(view.size))) {
    int64_t element = view.offset;
    for (size_t d = 0; d < at.size(); ++d) element += at[d] * view.stride[d];
    named.push_back(element);
  }
  return named;
}

OpCall AsStrided(const Tensor& x, const ViewCase& view) {
  return {.type = "AsStrided",
          .inputs = {{"x", x},
                     {"size", MakeInts(view.size)},
                     {"stride", MakeInts(view.stride)},
                     {"storage_offset", MakeInts({view.offset})}}};
}

TEST(AsStrided, ReadsTheBuffer) {
  for (const ViewCase& view : kViews) {
    for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kInt64}) {
      const Tensor y = RunOne(AsStrided(CountTo(dtype, 12), view));
      EXPECT_EQ(y.shape(), Shape(view.size));
      std::vector<double> expected;
      for (const int64_t element : Named(view))
        expected.push_back(static_cast<double>(element + 1));
      EXPECT_EQ(ToDoubles(y), expected);
    }
  }
}

}  // namespace
}  // namespace npumesh
